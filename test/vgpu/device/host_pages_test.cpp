#include "device/host/host_pages.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <csignal>
#include <numeric>
#include <thread>

#include "device/clock.hpp"
#include "device/fault_chain.hpp"
#include "test/support/posix.hpp"
#include "watched_pages.hpp"

namespace uptempo::vgpu::test {
namespace {

using uptempo::test::in_child;

using Kind = HostEvent::Kind;

PageMask bits(size_t begin, size_t end) {
  PageMask mask{};
  for (size_t byte = begin; byte < end; ++byte) mask[byte / 64] |= uint64_t{1} << byte % 64;
  return mask;
}

TEST_CASE(
    "the first store to a closed page is an event, and the next close reports the stored bytes",
    "[host_pages]") {
  Watched watched;
  REQUIRE(watched.use(1));
  REQUIRE(watched.events().empty());
  const uint64_t before = host_clock_ns();
  store(watched.memory.program + kPage + 100, 7);
  store(watched.memory.program + kPage + 101, 8);
  store(watched.memory.program + kPage + 300, 9);
  const uint64_t after = host_clock_ns();
  CHECK(load(watched.memory.device + kPage + 100) == 7);

  auto events = watched.events();
  REQUIRE(events.size() == 1);
  is(events[0], Kind::opened, kGpu + kPage + 100);
  CHECK(events[0].host_ns >= before);
  CHECK(events[0].host_ns <= after);
  const uint64_t opened_ns = events[0].host_ns;

  REQUIRE(watched.use(1));
  events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::wrote, kGpu + kPage + 100, 2);
  is(events[1], Kind::wrote, kGpu + kPage + 300, 1);
  CHECK(events[0].opened_ns == opened_ns);
  CHECK(events[0].closed_ns >= after);
}

TEST_CASE("host accesses before the first close of a page are no events", "[host_pages]") {
  Watched watched;
  store(watched.memory.program + 5, 1);
  CHECK(load(watched.memory.program + 6) == 0);
  REQUIRE(watched.use(0));
  CHECK(watched.events().empty());
  store(watched.memory.program + 6, 1);
  REQUIRE(watched.use(0));
  const auto events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::opened, kGpu + 6);
  is(events[1], Kind::wrote, kGpu + 6);
}

TEST_CASE("the first load is an event only if the page is hidden from reads", "[host_pages]") {
  Watched watched;
  watched.memory.device[8] = std::byte{42};
  SECTION("hidden from reads") {
    REQUIRE(watched.use(0, true));
    watched.events();
    CHECK(load(watched.memory.program + 8) == 42);
    CHECK(load(watched.memory.program + 9) == 0);
    const auto events = watched.events();
    REQUIRE(events.size() == 1);
    is(events[0], Kind::read, kGpu + 8);
  }
  SECTION("not hidden") {
    REQUIRE(watched.use(0, false));
    watched.events();
    CHECK(load(watched.memory.program + 8) == 42);
    CHECK(watched.events().empty());
  }
  SECTION("hidden, then used without hiding") {
    REQUIRE(watched.use(0, true));
    REQUIRE(watched.use(0, false));
    watched.events();
    CHECK(load(watched.memory.program + 8) == 42);
    CHECK(watched.events().size() == 1);
  }
}

TEST_CASE("hide() closes a readable page to loads", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.host.close(kGpu, false));
  CHECK(load(watched.memory.program) == 0);
  watched.host.hide(kGpu + 5);
  watched.memory.device[8] = std::byte{1};
  CHECK(watched.events().empty());
  CHECK(load(watched.memory.program + 8) == 1);
  CHECK(load(watched.memory.program + 9) == 0);
  auto events = watched.events();
  REQUIRE(events.size() == 1);
  is(events[0], Kind::read, kGpu + 8);
  const PageMask stored = bits(8, 9);
  watched.host.device_wrote(kGpu, &stored);
  store(watched.memory.program + 20, 1);
  REQUIRE(watched.use(0));
  events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::opened, kGpu + 20);
  is(events[1], Kind::wrote, kGpu + 20);
}

