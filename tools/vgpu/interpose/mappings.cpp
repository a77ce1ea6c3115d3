// mmap(): fails for device files where --inject asks for it, and for those of a GPU that it has
// taken away. All else is the kernel's.
//
// The driver's own mappings of these files do not pass here (kfd/machine/backing.cpp).
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

#include "interpose/real.hpp"
#include "kfd/process.hpp"

namespace uptempo::vgpu::interpose {
namespace {

// Returns a positive error number, or 0.
int injected_mmap_error(int descriptor) noexcept {
  if (descriptor < 0) return 0;
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return 0;
  Injector* const injector = process->injector();
  if (injector == nullptr) return 0;
  struct stat status {};
  // raw call, because fstat() of this library disguises the device
  if (syscall(SYS_fstat, descriptor, &status) != 0) return 0;
  const kfd::Process::Node node = process->node_of(status.st_dev, status.st_ino);
  if (node.kind == kfd::Process::Node::Kind::none) return 0;
  // as drm_gem_mmap() of Linux after drm_dev_unplug()
  if (node.kind == kfd::Process::Node::Kind::render && process->is_gone(node.gpu_index))
    return ENODEV;
  return injector->mmap();
}

void* mapped(void* address, size_t length, int protection, int flags, int descriptor,
             off_t offset) noexcept {
  if (const int error = injected_mmap_error(descriptor); error != 0) {
    errno = error;
    return MAP_FAILED;
  }
  // The system call, not the next definition: a sanitizer's runtime maps memory before dlsym()
  // works.
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, descriptor, offset));
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

UPTEMPO_VGPU_EXPORT void* mmap(void* address, size_t length, int protection, int flags,
                               int descriptor, off_t offset) noexcept {
  return uptempo::vgpu::interpose::mapped(address, length, protection, flags, descriptor, offset);
}

UPTEMPO_VGPU_EXPORT void* mmap64(void* address, size_t length, int protection, int flags,
                                 int descriptor, off64_t offset) noexcept {
  return uptempo::vgpu::interpose::mapped(address, length, protection, flags, descriptor, offset);
}
