// Calls that pass the program's memory to the kernel: read(), write(), send(), recv(), fread(),
// fwrite() and related functions.
//
// While host accesses are observed (device/host/host_pages.hpp), a buffer may be protected. The
// kernel then fails with EFAULT where a load or store would succeed. Each function therefore keeps
// its buffers accessible during the call. fread() and fwrite() are included because the C library
// calls the kernel for them internally.
//
// Cost: one load when host accesses are not observed. Errors: the read and write families are
// cancellation points, so nothing here is noexcept.
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "device/host/host_pages.hpp"
#include "interpose/real.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::interpose {
namespace {

constexpr size_t kMaxBuffers = 1024;  // IOV_MAX

uintptr_t start(const iovec& buffer) noexcept {
  return reinterpret_cast<uintptr_t>(buffer.iov_base);
}

bool observed() noexcept { return HostPages::of_process() != nullptr; }

// The buffers of a vectored call. If the vector itself is unreadable, the kernel reports EFAULT.
// Uses 16 KiB of stack, so it is constructed only where observed() holds.
class HeldBuffers {
 public:
  HeldBuffers(const iovec* buffers, size_t count, bool write)
      : array_(buffers, count > kMaxBuffers ? 0 : count * sizeof *buffers, false) {
    if (buffers == nullptr || count > kMaxBuffers ||
        !kfd::copy_from_program(copy_.data(), reinterpret_cast<uint64_t>(buffers),
                                count * sizeof *buffers))
      return;
    for (; count_ < count; ++count_)
      pages_->hold(start(copy_[count_]), copy_[count_].iov_len, write);
  }
  ~HeldBuffers() {
    while (count_ != 0) {
      --count_;
      pages_->release(start(copy_[count_]), copy_[count_].iov_len);
    }
  }
  HeldBuffers(const HeldBuffers&) = delete;
  HeldBuffers& operator=(const HeldBuffers&) = delete;

 private:
  HostPages* const pages_ = HostPages::of_process();
  const HostAccess array_;
  size_t count_ = 0;
  std::array<iovec, kMaxBuffers> copy_;
};

msghdr copy_of(const msghdr* message) {
  msghdr copy{};
  if (message == nullptr ||
      !kfd::copy_from_program(&copy, reinterpret_cast<uint64_t>(message), sizeof copy))
    return {};
  return copy;
}

// The program's memory that sendmsg() and recvmsg() use.
class HeldMessage {
 public:
  HeldMessage(const msghdr* message, bool write) : HeldMessage(message, copy_of(message), write) {}

 private:
  HeldMessage(const msghdr* message, const msghdr& copy, bool write)
      : header_(message, sizeof *message, write),
        name_(copy.msg_name, copy.msg_namelen, write),
        control_(copy.msg_control, copy.msg_controllen, write),
        buffers_(copy.msg_iov, copy.msg_iovlen, write) {}

  const HostAccess header_, name_, control_;
  const HeldBuffers buffers_;
};

size_t bytes_of(size_t size, size_t count) {
  size_t bytes = 0;
  return __builtin_mul_overflow(size, count, &bytes) ? 0 : bytes;
}

}  // namespace
}  // namespace uptempo::vgpu::interpose

using uptempo::vgpu::HostAccess;
using Bytes = size_t;
using namespace uptempo::vgpu::interpose;

// libc declares the buffers of read() and related functions write-only, so GCC warns that passing
// one on reads it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// --- files ---

UPTEMPO_VGPU_EXPORT ssize_t read(int descriptor, void* to, Bytes bytes) {
  static constinit Next<ssize_t (*)(int, void*, Bytes)> next{"read"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes);
}

UPTEMPO_VGPU_EXPORT ssize_t __read_chk(int descriptor, void* to, Bytes bytes, Bytes room) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, Bytes)> next{"__read_chk"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, room);
}

UPTEMPO_VGPU_EXPORT ssize_t pread(int descriptor, void* to, Bytes bytes, off_t offset) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, off_t)> next{"pread"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t __pread_chk(int descriptor, void* to, Bytes bytes, off_t offset,
                                        Bytes room) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, off_t, Bytes)> next{"__pread_chk"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, offset, room);
}