TEST_CASE("hide() leaves a page open that the host has stored to", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.host.close(kGpu, false));
  store(watched.memory.program + 20, 1);
  watched.host.hide(kGpu);
  CHECK(load(watched.memory.program + 20) == 1);
  watched.memory.device[8] = std::byte{1};
  const PageMask stored = bits(8, 9);
  watched.host.device_wrote(kGpu, &stored);
  REQUIRE(watched.use(0));
  const auto events = watched.events();
  REQUIRE(events.size() == 3);
  is(events[0], Kind::opened, kGpu + 20);
  is(events[1], Kind::unknown, kGpu + 8);
  is(events[2], Kind::wrote, kGpu + 20);
}

TEST_CASE("hide() has no effect on pages that are not watched", "[host_pages]") {
  Watched watched;
  const TwoMappings device_only(1);
  watched.host.add(kGpu + 16 * kPage, nullptr, device_only.device, kPage);
  REQUIRE(watched.use(1));
  watched.host.hide(kGpu);  // never closed
  watched.host.hide(kGpu + 4 * kPage);
  watched.host.hide(kGpu + 16 * kPage);
  watched.host.unwatch(watched.memory.program + kPage, kPage);
  watched.host.hide(kGpu + kPage);
  for (size_t page = 0; page < 2; ++page) CHECK(load(watched.memory.program + page * kPage) == 0);
  CHECK(watched.events().empty());
}

TEST_CASE("a store after a load and a load after a store are both observed", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.use(0, true));
  CHECK(load(watched.memory.program + 1) == 0);
  store(watched.memory.program + 2, 3);
  auto events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::read, kGpu + 1);
  is(events[1], Kind::opened, kGpu + 2);

  REQUIRE(watched.use(0, true));
  store(watched.memory.program + 2, 4);
  CHECK(load(watched.memory.program + 2) == 4);
  events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::wrote, kGpu + 2);
  is(events[1], Kind::opened, kGpu + 2);
}

TEST_CASE("pages are watched one by one", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.use(1, true));
  store(watched.memory.program + 0, 1);
  store(watched.memory.program + 2 * kPage, 1);
  CHECK(watched.events().empty());
  uint64_t across = 0x0102030405060708;
  REQUIRE(watched.use(0));
  watched.events();
  std::memcpy(watched.memory.program + kPage - 4, &across, sizeof across);  // faults in both pages
  const auto events = watched.events();
  REQUIRE(events.size() == 2);
  CHECK(events[0].address / kPage != events[1].address / kPage);
  CHECK(std::memcmp(watched.memory.device + kPage - 4, &across, sizeof across) == 0);
}

TEST_CASE("a run of changed bytes does not cross a page", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.use(0));
  REQUIRE(watched.use(1));
  std::memset(watched.memory.program + kPage - 10, 1, 20);
  watched.events();
  REQUIRE(watched.use(0));
  REQUIRE(watched.use(1));
  const auto events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[0], Kind::wrote, kGpu + kPage - 10, 10);
  is(events[1], Kind::wrote, kGpu + kPage, 10);
}

TEST_CASE("a store that changes nothing opens the page and writes no bytes", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.use(0));
  store(watched.memory.program, 0);
  REQUIRE(watched.use(0));
  const auto events = watched.events();
  REQUIRE(events.size() == 1);
  is(events[0], Kind::opened, kGpu);
}

TEST_CASE("device stores before the host's first store do not count as the host's",
          "[host_pages]") {
  Watched watched;
  REQUIRE(watched.host.close(kGpu, false));
  watched.memory.device[10] = std::byte{1};
  const PageMask stored = bits(10, 11);
  watched.host.device_wrote(kGpu, &stored);
  store(watched.memory.program + 20, 1);
  REQUIRE(watched.use(0));
  const auto events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[1], Kind::wrote, kGpu + 20);
}

