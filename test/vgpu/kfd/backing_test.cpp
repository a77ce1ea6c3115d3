#include "kfd/machine/backing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstring>
#include <string>

#include "test/support/catch.hpp"

namespace uptempo::vgpu::kfd {
namespace {

TEST_CASE("ranges are allocated lowest first and aligned", "[ranges]") {
  RangeAllocator ranges(0x1000, 0x100000);
  CHECK(ranges.allocate(0x1000, 0x1000) == 0x1000);
  CHECK(ranges.allocate(0x1000, 0x10000) == 0x10000);
  CHECK(ranges.allocate(0x1000, 0x1000) == 0x2000);
}

TEST_CASE("a range without enough contiguous space is refused", "[ranges]") {
  RangeAllocator ranges(0, 0x4000);
  CHECK_FALSE(ranges.allocate(0x5000, 0x1000));
  REQUIRE(ranges.allocate(0x1000, 0x1000) == 0);
  REQUIRE(ranges.allocate(0x1000, 0x1000) == 0x1000);
  REQUIRE(ranges.allocate(0x2000, 0x1000) == 0x2000);
  CHECK_FALSE(ranges.allocate(0x1000, 0x1000));
  ranges.free(0, 0x1000);
  ranges.free(0x2000, 0x2000);
  CHECK_FALSE(ranges.allocate(0x3000, 0x1000));
}

TEST_CASE("freed neighbours become one range again, in any order", "[ranges]") {
  constexpr uint64_t kOrders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : kOrders) {
    RangeAllocator ranges(0, 0x3000);
    for (uint64_t i = 0; i < 3; ++i) REQUIRE(ranges.allocate(0x1000, 0x1000) == i * 0x1000);
    for (const uint64_t each : order) ranges.free(each * 0x1000, 0x1000);
    CHECK(ranges.allocate(0x3000, 0x1000) == 0);
  }
}

TEST_CASE("program and device share the mapped memory", "[file]") {
  SparseFile file("backing-test", uint64_t{1} << 36);
  const int descriptor = file.open(true);
  REQUIRE(descriptor >= 0);
  CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  constexpr off_t kOffset = off_t{1} << 35;
  void* program = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, kOffset);
  REQUIRE(program != MAP_FAILED);
  std::strcpy(static_cast<char*>(program), "from the program");
  CHECK(std::string(reinterpret_cast<char*>(file.at(kOffset))) == "from the program");
  std::strcpy(reinterpret_cast<char*>(file.at(kOffset + 4096)), "from the device");
  CHECK(std::string(static_cast<char*>(program) + 4096) == "from the device");
  munmap(program, 8192);
  close(descriptor);
}

TEST_CASE("released pages go back to the system and read as zero", "[file]") {
  SparseFile file("backing-test", uint64_t{1} << 30);
  const int descriptor = file.open(true);
  constexpr uint64_t kBytes = uint64_t{16} << 20;
  std::memset(file.at(0), 0x5a, kBytes);
  struct stat before {};
  REQUIRE(fstat(descriptor, &before) == 0);
  CHECK(before.st_blocks * 512 >= static_cast<off_t>(kBytes));
  file.release(0, kBytes);
  struct stat after {};
  REQUIRE(fstat(descriptor, &after) == 0);
  CHECK(after.st_blocks == 0);
  CHECK(*file.at(12345) == std::byte{0});
  close(descriptor);
}

TEST_CASE("a duplicate is recognised, another file is not", "[file]") {
  const SparseFile one("backing-test", 1 << 20);
  const SparseFile other("backing-test", 1 << 20);
  const int descriptor = one.open(false);
  const int duplicate = dup(descriptor);
  struct stat status {};
  REQUIRE(fstat(duplicate, &status) == 0);
  CHECK(one.is(status.st_dev, status.st_ino));
  CHECK_FALSE(other.is(status.st_dev, status.st_ino));
  close(duplicate);
  close(descriptor);
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
