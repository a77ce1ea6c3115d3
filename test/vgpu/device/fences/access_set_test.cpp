// The bytes that one dispatch touched.
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "device/fences/access_set.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::fences;

namespace {

constexpr GpuAddress kPage = 0x7f0000001000;
using Mask = std::array<uint64_t, 64>;

// Returns the bytes of a mask as runs: "0-3 64-127".
std::string bytes(const Mask& mask) {
  std::string text;
  for (uint32_t byte = 0; byte < kPageBytes;) {
    const auto is_set = [&mask](uint32_t at) {
      return at < kPageBytes && (mask[at / 64] >> at % 64 & 1) != 0;
    };
    if (!is_set(byte)) {
      ++byte;
      continue;
    }
    const uint32_t first = byte;
    while (is_set(byte)) ++byte;
    text += (text.empty() ? "" : " ") + std::to_string(first) + '-' + std::to_string(byte - 1);
  }
  return text;
}

const PageAccesses& page(AccessSet& set, GpuAddress address) {
  const PageAccesses* found = nullptr;
  set.for_each([&](GpuAddress at, const PageAccesses& one) {
    if (at == address) found = &one;
  });
  REQUIRE(found != nullptr);
  return *found;
}

std::vector<GpuAddress> pages(AccessSet& set) {
  std::vector<GpuAddress> result;
  set.for_each([&](GpuAddress at, const PageAccesses&) { result.push_back(at); });
  std::sort(result.begin(), result.end());
  return result;
}

class Touched : public AccessSet::Listener {
 public:
  void touched(GpuAddress page, bool writes) noexcept override {
    const std::lock_guard lock(mutex_);
    ++times_[page];
    if (writes) ++written_[page];
  }
  void written(GpuAddress page) noexcept override {
    const std::lock_guard lock(mutex_);
    ++written_[page];
  }
  const std::map<GpuAddress, int>& times() const { return times_; }
  const std::map<GpuAddress, int>& times_written() const { return written_; }

 private:
  std::mutex mutex_;
  std::map<GpuAddress, int> times_, written_;
};

}  // namespace

TEST_CASE("a set without accesses is empty") {
  AccessSet set;
  CHECK(set.empty());
  CHECK_FALSE(set.incomplete());
  set.add_read(kPage, 0, Path::vector, 0);
  CHECK(set.empty());
}

TEST_CASE("reads and writes are recorded byte by byte") {
  AccessSet set;
  set.add_read(kPage + 3, 1, Path::vector, 0);
  set.add_read(kPage + 60, 8, Path::vector, 0);
  set.add_write(kPage + 128, 64, Path::vector, 0);
  set.add_write(kPage + 4095, 1, Path::vector, 0);
  CHECK_FALSE(set.empty());
  CHECK(pages(set) == std::vector{kPage});
  CHECK(bytes(page(set, kPage).read) == "3-3 60-67");
  CHECK(bytes(page(set, kPage).written) == "128-191 4095-4095");
  CHECK(bytes(page(set, kPage).synchronising) == "");
}

TEST_CASE("a range may cross pages") {
  AccessSet set;
  set.add_write(kPage + 4090, 6 + 4096 + 5, Path::vector, 0);
  CHECK(pages(set) == std::vector{kPage, kPage + 4096, kPage + 8192});
  CHECK(bytes(page(set, kPage).written) == "4090-4095");
  CHECK(bytes(page(set, kPage + 4096).written) == "0-4095");
  CHECK(bytes(page(set, kPage + 8192).written) == "0-4");
}

TEST_CASE("a byte that the dispatch wrote before it read it does not count as read") {
  AccessSet set;
  set.add_write(kPage + 8, 4, Path::vector, 0);
  set.add_read(kPage + 4, 12, Path::vector, 0);
  CHECK(bytes(page(set, kPage).read) == "4-7 12-15");
  CHECK(bytes(page(set, kPage).written) == "8-11");
}

TEST_CASE("a byte that the dispatch read before it wrote it counts as read and written") {
  AccessSet set;
  set.add_read(kPage, 8, Path::vector, 0);
  set.add_write(kPage + 4, 8, Path::vector, 0);
  CHECK(bytes(page(set, kPage).read) == "0-7");
  CHECK(bytes(page(set, kPage).written) == "4-11");
}