TEST_CASE("bytes that a dispatch stored while the page was open are reported as unknown",
          "[host_pages]") {
  Watched watched;
  REQUIRE(watched.host.close(kGpu, false));
  store(watched.memory.program + 20, 1);     // opens the page
  watched.memory.device[10] = std::byte{1};  // the dispatch continues to store
  const PageMask stored = bits(8, 12);
  watched.host.device_wrote(kGpu, &stored);
  REQUIRE(watched.use(0));
  auto events = watched.events();
  REQUIRE(events.size() == 3);
  is(events[1], Kind::unknown, kGpu + 10);
  is(events[2], Kind::wrote, kGpu + 20);

  store(watched.memory.program + 10, 2);  // the mask covers only the earlier time
  REQUIRE(watched.use(0));
  events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[1], Kind::wrote, kGpu + 10);
}

TEST_CASE("changes while another dispatch uses the page are reported as unknown", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.host.close(kGpu, false));  // begins a use that does not end
  store(watched.memory.program + 20, 1);
  REQUIRE(watched.host.close(kGpu, false));
  auto events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[1], Kind::unknown, kGpu + 20);
  watched.host.device_wrote(kGpu, nullptr);
  watched.host.device_wrote(kGpu, nullptr);
  store(watched.memory.program + 21, 1);
  REQUIRE(watched.use(0));
  events = watched.events();
  REQUIRE(events.size() == 2);
  is(events[1], Kind::wrote, kGpu + 21);
}

TEST_CASE(
    "memory that the host cannot access counts as watched, memory that was not added does not",
    "[host_pages]") {
  Watched watched;
  const TwoMappings device_only(1);
  watched.host.add(kGpu + 16 * kPage, nullptr, device_only.device, kPage);
  CHECK(watched.host.close(kGpu + 16 * kPage, true));
  CHECK_FALSE(watched.host.close(kGpu + 17 * kPage, true));
  CHECK_FALSE(watched.host.close(kGpu + 4 * kPage, true));
  CHECK_FALSE(watched.host.close(kGpu - 1, true));
  CHECK(watched.use(3));
}

TEST_CASE("the pages of a removed buffer are open and not watched", "[host_pages]") {
  Watched watched;
  for (const size_t page : {0u, 1u, 3u}) REQUIRE(watched.use(page, true));
  watched.events();
  watched.host.remove(kGpu);
  for (size_t page = 0; page < 4; ++page) store(watched.memory.program + page * kPage, 1);
  CHECK(watched.events().empty());
  CHECK_FALSE(watched.use(0));
  watched.host.remove(kGpu);
}

TEST_CASE("a page that faults too often stays open and is no longer watched", "[host_pages]") {
  constexpr uint64_t kHour = 3'600'000'000'000;
  Watched watched(4, HostPages::kEvents, kHour);
  for (uint32_t fault = 0; fault <= HostPages::kFloodFaults; ++fault) {
    REQUIRE(watched.use(0));
    store(watched.memory.program, fault % 251);
    watched.events();
  }
  CHECK_FALSE(watched.use(0));
  CHECK(watched.host.unwatched() == 1);
  CHECK(watched.host.lost() == 0);
  CHECK_FALSE(watched.use(0, true));
  CHECK(load(watched.memory.program) < 251);
  CHECK(watched.use(1));  // other pages are still watched
  watched.events();
  store(watched.memory.program + kPage, 1);
  CHECK(watched.events().size() == 1);
}

TEST_CASE("a page that faults often, but not within one window, is still watched", "[host_pages]") {
  Watched watched(4, HostPages::kEvents, 0);
  for (uint32_t fault = 0; fault <= 2 * HostPages::kFloodFaults; ++fault) {
    REQUIRE(watched.use(0));
    store(watched.memory.program, fault % 251);
    REQUIRE_FALSE(watched.events().empty());
  }
  CHECK(watched.host.unwatched() == 0);
}

