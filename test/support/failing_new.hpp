// FailingNew: one call of operator new by this thread fails. For tests that try every allocation of
// an operation, one after the other.
//
// failing_new.cpp replaces operator new and delete. It is therefore an object library, and excludes
// tools/support/cost_meter.hpp in the same program. Deleted memory is overwritten, so that a reader
// of it does not find what was there.
//
// Thread safety: each thread counts its own calls. At most one object per thread at a time.
#pragma once

#include <cstdint>
#include <exception>
#include <new>

namespace uptempo::test {

class FailingNew {
 public:
  // The thread's call with this number from now on throws std::bad_alloc, or returns null if it is
  // the nothrow form. 1: the next call.
  explicit FailingNew(uint64_t number) noexcept;
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  bool has_failed() const noexcept;
};

// Calls act(world) in a new World for each allocation that it makes, and fails that one. In the
// last World none fails. Then calls then(world, threw), which checks what act() has left behind.
template <class World, class Act, class Then>
void fail_each_allocation(Act act, Then then) {
  for (uint64_t number = 1, last = 0; last == 0; ++number) {
    World world;
    bool threw = false;
    {
      const FailingNew failing(number);
      try {
        act(world);
      } catch (const std::exception&) {
        if (!failing.has_failed()) throw;
        threw = true;
      }
      if (!failing.has_failed()) last = number;
    }
    then(world, threw);
  }
}

}  // namespace uptempo::test