TEST_CASE("synchronising accesses are marked, and no L1 holds their lines") {
  AccessSet set;
  set.add_read(kPage, 4, Path::synchronising, 0);
  set.add_write(kPage + 64, 8, Path::synchronising, 0);
  CHECK(bytes(page(set, kPage).read) == "0-3");
  CHECK(bytes(page(set, kPage).written) == "64-71");
  CHECK(bytes(page(set, kPage).synchronising) == "0-3 64-71");
  CHECK(page(set, kPage).vector_lines == 0);
  CHECK(page(set, kPage).scalar_lines == 0);
}

TEST_CASE("loads leave lines in the cache that served them, stores in no cache") {
  AccessSet set;
  set.add_read(kPage + 60, 8, Path::vector, 0);
  set.add_read(kPage + 4032, 64, Path::scalar, 0);
  set.add_write(kPage + 256, 64, Path::vector, 0);
  CHECK(page(set, kPage).vector_lines == 0b11);
  CHECK(page(set, kPage).scalar_lines == uint64_t{1} << 63);
}

TEST_CASE("a load of bytes that the dispatch wrote itself also leaves the line in L1") {
  AccessSet set;
  set.add_write(kPage, 4, Path::vector, 0);
  set.add_read(kPage, 4, Path::vector, 1);
  CHECK(bytes(page(set, kPage).read) == "");
  CHECK(page(set, kPage).vector_lines == 1);
  CHECK(page(set, kPage).shared_lines == 1);
}

TEST_CASE("the set records for each line whether several workgroups touched it") {
  AccessSet set;
  set.add_read(kPage, 128, Path::vector, 0);
  set.add_write(kPage + 64, 4, Path::vector, 7);
  set.add_write(kPage + 128, 4, Path::vector, 7);
  set.add_read(kPage + 188, 4, Path::vector, 7);
  set.add_read(kPage + 192, 4, Path::vector, ~0u - 2);
  set.add_read(kPage + 192, 4, Path::vector, 0);
  set.add_read(kPage + 192, 4, Path::vector, ~0u - 2);
  CHECK(page(set, kPage).shared_lines == 0b1010);
}

TEST_CASE("with 128-byte lines of the vector L1, accesses concern both halves of a line there") {
  AccessSet set(nullptr, {}, 128);
  set.add_read(kPage + 64, 4, Path::vector, 0);
  set.add_read(kPage + 512, 4, Path::scalar, 0);
  set.add_write(kPage + 256, 4, Path::vector, 0);
  set.add_write(kPage + 320, 4, Path::vector, 1);
  set.add_read(kPage + 4095, 1, Path::vector, 0);
  set.add_write(kPage + 4032 - 64, 1, Path::vector, 1);
  CHECK(bytes(page(set, kPage).read) == "64-67 512-515 4095-4095");
  CHECK(page(set, kPage).vector_lines == (0b11 | uint64_t{0b11} << 62));
  CHECK(page(set, kPage).scalar_lines == 1 << 8);
  CHECK(page(set, kPage).shared_lines == (0b11 << 4 | uint64_t{0b11} << 62));
}

TEST_CASE("the listener is called once for each page and for its first write, before the access") {
  class Ahead : public AccessSet::Listener {
   public:
    void touched(GpuAddress page_address, bool writes) noexcept override {
      order.push_back({page_address, writes});
      set->for_each([&](GpuAddress at, const PageAccesses& one) {
        if (at == page_address && (bytes(one.read) != "" || bytes(one.written) != "")) late = true;
      });
    }
    void written(GpuAddress page_address) noexcept override {
      order.push_back({page_address, true});
      set->for_each([&](GpuAddress at, const PageAccesses& one) {
        if (at == page_address && (bytes(one.read) == "" || bytes(one.written) != "")) late = true;
      });
    }
    AccessSet* set = nullptr;
    std::vector<std::pair<GpuAddress, bool>> order;
    bool late = false;
  } listener;
  AccessSet set(&listener);
  listener.set = &set;
  set.add_read(kPage + 4000, 200, Path::vector, 0);
  set.add_write(kPage, 4, Path::vector, 0);
  set.add_write_mask(kPage + 4992, 8, Path::vector, 3);
  set.add_write(kPage + 4, 4, Path::vector, 0);
  set.add_write(kPage + 8192, 4, Path::vector, 0);
  set.add_read(kPage + 8192, 4, Path::vector, 0);
  set.add_write(kPage + 8200, 4, Path::vector, 0);
  CHECK(listener.order == std::vector<std::pair<GpuAddress, bool>>{{kPage, false},
                                                                   {kPage + 4096, false},
                                                                   {kPage, true},
                                                                   {kPage + 4096, true},
                                                                   {kPage + 8192, true}});
  CHECK_FALSE(listener.late);
}

