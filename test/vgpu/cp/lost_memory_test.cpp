// Host memory that a kernel uses and that the program has unmapped, protected or truncated: a GPU
// memory fault, not the end of the process.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "device_fixture.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

constexpr size_t kPageSize = 4096;

struct Pages {
  explicit Pages(int protection = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE | MAP_ANONYMOUS,
                 int file = -1)
      : begin(static_cast<std::byte*>(mmap(nullptr, 2 * kPageSize, protection, flags, file, 0))) {}
  ~Pages() { munmap(begin, 2 * kPageSize); }
  std::byte* begin;
};

// A kernel's access, which no sanitizer of the host's code sees: AddressSanitizer would judge it by
// what the address was before this mapping.
__attribute__((no_sanitize("address"), noinline)) void access(volatile std::byte* byte,
                                                              bool write) {
  if (write) {
    *byte = std::byte{7};
  } else {
    [[maybe_unused]] const std::byte seen = *byte;
  }
}

// Makes a kernel access byte 8 of the second page and returns the faults reported while the kernel
// still ran. `lose`: changes the page immediately before, so that nothing else is mapped there
// meanwhile.
template <class Lose>
std::vector<MemoryFault> faults_of(const Pages& pages, bool write, Lose lose) {
  DeviceFixture device;
  ComputeQueue queue(device);
  auto* const byte = static_cast<volatile std::byte*>(pages.begin + kPageSize + 8);
  std::atomic<bool> accessed{false};
  std::atomic<bool> end{false};
  ScriptedKernel* kernel = device.kernel([&](const Slice&) {
    if (!accessed.exchange(true)) {
      lose();
      access(byte, write);
    }
    return end ? gfx9::Workgroup::Result::ended : gfx9::Workgroup::Result::preempted;
  });
  amd_signal_t* done = device.signal(1);
  queue.submit(dispatch(kernel, 1, 1, true, done));
  const bool reported = eventually([&] { return !device.interrupts.faults().empty(); });
  end = true;
  CHECK(reported);
  CHECK(fires(done));
  return device.interrupts.faults();
}

void check(const std::vector<MemoryFault>& faults, const Pages& pages, Access access, bool present,
           const std::string& how) {
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].address == reinterpret_cast<GpuAddress>(pages.begin + kPageSize + 8));
  CHECK(faults[0].access == access);
  CHECK(faults[0].present == present);
  CAPTURE(faults[0].where);
  CHECK(faults[0].where.find(how) != std::string::npos);
}

}  // namespace

TEST_CASE(
    "a kernel's access to host memory that was unmapped is a memory fault while the kernel runs") {
  const Pages pages;
  const auto lose = [&] { munmap(pages.begin + kPageSize, kPageSize); };
  check(faults_of(pages, false, lose), pages, Access::read, false, "unmapped");
}

TEST_CASE(
    "a kernel's access to host memory that was protected is a memory fault that names read or "
    "write") {
  SECTION("a write to a read-only page") {
    const Pages pages;
    const auto lose = [&] { mprotect(pages.begin + kPageSize, kPageSize, PROT_READ); };
    check(faults_of(pages, true, lose), pages, Access::write, true, "protected");
  }
  SECTION("a read of an inaccessible page") {
    const Pages pages;
    const auto lose = [&] { mprotect(pages.begin + kPageSize, kPageSize, PROT_NONE); };
    check(faults_of(pages, false, lose), pages, Access::read, true, "protected");
  }
}

TEST_CASE("a kernel's write to a read-only file is a memory fault and does not change the file") {
  const uptempo::test::TemporaryDirectory directory;
  const std::string name = directory.file("two pages");
  const int writable = open(name.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(ftruncate(writable, 2 * kPageSize) == 0);
  const int file = open(name.c_str(), O_RDONLY);
  const Pages pages(PROT_READ, MAP_SHARED, file);
  check(faults_of(pages, true, [] {}), pages, Access::write, true, "protected");
  char byte = 1;
  CHECK(pread(writable, &byte, 1, kPageSize + 8) == 1);
  CHECK(byte == 0);
  close(file);
  close(writable);
}

TEST_CASE("a kernel's access beyond the end of a file that was truncated is a memory fault") {
  const int file = memfd_create("truncated", MFD_CLOEXEC);
  REQUIRE(ftruncate(file, 2 * kPageSize) == 0);
  const Pages pages(PROT_READ | PROT_WRITE, MAP_SHARED, file);
  const auto lose = [&] {
    if (ftruncate(file, kPageSize) != 0) std::abort();  // REQUIRE is for the test's thread
  };
  check(faults_of(pages, true, lose), pages, Access::write, false, "truncated");
  close(file);
}
