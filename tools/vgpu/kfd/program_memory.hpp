// Access to the program's memory as in a driver: an address that the program may not use gives
// EFAULT, not a fault.
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kfd/machine/backing.hpp"

namespace uptempo::vgpu::kfd {

// Equivalents of copy_from_user() and copy_to_user(). Return false if part of the range is not
// readable or writable; an unspecified part may have been copied.
bool copy_from_program(void* to, uint64_t address, size_t size_bytes) noexcept;
bool copy_to_program(uint64_t address, const void* from, size_t size_bytes) noexcept;

// Checks whether the driver could pin the range for a USERPTR buffer. The driver requires every
// page to be writable, whatever the buffer's own flags (amdgpu_amdkfd_gpuvm.c, init_user_pages;
// mm/hmm.c, hmm_vma_fault). Returns 0, -EFAULT if a page is missing or unreadable, or -EPERM if a
// page is read-only.
int check_user_pages(uint64_t address, uint64_t size_bytes);

// Returns whether the whole range is readable, writable and a shared mapping of the file from
// `offset` on.
bool is_mapping_of(uint64_t address, uint64_t size_bytes, const SparseFile& file, uint64_t offset);

// Returns whether the range is readable, writable, private anonymous memory without a touched page.
// Returns false if the system does not provide the information (/proc/self/pagemap).
bool is_untouched_memory(uint64_t address, uint64_t size_bytes);

}  // namespace uptempo::vgpu::kfd
