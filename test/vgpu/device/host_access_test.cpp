#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <limits>

#include "test/support/posix.hpp"
#include "watched_pages.hpp"

namespace uptempo::vgpu::test {
namespace {

using uptempo::test::in_child;
using uptempo::test::Pipe;

using Kind = HostEvent::Kind;

TEST_CASE("without watched pages, HostAccess has no effect", "[host_access]") {
  REQUIRE(HostPages::of_process() == nullptr);
  const HostAccess access(nullptr, 100, true);
}

TEST_CASE("a system call may fill closed pages, and its stores are found", "[host_access]") {
  Watched watched;
  for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
  const int zero = open("/dev/zero", O_RDONLY);
  std::byte* const target = watched.memory.program + kPage - 100;
  REQUIRE(read(zero, target, 200) == -1);  // as without HostAccess
  REQUIRE(errno == EFAULT);
  const Pipe pipe;
  REQUIRE(write(pipe.write_end(), "0123456789", 10) == 10);
  {
    errno = 77;
    const HostAccess access(target, 4096, true);
    CHECK(errno == 77);
    CHECK(read(pipe.read_end(), target, 4096) == 10);
  }
  auto events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::opened, kGpu + kPage - 100);
  is(events[1], Kind::opened, kGpu + kPage);
  REQUIRE(watched.use(0));
  REQUIRE(watched.use(1));
  events = watched.events();
  REQUIRE(events.size() == 1);
  is(events[0], Kind::wrote, kGpu + kPage - 100, 10);
  close(zero);
}

TEST_CASE("a page that a system call reads is not hidden from it", "[host_access]") {
  Watched watched;
  REQUIRE(watched.host.close(kGpu, false));
  const int null = open("/dev/null", O_WRONLY);
  {
    const HostAccess access(watched.memory.program, 100, false);
    watched.host.hide(kGpu);
    CHECK(write(null, watched.memory.program, 100) == 100);
  }
  close(null);
  watched.host.device_wrote(kGpu, nullptr);
}

TEST_CASE("a system call that reads closed pages is a read of each page", "[host_access]") {
  Watched watched;
  for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
  const int null = open("/dev/null", O_WRONLY);
  {
    const HostAccess access(watched.memory.program + 7, kPage, false);
    CHECK(write(null, watched.memory.program + 7, kPage) == static_cast<ssize_t>(kPage));
  }
  close(null);
  const auto events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::read, kGpu + 7);
  is(events[1], Kind::read, kGpu + kPage);
  store(watched.memory.program, 1);  // stores still fault
  CHECK(watched.events().size() == 1);
}

TEST_CASE("a page that is closed during a system call stays accessible to it, and no store is lost",
          "[host_access]") {
  Watched watched;
  REQUIRE(watched.use(0, true));
  {
    const HostAccess access(watched.memory.program, 100, true);
    store(watched.memory.device, 1);  // like the kernel's stores, which reach the same pages
    REQUIRE(watched.use(0, true));
    auto events = watched.events();
    REQUIRE(events.size() == 2);
    is(events[0], Kind::opened, kGpu);
    is(events[1], Kind::wrote, kGpu);
    const int zero = open("/dev/zero", O_RDONLY);
    CHECK(read(zero, watched.memory.program, 1) == 1);
    close(zero);
  }
  REQUIRE(watched.use(0, true));  // now it is closed
  auto events = watched.events();
  REQUIRE(events.size() == 1);
  is(events[0], Kind::wrote, kGpu);
  CHECK(load(watched.memory.program) == 0);
  CHECK(watched.events().size() == 1);
}

TEST_CASE("ranges that are partly watched, empty or past all memory are accepted",
          "[host_access]") {
  Watched watched;
  REQUIRE(watched.use(0, true));
  REQUIRE(watched.use(3, true));
  { const HostAccess nothing(watched.memory.program, 0, true); }
  CHECK(watched.events().empty());
  { const HostAccess all(nullptr, std::numeric_limits<size_t>::max(), false); }
  CHECK(watched.events().size() == 2);
  {
    const HostAccess end(watched.memory.program + 4 * kPage - 1, std::numeric_limits<size_t>::max(),
                         true);
  }
  CHECK(watched.events().size() == 1);
}

TEST_CASE("a fork child may pass inherited pages to system calls", "[host_access]") {
  Watched watched;
  REQUIRE(watched.use(0, true));
  CHECK(in_child([&] {
          const int zero = open("/dev/zero", O_RDONLY);
          const HostAccess access(watched.memory.program, 100, true);
          return read(zero, watched.memory.program, 100) == 100 ? 0 : 1;
        }) == 0);
  CHECK(watched.events().empty());
}

}  // namespace
}  // namespace uptempo::vgpu::test
