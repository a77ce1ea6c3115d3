// What a piece of code costs the calling thread: heap allocations, mutex locks, system calls.
//
// Allocations and locks are counted by functions that stand before those of the libraries, so the meter is a library of objects: linked into a program, or
// into a shared library that is preloaded. System calls are caught by the kernel's system call user dispatch (Linux 5.11, x86-64): each raises SIGSYS,
// whose handler counts it and lets a stub make it, whose range of addresses the kernel leaves alone.
//
// Not counted: calls made while SIGSEGV is blocked. Under uptempo-vgpu no program blocks it, but the device's own fault handler runs so: a doorbell that wakes
// a sleeping virtual device costs its producer a fault and a wake-up, which on hardware does not exist. And calls after one that makes a thread or a
// process or blocks SIGSYS, as pthread_create() does: it is counted, and lets all others pass.
//
// Under a sanitizer, whose runtime allocates, locks and calls the kernel inside instrumented code, operator new alone is counted.
//
// Thread safety: each thread measures itself; one measurement of the process at a time.
#pragma once

#include <cstdint>
#include <functional>

namespace uptempo::support {

struct Cost {
  uint64_t allocations = 0;  // malloc() and its relatives, which operator new calls
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

// False where system calls cannot be seen.
bool sees_system_calls() noexcept;

}  // namespace uptempo::support
