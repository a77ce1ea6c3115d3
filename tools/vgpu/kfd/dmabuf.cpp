#include "kfd/dmabuf.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace uptempo::vgpu::kfd {
namespace {

constexpr uint64_t kMagic = 0x5550'444d'4142'5546;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

struct Content {
  uint64_t magic = kMagic;
  ShareHandle name{};
};

// Opens the file of a descriptor once more, in another mode. Raw call: see machine.cpp.
int reopen(int descriptor, int flags) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags));
}

}  // namespace

int make_dmabuf(const ShareHandle& name, uint64_t size_bytes, bool close_on_exec) {
  const int file = memfd_create("uptempo-vgpu-dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -errno;
  const Content content{.name = name};
  int result = -1, error = 0;
  if (pwrite(file, &content, sizeof content, 0) == static_cast<ssize_t>(sizeof content) &&
      (error = set_file_size(file, size_bytes)) == 0 && fcntl(file, F_ADD_SEALS, kSeals) == 0)
    // For writing only, which forbids every mmap(), and sealed, which forbids write().
    result = reopen(file, O_WRONLY | (close_on_exec ? O_CLOEXEC : 0));
  if (result < 0) result = error != 0 ? -error : -errno;
  ::close(file);
  return result;
}

int read_dmabuf(int descriptor, ShareHandle& name) {
  if (fcntl(descriptor, F_GETFD) < 0) return -EBADF;
  if ((fcntl(descriptor, F_GET_SEALS) & kSeals) != kSeals) return -EINVAL;
  const int file = reopen(descriptor, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -EINVAL;
  Content content{.magic = 0};
  const ssize_t got = pread(file, &content, sizeof content, 0);
  ::close(file);
  if (got != static_cast<ssize_t>(sizeof content) || content.magic != kMagic) return -EINVAL;
  name = content.name;
  return 0;
}

}  // namespace uptempo::vgpu::kfd
