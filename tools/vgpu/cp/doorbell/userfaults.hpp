// Stops threads that store to protected pages, without a signal, by Linux's userfaultfd.
//
// The kernel stops the thread until the page is opened; the store then executes. The program's
// action of SIGSEGV, its signal masks and its debugger have no part in it. A store by the kernel
// itself, for example of read(), fails with EFAULT.
//
// Needs Linux 5.19, for write protection of shared memory, and no privilege, because only faults of
// user mode are asked for. Container runtimes refuse the system call by default. `available` is
// then false, and protect() fails.
//
// The descriptors have high numbers. A program that closes all descriptors and opens others then
// does not get these numbers, which this object would go on to use.
//
// Thread safety: available() and interrupt() from any thread; both are async-signal-safe. The
// caller orders all other calls. The object belongs to the process that constructed it: protect()
// in a fork child would protect the parent's memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

namespace uptempo::vgpu {

class Userfaults {
 public:
  Userfaults() noexcept;
  ~Userfaults();
  Userfaults(const Userfaults&) = delete;
  Userfaults& operator=(const Userfaults&) = delete;

  bool available() const noexcept { return available_.load(std::memory_order_acquire); }

  // Whole pages of one shared mapping. Returns false, without effect, if the kernel refuses.
  bool protect(std::byte* begin, size_t size_bytes) noexcept;
  // Threads that are stopped there continue.
  void open(std::byte* begin, size_t size_bytes) noexcept;
  // Opens the pages, and ends what protect() has set up for them.
  void forget(std::byte* begin, size_t size_bytes) noexcept;

  // Blocks until a thread is stopped, or interrupt() was called since the last call. A zero timeout
  // means none. Requires available().
  void wait(std::chrono::nanoseconds timeout) noexcept;
  // Whether threads have stopped since the last call and no page has been opened for them.
  bool take_stopped() noexcept;

  void interrupt() noexcept;

 private:
  std::atomic<bool> available_{false};
  int faults_ = -1;
  int interruptions_ = -1;  // an eventfd
};

}  // namespace uptempo::vgpu
