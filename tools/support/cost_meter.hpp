// Counts what a piece of code costs the calling thread: heap allocations, mutex locks, system
// calls.
//
// Allocations and locks: this library replaces malloc() and its relatives and pthread_mutex_lock().
// It is therefore an object library, linked into a program or into a preloaded shared library.
//
// System calls: the kernel's system call user dispatch (Linux 5.11, x86-64) raises SIGSYS for each
// call. The handler counts the call, and a stub makes it from an address range that the kernel does
// not trap.
//
// Not counted:
// - Calls made while SIGSEGV is blocked. Programs under uptempo-vgpu do not block it, but the
//   device's fault handler runs so. A doorbell that wakes a sleeping virtual device costs its
//   producer a fault and a wake-up, which hardware does not need.
// - Calls after one that creates a thread or a process or blocks SIGSYS, as pthread_create() does.
//   That call is counted; it ends the count.
//
// Sanitizers: only operator new is counted, because the sanitizer's runtime allocates, locks and
// calls the kernel inside instrumented code.
//
// Thread safety: each thread measures itself; one measurement at a time in a process.
#pragma once

#include <cstdint>
#include <functional>

namespace uptempo::support {

struct Cost {
  uint64_t allocations = 0;  // malloc() and its relatives, also when operator new calls them
  uint64_t locks = 0;
  uint64_t system_calls = 0;
  Cost& operator+=(const Cost& other) noexcept {
    allocations += other.allocations;
    locks += other.locks;
    system_calls += other.system_calls;
    return *this;
  }
  friend bool operator==(const Cost&, const Cost&) = default;
};

Cost cost_of(const std::function<void()>& work);

// False where the kernel cannot trap system calls.
bool sees_system_calls() noexcept;

}  // namespace uptempo::support
