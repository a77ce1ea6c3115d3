#include "cp/doorbell/userfaults.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

namespace uptempo::vgpu {
namespace {

// All calls are raw, because the preloaded library replaces read(), write() and ioctl().

void close_descriptor(int descriptor) noexcept {
  if (descriptor >= 0) syscall(SYS_close, descriptor);
}

// Returns a duplicate with a high number in place of `descriptor`, or `descriptor` if the process
// may not have such numbers.
int with_high_number(long descriptor) noexcept {
  constexpr int kFirst = 900;  // below the usual limit, 1024
  const int low = static_cast<int>(descriptor);
  if (low < 0) return -1;
  const long high = syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, kFirst);
  if (high < 0) return low;
  close_descriptor(low);
  return static_cast<int>(high);
}

uffdio_range range_of(const std::byte* begin, size_t size_bytes) noexcept {
  return {.start = reinterpret_cast<uintptr_t>(begin), .len = size_bytes};
}

bool set_protection(int faults, const std::byte* begin, size_t size_bytes, bool on) noexcept {
  uffdio_writeprotect request{.range = range_of(begin, size_bytes),
                              .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : uint64_t{0}};
  return syscall(SYS_ioctl, faults, UFFDIO_WRITEPROTECT, &request) == 0;
}

}  // namespace

Userfaults::Userfaults() noexcept
    : faults_(with_high_number(
          syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))) {
  uffdio_api api{.api = UFFD_API,
                 .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
                 .ioctls = 0};
  if (faults_ < 0) return;
  if (syscall(SYS_ioctl, faults_, UFFDIO_API, &api) != 0) {  // the kernel lacks a feature
    close_descriptor(std::exchange(faults_, -1));
    return;
  }
  interruptions_ = with_high_number(syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
  available_.store(interruptions_ >= 0, std::memory_order_release);
}

Userfaults::~Userfaults() {
  close_descriptor(faults_);
  close_descriptor(interruptions_);
}

bool Userfaults::protect(std::byte* begin, size_t size_bytes) noexcept {
  if (!available()) return false;
  if (set_protection(faults_, begin, size_bytes, true)) return true;
  // The first time, or the program has mapped the pages again since.
  uffdio_register request{
      .range = range_of(begin, size_bytes), .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
  return syscall(SYS_ioctl, faults_, UFFDIO_REGISTER, &request) == 0 &&
         set_protection(faults_, begin, size_bytes, true);
}

void Userfaults::open(std::byte* begin, size_t size_bytes) noexcept {
  set_protection(faults_, begin, size_bytes, false);
}

void Userfaults::forget(std::byte* begin, size_t size_bytes) noexcept {
  if (!available()) return;
  open(begin, size_bytes);  // the request below wakes no thread that is stopped at a store
  uffdio_range range = range_of(begin, size_bytes);
  syscall(SYS_ioctl, faults_, UFFDIO_UNREGISTER, &range);
}

void Userfaults::wait(std::chrono::nanoseconds timeout) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec limit{static_cast<std::time_t>(seconds.count()),
                 static_cast<long>((timeout - seconds).count())};
  std::array<pollfd, 2> events{
      {{.fd = faults_, .events = POLLIN, .revents = 0}, {interruptions_, POLLIN, 0}}};
  if (syscall(SYS_ppoll, events.data(), events.size(), timeout.count() == 0 ? nullptr : &limit,
              nullptr, 0) < 0)
    return;
  for (const pollfd& event : events)  // closed by the program
    if ((event.revents & (POLLNVAL | POLLERR)) != 0)
      available_.store(false, std::memory_order_release);
  uint64_t count = 0;
  if ((events[1].revents & POLLIN) != 0) syscall(SYS_read, interruptions_, &count, sizeof count);
}

bool Userfaults::take_stopped() noexcept {
  if (!available()) return false;
  std::array<uffd_msg, 16> messages;
  bool any = false;
  long bytes = 0;
  do {
    bytes = syscall(SYS_read, faults_, messages.data(), sizeof messages);
    any = any || bytes > 0;
  } while (bytes == sizeof messages);
  return any;
}

void Userfaults::interrupt() noexcept {
  const int saved = errno;
  const uint64_t one = 1;
  syscall(SYS_write, interruptions_, &one, sizeof one);
  errno = saved;
}

}  // namespace uptempo::vgpu
