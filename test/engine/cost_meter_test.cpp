// The meter sees what it is there to see: without this, a count of zero would mean nothing.
#include "cost_meter.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "support/catch.hpp"

using uptempo::test::cost_of;

TEST_CASE("the meter counts allocations, locks and system calls of the calling thread", "[cost_meter]") {
  void* memory = nullptr;
  CHECK(cost_of([&] { memory = ::operator new(8); }).allocations == 1);
  ::operator delete(memory);
  if (uptempo::test::sees_system_calls()) {
    long id = 0;
    CHECK(cost_of([&] { id = syscall(SYS_getpid); }).system_calls == 1);
    CHECK(id == getpid());  // a caught call still gives its result
    std::mutex mutex;
    CHECK(cost_of([&] { const std::lock_guard lock(mutex); }).locks == 1);
  }
  const auto nothing = cost_of([] {});
  CHECK(nothing.allocations == 0);
  CHECK(nothing.locks == 0);
  CHECK(nothing.system_calls == 0);
}
