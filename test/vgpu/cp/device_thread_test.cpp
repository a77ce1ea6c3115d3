// Threads of the device.
#include "cp/device_thread.hpp"

#include <unistd.h>
#include <new>

#include "test/support/catch.hpp"
#include "test/support/posix.hpp"

namespace uptempo::vgpu {
namespace {

TEST_CASE("a thread of the device that lacks memory ends the process with an exit status") {
  CHECK(uptempo::test::in_child([] {
          start_device_thread("test", [] { throw std::bad_alloc(); }).join();
          return 3;
        }) == 1);
}

}  // namespace
}  // namespace uptempo::vgpu
