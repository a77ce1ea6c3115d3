// ioctl(): requests of KFD ('K') and DRM ('d') on a device descriptor go to the emulated driver,
// all others to the kernel.
#include <linux/ioctl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>

#include "interpose/real.hpp"
#include "kfd/process.hpp"

namespace uptempo::vgpu::interpose {
namespace {

constexpr unsigned kKfdMagic = 'K';
constexpr unsigned kDrmMagic = 'd';

// Device descriptors are recognised by device and inode, so the program's dup(), dup2() and fcntl()
// need no interception.
bool identity(int descriptor, struct stat& status) {
  // raw call, because fstat() of this library disguises the device
  return syscall(SYS_fstat, descriptor, &status) == 0;
}

// Returns whether the descriptor is a device memfd of another process, inherited by fork().
bool is_of_parent(int descriptor) {
  char link[64];
  char name[64] = {};
  __builtin_snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  static constinit Next<ssize_t (*)(const char*, char*, size_t)> readlink_next{"readlink"};
  if (readlink_next(link, name, sizeof name - 1) <= 0) return false;
  return __builtin_strncmp(name, "/memfd:uptempo-vgpu-", 20) == 0;
}

// Disables cancellation: the kernel's ioctl() is no cancellation point, but the emulated driver
// waits on a condition variable, which is one.
class WithoutCancellation {
 public:
  WithoutCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~WithoutCancellation() { pthread_setcancelstate(before_, nullptr); }
  WithoutCancellation(const WithoutCancellation&) = delete;
  WithoutCancellation& operator=(const WithoutCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace
}  // namespace uptempo::vgpu::interpose

namespace vgpu = uptempo::vgpu::interpose;
namespace kfd = uptempo::vgpu::kfd;

UPTEMPO_VGPU_EXPORT int ioctl(int descriptor, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const unsigned magic = _IOC_TYPE(request);
  if (magic == vgpu::kKfdMagic || magic == vgpu::kDrmMagic) {
    const vgpu::WithoutCancellation no_cancellation;
    struct stat status {};
    kfd::Process* process = kfd::Process::existing();
    if (vgpu::identity(descriptor, status)) {
      using Node = kfd::Process::Node;
      const Node node =
          process == nullptr ? Node{} : process->node_of(status.st_dev, status.st_ino);
      int result = 1;
      if (node.kind == Node::Kind::kfd) {
        result = process->kfd_ioctl(request, argument);
      } else if (node.kind == Node::Kind::render) {
        result = process->drm_ioctl(node.gpu_index, request, argument);
      } else if (S_ISREG(status.st_mode) && vgpu::is_of_parent(descriptor)) {
        result = -EBADF;
      }
      if (result <= 0) {
        if (result == 0) return 0;
        errno = -result;
        return -1;
      }
    }
  }
  static constinit vgpu::Next<int (*)(int, unsigned long, ...)> next{"ioctl"};
  return next(descriptor, request, argument);
}