UPTEMPO_VGPU_EXPORT ssize_t pwrite(int descriptor, const void* from, Bytes bytes, off_t offset) {
  static constinit Next<ssize_t (*)(int, const void*, Bytes, off_t)> next{"pwrite"};
  const HostAccess access(from, bytes, false);
  return next(descriptor, from, bytes, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t pread64(int descriptor, void* to, Bytes bytes, off64_t offset) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, off64_t)> next{"pread64"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t __pread64_chk(int descriptor, void* to, Bytes bytes, off64_t offset,
                                          Bytes room) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, off64_t, Bytes)> next{"__pread64_chk"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, offset, room);
}

UPTEMPO_VGPU_EXPORT ssize_t pwrite64(int descriptor, const void* from, Bytes bytes,
                                     off64_t offset) {
  static constinit Next<ssize_t (*)(int, const void*, Bytes, off64_t)> next{"pwrite64"};
  const HostAccess access(from, bytes, false);
  return next(descriptor, from, bytes, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t write(int descriptor, const void* from, Bytes bytes) {
  static constinit Next<ssize_t (*)(int, const void*, Bytes)> next{"write"};
  const HostAccess access(from, bytes, false);
  return next(descriptor, from, bytes);
}

UPTEMPO_VGPU_EXPORT ssize_t readv(int descriptor, const iovec* buffers, int count) {
  static constinit Next<ssize_t (*)(int, const iovec*, int)> next{"readv"};
  if (!observed()) return next(descriptor, buffers, count);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), true);
  return next(descriptor, buffers, count);
}

UPTEMPO_VGPU_EXPORT ssize_t writev(int descriptor, const iovec* buffers, int count) {
  static constinit Next<ssize_t (*)(int, const iovec*, int)> next{"writev"};
  if (!observed()) return next(descriptor, buffers, count);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), false);
  return next(descriptor, buffers, count);
}

UPTEMPO_VGPU_EXPORT ssize_t preadv(int descriptor, const iovec* buffers, int count, off_t offset) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off_t)> next{"preadv"};
  if (!observed()) return next(descriptor, buffers, count, offset);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), true);
  return next(descriptor, buffers, count, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t preadv2(int descriptor, const iovec* buffers, int count, off_t offset,
                                    int flags) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off_t, int)> next{"preadv2"};
  if (!observed()) return next(descriptor, buffers, count, offset, flags);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), true);
  return next(descriptor, buffers, count, offset, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t preadv64(int descriptor, const iovec* buffers, int count,
                                     off64_t offset) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off64_t)> next{"preadv64"};
  if (!observed()) return next(descriptor, buffers, count, offset);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), true);
  return next(descriptor, buffers, count, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t preadv64v2(int descriptor, const iovec* buffers, int count,
                                       off64_t offset, int flags) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off64_t, int)> next{"preadv64v2"};
  if (!observed()) return next(descriptor, buffers, count, offset, flags);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), true);
  return next(descriptor, buffers, count, offset, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t pwritev(int descriptor, const iovec* buffers, int count, off_t offset) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off_t)> next{"pwritev"};
  if (!observed()) return next(descriptor, buffers, count, offset);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), false);
  return next(descriptor, buffers, count, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t pwritev2(int descriptor, const iovec* buffers, int count, off_t offset,
                                     int flags) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off_t, int)> next{"pwritev2"};
  if (!observed()) return next(descriptor, buffers, count, offset, flags);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), false);
  return next(descriptor, buffers, count, offset, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t pwritev64(int descriptor, const iovec* buffers, int count,
                                      off64_t offset) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off64_t)> next{"pwritev64"};
  if (!observed()) return next(descriptor, buffers, count, offset);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), false);
  return next(descriptor, buffers, count, offset);
}

UPTEMPO_VGPU_EXPORT ssize_t pwritev64v2(int descriptor, const iovec* buffers, int count,
                                        off64_t offset, int flags) {
  static constinit Next<ssize_t (*)(int, const iovec*, int, off64_t, int)> next{"pwritev64v2"};
  if (!observed()) return next(descriptor, buffers, count, offset, flags);
  const HeldBuffers held(buffers, static_cast<Bytes>(count), false);
  return next(descriptor, buffers, count, offset, flags);
}

// --- sockets ---