TEST_CASE("a page whose event finds no room stays open and is counted as lost", "[host_pages]") {
  Watched watched(4, 2);
  for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, page == 3));
  store(watched.memory.program, 1);
  store(watched.memory.program + kPage, 1);
  SECTION("event of a store") {
    store(watched.memory.program + 2 * kPage, 1);
    CHECK(load(watched.memory.device + 2 * kPage) == 1);
    CHECK_FALSE(watched.use(2));
  }
  SECTION("event of a load") {
    CHECK(load(watched.memory.program + 3 * kPage) == 0);
    CHECK_FALSE(watched.use(3));
  }
  SECTION("event of a close") {
    CHECK_FALSE(watched.use(0));
    store(watched.memory.program, 2);
    CHECK_FALSE(watched.use(0));
  }
  CHECK(watched.host.lost() == 1);
  CHECK(watched.host.unwatched() == 0);
  CHECK(watched.events().size() == 2);
}

TEST_CASE("pages are unwatched on request", "[host_pages]") {
  Watched watched;
  for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
  watched.host.unwatch(watched.memory.program + kPage + 5, kPage);
  CHECK(watched.host.unwatched() == 2);
  store(watched.memory.program + kPage, 1);
  store(watched.memory.program + 2 * kPage, 1);
  CHECK(watched.events().empty());
  CHECK_FALSE(watched.use(1));
  CHECK_FALSE(watched.use(2));
  store(watched.memory.program + 3 * kPage, 1);
  CHECK(watched.events().size() == 1);
}

// --- processes and the program's own faults ---

TEST_CASE("a fork child may use the pages, and its parent continues to watch them",
          "[host_pages]") {
  Watched watched;
  for (size_t page = 0; page < 4; ++page) REQUIRE(watched.use(page, true));
  CHECK(in_child([&] {
          unsigned sum = load(watched.memory.program);
          store(watched.memory.program + kPage, 5);
          store(watched.memory.program, 6);
          HostEvent event;
          return sum == 0 && load(watched.memory.program + kPage) == 5 && !watched.host.take(event)
                     ? 0
                     : 1;
        }) == 0);
  CHECK(watched.events().empty());
  CHECK(load(watched.memory.program + kPage) == 5);  // shared pages
  const auto events = watched.events();
  REQUIRE(events.size() == 1);
  is(events[0], Kind::read, kGpu + kPage);
}

TEST_CASE("the stores of a vfork child are observed", "[host_pages]") {
  Watched watched;
  REQUIRE(watched.use(0));
  // Does what vfork() does, with the C library's own clone(), because sanitizers replace vfork()
  // and clone() by fork().
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(libc != nullptr);
  const auto real_clone = reinterpret_cast<decltype(&::clone)>(dlsym(libc, "clone"));
  alignas(16) static std::array<std::byte, 256 * 1024> stack;
  const auto body = [](void* target) {
    store(static_cast<std::byte*>(target), 9);
    return 0;
  };
  const pid_t child = real_clone(body, stack.data() + stack.size(),
                                 CLONE_VM | CLONE_VFORK | SIGCHLD, watched.memory.program);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  const auto events = watched.events();
  REQUIRE(events.size() == 1);
  is(events[0], Kind::opened, kGpu);
  REQUIRE(watched.use(0));
  CHECK(watched.events().size() == 1);
}

std::atomic<std::byte*> guarded{nullptr};
std::atomic<int> own_faults{0};

TEST_CASE("the program receives its own faults, also on a page that it has protected itself",
          "[host_pages]") {
  Watched watched;
  struct sigaction previous {};
  struct sigaction action {};
  action.sa_handler = [](int) {
    ++own_faults;
    mprotect(guarded.load(), kPage, PROT_READ | PROT_WRITE);
  };
  if (!replace_program_action(SIGSEGV, &action, &previous))
    FAIL("the fault chain is not installed");
  own_faults = 0;
  const TwoMappings other(1);
  mprotect(other.program, kPage, PROT_NONE);
  guarded = other.program;
  store(other.program, 1);
  CHECK(own_faults == 1);
  mprotect(watched.memory.program, kPage, PROT_READ);
  guarded = watched.memory.program;
  CHECK(load(watched.memory.program) == 0);
  store(watched.memory.program, 1);
  CHECK(own_faults == 2);
  replace_program_action(SIGSEGV, &previous, nullptr);
  CHECK(watched.events().empty());
}

// --- many threads ---

