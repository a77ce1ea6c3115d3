// Doorbells that stop their thread in the kernel. Where the kernel refuses userfaultfd there is
// nothing to test; all other tests of doorbells hold there, too.
#include "cp/doorbell/userfaults.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "cp/doorbell/doorbell_watch.hpp"
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/threads.hpp"

using namespace uptempo::vgpu;
using namespace std::chrono_literals;
using uptempo::test::eventually;

namespace {

constexpr size_t kBytes = 8192;

// A page of the program and the device's mapping of it.
struct Page {
  Page() {
    const int file = memfd_create("page", MFD_CLOEXEC);
    REQUIRE(ftruncate(file, kBytes) == 0);
    program = map(file);
    alias = map(file);
    close(file);
  }
  ~Page() {
    munmap(program, kBytes);
    munmap(alias, kBytes);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  static std::byte* map(int file) {
    void* const address = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(address != MAP_FAILED);
    return static_cast<std::byte*>(address);
  }
  static std::atomic_ref<uint64_t> word(std::byte* page) {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(page));
  }

  std::byte* program;
  std::byte* alias;
};

// A thread that stores 1 to the program's page.
class Store {
 public:
  explicit Store(Page& page)
      : thread_([this, &page] {
          task_ = uptempo::test::this_task();
          begun_.store(true, std::memory_order_release);
          Page::word(page.program).store(1, std::memory_order_release);
          done_.store(true, std::memory_order_release);
        }) {}
  ~Store() { thread_.join(); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  bool done() const { return done_.load(std::memory_order_acquire); }
  bool is_stopped() const {
    return eventually([&] {
      return begun_.load(std::memory_order_acquire) && uptempo::test::sleeps(task_) && !done();
    });
  }

 private:
  std::string task_;
  std::atomic<bool> begun_{false}, done_{false};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a store to a protected page waits in the kernel until the page is opened") {
  Userfaults userfaults;
  if (!userfaults.available()) return;
  Page page;
  REQUIRE(userfaults.protect(page.program, kBytes));
  CHECK_FALSE(userfaults.take_stopped());
  {
    const Store store(page);
    userfaults.wait(0ns);
    CHECK(userfaults.take_stopped());
    CHECK(store.is_stopped());
    CHECK(Page::word(page.alias).load() == 0);
    userfaults.open(page.program, kBytes);
  }
  CHECK(Page::word(page.alias).load() == 1);
  CHECK_FALSE(userfaults.take_stopped());
}

TEST_CASE("the device's own mapping of a protected page stays writable") {
  Userfaults userfaults;
  if (!userfaults.available()) return;
  Page page;
  REQUIRE(userfaults.protect(page.program, kBytes));
  Page::word(page.alias).store(2);
  CHECK(Page::word(page.program).load() == 2);
  CHECK_FALSE(userfaults.take_stopped());
}

TEST_CASE("pages that the program has mapped again are protected again") {
  Userfaults userfaults;
  if (!userfaults.available()) return;
  Page page;
  REQUIRE(userfaults.protect(page.program, kBytes));
  REQUIRE(mmap(page.program, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == page.program);
  REQUIRE(userfaults.protect(page.program, kBytes));
  const Store store(page);
  userfaults.wait(0ns);
  CHECK(userfaults.take_stopped());
  userfaults.forget(page.program, kBytes);
}

TEST_CASE("an interruption ends the present wait, or the next one") {
  Userfaults userfaults;
  if (!userfaults.available()) return;
  userfaults.interrupt();
  userfaults.wait(0ns);
  std::thread other([&] {
    std::this_thread::sleep_for(10ms);
    userfaults.interrupt();
  });
  userfaults.wait(0ns);
  other.join();
  CHECK_FALSE(userfaults.take_stopped());
}

TEST_CASE(
    "pages stay open until the store of a thread that was stopped is seen, however late it runs") {
  if (!Userfaults().available()) return;
  Page page;
  DoorbellWatch watch;
  watch.attach(page.program, page.alias, kBytes);
  watch.arm();
  {
    const Store late(page);
    REQUIRE(late.is_stopped());
    watch.sleep(0ns);
    CHECK(watch.awaits_store());
    watch.disarm();
  }
  // As if that thread had not run yet. Another one, that would be stopped, is not.
  watch.arm();
  { const Store store(page); }
  watch.disarm();
  watch.stored();
  CHECK_FALSE(watch.awaits_store());
  watch.arm();
  const Store stopped(page);
  CHECK(stopped.is_stopped());
  watch.disarm();
  CHECK(watch.awaits_store());
  CHECK(eventually([&] { return !watch.awaits_store(); }));  // after kStoreLimitNs
}

TEST_CASE("detaching a page, or the end of its watch, lets a stopped thread continue") {
  if (!Userfaults().available()) return;
  Page page;
  {
    DoorbellWatch watch;
    watch.attach(page.program, page.alias, kBytes);
    watch.arm();
    const Store store(page);
    REQUIRE(store.is_stopped());
    watch.detach(page.program);
  }
  std::optional<Store> store;
  {
    DoorbellWatch watch;
    watch.attach(page.program, page.alias, kBytes);
    watch.arm();
    store.emplace(page);
    REQUIRE(store->is_stopped());
  }
  store.reset();
  CHECK(Page::word(page.alias).load() == 1);
}

TEST_CASE("a watch that records is told of every store, and by no userfault") {
  Page page;
  DoorbellWatch watch;
  watch.record_all();
  watch.attach(page.program, page.alias, kBytes);
  { const Store store(page); }
  const auto record = watch.take_record();
  REQUIRE(record);
  CHECK(record->value == 1);
  CHECK_FALSE(watch.awaits_store());
}
