// What a piece of code costs the calling thread: heap allocations, mutex locks, system calls.
//
// Allocations and locks are counted by functions of the test binary that stand before those of the libraries. System calls are caught by
// the kernel's system call user dispatch (Linux 5.11, x86-64), which a thread switches on and off by a byte of its own; the count stops
// at the first, because the question is whether there are any. Elsewhere, and under a sanitizer, whose runtime locks and calls the kernel inside
// instrumented code, only allocations are counted.
//
// Thread safety: each thread measures itself; one measurement of the process at a time.
#pragma once

#include <cstdint>
#include <functional>

namespace uptempo::test {

struct Cost {
  uint64_t allocations = 0;
  uint64_t locks = 0;
  uint64_t system_calls = 0;  // 0 or 1
  Cost& operator+=(const Cost& other) noexcept {
    allocations += other.allocations;
    locks += other.locks;
    system_calls += other.system_calls;
    return *this;
  }
};

Cost cost_of(const std::function<void()>& work);

// False where system calls cannot be seen.
bool sees_system_calls() noexcept;

}  // namespace uptempo::test