// Checks the stored bytes that events report, byte by byte, for any order of faults and closes.
TEST_CASE("every byte that several threads store is reported while others close the pages",
          "[host_pages][threads]") {
  constexpr size_t kPages = 8;
  constexpr size_t kThreads = 3;
  constexpr size_t kRounds = 60;
  Watched watched(kPages);
  std::vector<uint8_t> reported(kPages * kPage, 0);
  std::atomic<size_t> running{kThreads};
  std::atomic<bool> end{false};
  for (size_t page = 0; page < kPages; ++page) REQUIRE(watched.use(page));
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      // Each thread changes its own bytes of all pages, each byte once.
      for (size_t round = 0; round < kRounds; ++round)
        for (size_t page = 0; page < kPages; ++page)
          store(watched.memory.program + page * kPage + round * kThreads + thread, 1);
      --running;
    });
  std::thread closer([&] {
    while (!end)
      for (size_t page = 0; page < kPages; ++page) watched.use(page, page % 2 == 0);
  });
  const auto drain = [&] {
    for (const HostEvent& event : watched.events())
      for (uint32_t byte = 0; event.kind == Kind::wrote && byte < event.bytes; ++byte)
        ++reported[event.address - kGpu + byte];
  };
  while (running != 0) {
    drain();
    std::this_thread::yield();
  }
  end = true;
  for (std::thread& thread : threads) thread.join();
  closer.join();
  drain();
  for (size_t page = 0; page < kPages; ++page) {
    REQUIRE(watched.use(page));
    drain();
  }
  CHECK(watched.host.unwatched() + watched.host.lost() == 0);
  for (size_t page = 0; page < kPages; ++page)
    for (size_t byte = 0; byte < kPage; ++byte)
      REQUIRE(unsigned{reported[page * kPage + byte]} == (byte < kRounds * kThreads ? 1u : 0u));
}

TEST_CASE("all threads that fault on one page at once continue, and one fault is reported",
          "[host_pages][threads]") {
  constexpr size_t kThreads = 4;
  constexpr int kRounds = 200;
  Watched watched(1);
  std::atomic<int> round{0};
  std::atomic<size_t> done{0};
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int mine = 1; mine <= kRounds; ++mine) {
        while (round < mine) std::this_thread::yield();
        store(watched.memory.program + thread, static_cast<unsigned>(mine));
        ++done;
      }
    });
  bool one_each = true;
  for (int mine = 1; mine <= kRounds; ++mine) {
    REQUIRE(watched.use(0, true));
    watched.events();
    done = 0;
    round = mine;
    while (done < kThreads) std::this_thread::yield();
    const auto events = watched.events();
    one_each = one_each && events.size() == 1 && events[0].kind == Kind::opened;
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(one_each);
}

TEST_CASE("buffers are added and removed while threads use and close them",
          "[host_pages][threads]") {
  HostPages host;
  const TwoMappings memory(4);
  const TwoMappings another(4);
  std::atomic<bool> end{false};
  std::thread user([&] {
    for (unsigned round = 0; !end; ++round)
      for (size_t page = 0; page < 4; ++page) {
        store(memory.program + page * kPage, round);
        load(another.program + page * kPage + 1);
      }
  });
  std::thread closer([&] {
    while (!end)
      for (size_t page = 0; page < 4; ++page)
        for (const GpuAddress base : {kGpu, kGpu + 64 * kPage})
          if (host.close(base + page * kPage, true))
            host.device_wrote(base + page * kPage, nullptr);
  });
  for (int round = 0; round < 500; ++round) {
    host.add(kGpu, memory.program, memory.device, memory.bytes);
    host.add(kGpu + 64 * kPage, another.program, another.device, another.bytes);
    HostEvent event;
    while (host.take(event)) {
    }
    host.remove(kGpu);
    host.remove(kGpu + 64 * kPage);
  }
  end = true;
  user.join();
  closer.join();
  for (size_t page = 0; page < 4; ++page) store(memory.program + page * kPage, 1);
}

}  // namespace
}  // namespace uptempo::vgpu::test
