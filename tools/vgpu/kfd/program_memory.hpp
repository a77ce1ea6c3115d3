// The program's memory as a driver sees it: an address that the program may not use is EFAULT, not a fault.
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kfd/backing.hpp"

namespace uptempo::vgpu::kfd {

// copy_from_user() and copy_to_user(). False: some of the range may not be read, or written; how much was copied is not said.
bool copy_from_program(void* to, uint64_t address, size_t size_bytes) noexcept;
bool copy_to_program(uint64_t address, const void* from, size_t size_bytes) noexcept;

// Whether the driver could pin the range for a USERPTR buffer, for which it wants every page writable whatever the buffer's own flags say
// (amdgpu_amdkfd_gpuvm.c, init_user_pages; mm/hmm.c, hmm_vma_fault). 0, -EFAULT where there is no memory or none that may be read, -EPERM
// where it may not be written.
int check_user_pages(uint64_t address, uint64_t size_bytes);

// Whether the program may read and write the whole range and it is a shared mapping of the file from `offset` on.
bool is_mapping_of(uint64_t address, uint64_t size_bytes, const SparseFile& file,
                   uint64_t offset);

// Whether the range is private anonymous memory that may be read and written and that nobody has touched since it was mapped. False where the
// system does not say (/proc/self/pagemap).
bool is_untouched_memory(uint64_t address, uint64_t size_bytes);

}  // namespace uptempo::vgpu::kfd