UPTEMPO_VGPU_EXPORT ssize_t recv(int descriptor, void* to, Bytes bytes, int flags) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, int)> next{"recv"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t __recv_chk(int descriptor, void* to, Bytes bytes, Bytes room,
                                       int flags) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, Bytes, int)> next{"__recv_chk"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, room, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t recvfrom(int descriptor, void* to, Bytes bytes, int flags,
                                     sockaddr* sender, socklen_t* sender_bytes) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, int, sockaddr*, socklen_t*)> next{
      "recvfrom"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, flags, sender, sender_bytes);
}

UPTEMPO_VGPU_EXPORT ssize_t __recvfrom_chk(int descriptor, void* to, Bytes bytes, Bytes room,
                                           int flags, sockaddr* sender, socklen_t* sender_bytes) {
  static constinit Next<ssize_t (*)(int, void*, Bytes, Bytes, int, sockaddr*, socklen_t*)> next{
      "__recvfrom_chk"};
  const HostAccess access(to, bytes, true);
  return next(descriptor, to, bytes, room, flags, sender, sender_bytes);
}

UPTEMPO_VGPU_EXPORT ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  static constinit Next<ssize_t (*)(int, msghdr*, int)> next{"recvmsg"};
  if (!observed()) return next(descriptor, message, flags);
  const HeldMessage held(message, true);
  return next(descriptor, message, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t send(int descriptor, const void* from, Bytes bytes, int flags) {
  static constinit Next<ssize_t (*)(int, const void*, Bytes, int)> next{"send"};
  const HostAccess access(from, bytes, false);
  return next(descriptor, from, bytes, flags);
}

UPTEMPO_VGPU_EXPORT ssize_t sendto(int descriptor, const void* from, Bytes bytes, int flags,
                                   const sockaddr* receiver, socklen_t receiver_bytes) {
  static constinit Next<ssize_t (*)(int, const void*, Bytes, int, const sockaddr*, socklen_t)> next{
      "sendto"};
  const HostAccess access(from, bytes, false);
  return next(descriptor, from, bytes, flags, receiver, receiver_bytes);
}

UPTEMPO_VGPU_EXPORT ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static constinit Next<ssize_t (*)(int, const msghdr*, int)> next{"sendmsg"};
  if (!observed()) return next(descriptor, message, flags);
  const HeldMessage held(message, false);
  return next(descriptor, message, flags);
}

// --- streams ---

UPTEMPO_VGPU_EXPORT Bytes fread(void* to, Bytes size, Bytes count, FILE* stream) {
  static constinit Next<Bytes (*)(void*, Bytes, Bytes, FILE*)> next{"fread"};
  const HostAccess access(to, bytes_of(size, count), true);
  return next(to, size, count, stream);
}

UPTEMPO_VGPU_EXPORT Bytes __fread_chk(void* to, Bytes room, Bytes size, Bytes count, FILE* stream) {
  static constinit Next<Bytes (*)(void*, Bytes, Bytes, Bytes, FILE*)> next{"__fread_chk"};
  const HostAccess access(to, bytes_of(size, count), true);
  return next(to, room, size, count, stream);
}

UPTEMPO_VGPU_EXPORT Bytes fwrite(const void* from, Bytes size, Bytes count, FILE* stream) {
  static constinit Next<Bytes (*)(const void*, Bytes, Bytes, FILE*)> next{"fwrite"};
  const HostAccess access(from, bytes_of(size, count), false);
  return next(from, size, count, stream);
}

UPTEMPO_VGPU_EXPORT Bytes fread_unlocked(void* to, Bytes size, Bytes count, FILE* stream) {
  static constinit Next<Bytes (*)(void*, Bytes, Bytes, FILE*)> next{"fread_unlocked"};
  const HostAccess access(to, bytes_of(size, count), true);
  return next(to, size, count, stream);
}

UPTEMPO_VGPU_EXPORT Bytes __fread_unlocked_chk(void* to, Bytes room, Bytes size, Bytes count,
                                               FILE* stream) {
  static constinit Next<Bytes (*)(void*, Bytes, Bytes, Bytes, FILE*)> next{"__fread_unlocked_chk"};
  const HostAccess access(to, bytes_of(size, count), true);
  return next(to, room, size, count, stream);
}

UPTEMPO_VGPU_EXPORT Bytes fwrite_unlocked(const void* from, Bytes size, Bytes count, FILE* stream) {
  static constinit Next<Bytes (*)(const void*, Bytes, Bytes, FILE*)> next{"fwrite_unlocked"};
  const HostAccess access(from, bytes_of(size, count), false);
  return next(from, size, count, stream);
}