TEST_CASE("sets do not mix if one thread fills both, or if one has the address of an earlier one") {
  for (int round = 0; round < 4; ++round) {
    AccessSet a, b;
    a.add_read(kPage, 4, Path::vector, 0);
    b.add_write(kPage + 8, 4, Path::vector, 0);
    a.add_read(kPage + 64, 4, Path::vector, 0);
    CHECK(bytes(page(a, kPage).read) == "0-3 64-67");
    CHECK(bytes(page(a, kPage).written) == "");
    CHECK(bytes(page(b, kPage).written) == "8-11");
    CHECK(bytes(page(b, kPage).read) == "");
  }
}

TEST_CASE("many pages are recorded separately") {
  AccessSet set;
  constexpr uint32_t kPages = 3000;
  for (int round = 0; round < 2; ++round)
    for (uint32_t number = 0; number < kPages; ++number)
      set.add_write(kPage + GpuAddress{number} * kPageBytes + number, 1, Path::vector, 0);
  CHECK(pages(set).size() == kPages);
  uint32_t wrong = 0;
  set.for_each([&](GpuAddress at, const PageAccesses& one) {
    const std::string number = std::to_string((at - kPage) / kPageBytes);
    if (bytes(one.written) != number + '-' + number) ++wrong;
  });
  CHECK(wrong == 0);
}

TEST_CASE(
    "all workers may add at once: nothing is lost, and each page and its first write is reported "
    "once") {
  constexpr uint32_t kWorkers = 4, kPages = 40;
  Touched listener;
  AccessSet set(&listener);
  std::atomic<uint32_t> ready{0};
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      for (++ready; ready < kWorkers;) std::this_thread::yield();
      // Every fourth byte of each page, and a line of its own.
      for (uint32_t number = 0; number < kPages; ++number) {
        const GpuAddress address = kPage + GpuAddress{number} * kPageBytes;
        for (uint32_t byte = worker; byte < 2048; byte += kWorkers)
          set.add_read(address + byte, 1, Path::vector, worker);
        set.add_write(address + 2048 + 64 * worker, 64, Path::vector, worker);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  CHECK_FALSE(set.incomplete());
  CHECK(listener.times().size() == kPages);
  uint32_t wrong = 0;
  for (const auto& [address, times] : listener.times())
    if (times != 1) ++wrong;
  CHECK(listener.times_written().size() == kPages);
  for (const auto& [address, times] : listener.times_written())
    if (times != 1) ++wrong;
  set.for_each([&](GpuAddress, const PageAccesses& one) {
    if (bytes(one.read) != "0-2047" || bytes(one.written) != "2048-2303") ++wrong;
    if (one.vector_lines != 0xffffffff || one.shared_lines != 0xffffffff) ++wrong;
  });
  CHECK(wrong == 0);
}

TEST_CASE("the writes to some pages can count as synchronising") {
  AccessSet set;
  for (const GpuAddress address : {kPage, kPage + kPageBytes}) {
    set.add_read(address, 4, Path::vector, 0);
    set.add_write(address + 8, 4, Path::vector, 0);
  }
  set.synchronise_writes([](GpuAddress address) { return address == kPage; });
  CHECK(bytes(page(set, kPage).synchronising) == "8-11");
  CHECK(bytes(page(set, kPage + kPageBytes).synchronising).empty());
}
