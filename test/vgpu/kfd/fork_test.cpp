#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "hsakmt_fixture.hpp"
#include "test/support/catch.hpp"
#include "test/support/posix.hpp"

namespace uptempo::vgpu {
namespace {

using uptempo::test::in_child;

TEST_CASE("a child cannot use the descriptor of its parent", "[fork]") {
  const int descriptor = open("/dev/kfd", O_RDWR);
  REQUIRE(descriptor >= 0);
  CHECK(in_child([descriptor] {
          kfd_ioctl_get_version_args version{};
          return ioctl(descriptor, AMDKFD_IOC_GET_VERSION, &version) == -1 ? errno : 0;
        }) == EBADF);
  close(descriptor);
}

TEST_CASE("a child that opens the device gets a device of its own", "[fork]") {
  const Thunk thunk;
  void* memory = nullptr;
  REQUIRE(hsaKmtAllocMemory(kGpuNode, 4 * kPage, vram(true), &memory) == HSAKMT_STATUS_SUCCESS);
  *static_cast<volatile int*>(memory) = 42;
  CHECK(in_child([] {
          // ROCT detects the fork and initialises itself again.
          HsaSystemProperties system{};
          void* own = nullptr;
          if (hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS) return 1;
          // ROCT 6.1 takes the parent's snapshot for its own and does not set up the memory again.
          (void)hsaKmtReleaseSystemProperties();
          if (hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS ||
              system.NumNodes != 2)
            return 2;
          if (hsaKmtAllocMemory(kGpuNode, 4 * kPage, vram(false), &own) != HSAKMT_STATUS_SUCCESS)
            return 3;
          return 0;
        }) == 0);
  CHECK(*static_cast<volatile int*>(memory) == 42);
  CHECK(hsaKmtFreeMemory(memory, 4 * kPage) == HSAKMT_STATUS_SUCCESS);
}

TEST_CASE("a program started by the program sees the device", "[fork]") {
  std::FILE* output = popen("cat /sys/class/kfd/kfd/topology/nodes/1/name", "r");
  REQUIRE(output != nullptr);
  char line[64] = {};
  REQUIRE(std::fgets(line, sizeof line, output) != nullptr);
  CHECK(pclose(output) == 0);
  CHECK(std::string(line) == std::string(expected_device().target) + "\n");
}

TEST_CASE("lsmod lists the driver module", "[fork]") {
  std::FILE* output = popen("lsmod | grep amdgpu", "r");
  REQUIRE(output != nullptr);
  char line[64] = {};
  REQUIRE(std::fgets(line, sizeof line, output) != nullptr);
  CHECK(std::string(line).starts_with("amdgpu "));
  CHECK(pclose(output) == 0);
}

TEST_CASE("popen runs other commands unchanged", "[fork]") {
  std::FILE* output = popen("exit 7", "r");
  REQUIRE(output != nullptr);
  CHECK(WEXITSTATUS(pclose(output)) == 7);
}

}  // namespace
}  // namespace uptempo::vgpu
