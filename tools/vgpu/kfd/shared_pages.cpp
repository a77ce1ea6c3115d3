#include "kfd/shared_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "kfd/machine/backing.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

void* map_shared(int file, size_t size_bytes) {
  void* const mapping =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (mapping == MAP_FAILED) return nullptr;
  madvise(mapping, size_bytes, MADV_DONTFORK);
  return mapping;
}

}  // namespace

std::unique_ptr<SharedPages> SharedPages::replace(uint64_t address, uint64_t size_bytes) {
  if (!is_untouched_memory(address, size_bytes)) return nullptr;
  const int file = memfd_create("uptempo-vgpu-host", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* alias = nullptr;
  void* program = nullptr;
  if (set_file_size(file, size_bytes) == 0) {
    alias = map_shared(file, size_bytes);
    program = map_shared(file, size_bytes);
  }
  close(file);
  // Moves the mapping there instead of mapping there, so that no other thread's mmap() can take the
  // range in between.
  const bool replaced = alias != nullptr && program != nullptr &&
                        mremap(program, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                               reinterpret_cast<void*>(address)) != MAP_FAILED;
  if (!replaced) {
    if (program != nullptr) munmap(program, size_bytes);
    if (alias != nullptr) munmap(alias, size_bytes);
    return nullptr;
  }
  madvise(alias, size_bytes, MADV_DONTDUMP);  // a core dump contains the program's mapping
  return std::unique_ptr<SharedPages>(new SharedPages(static_cast<std::byte*>(alias), size_bytes));
}

SharedPages::~SharedPages() { munmap(alias_, size_bytes_); }

}  // namespace uptempo::vgpu::kfd
