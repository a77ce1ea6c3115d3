// --check memory observes the host's stores to device memory, as far as the number of mappings
// permits. /proc/self/maps is the oracle for that number.
#include "device/memory_check/host_stores.hpp"

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::vgpu::memory_check {
namespace {

// Device memory with allocations of one page, and a redzone page behind each.
class DeviceMemory {
 public:
  static constexpr uint64_t kStride = 2 * kPageBytes;

  explicit DeviceMemory(uint64_t allocations, uint64_t most_mappings = 0)
      : bytes_(allocations * kStride),
        // Never one mapping with its neighbours.
        memory_(static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
        stores_(checker_, most_mappings) {
    REQUIRE(memory_ != MAP_FAILED);
    checker_.add_buffer(address(0), bytes_, {.is_undefined = true, .host_stores = true});
  }
  ~DeviceMemory() { munmap(memory_, bytes_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  void allocate(uint64_t number) {
    REQUIRE(checker_.allocated(
        {.begin = address(number), .bytes = 256, .reserved_bytes = kStride, .stack = 1}));
    stores_.watch(address(number));
  }
  void free(uint64_t number) {
    checker_.freed(address(number), 1);
    for (const Checker::Released& released : checker_.release_all())
      stores_.unwatch(released.begin);
  }
  // As the program does.
  void store(uint64_t number, uint64_t offset = 0) {
    *reinterpret_cast<volatile std::byte*>(memory_ + number * kStride + offset) = std::byte{1};
  }
  bool has_contents(uint64_t number) {
    return check(*checker_.find(address(number)), address(number), 256, true) == Verdict::fine;
  }
  GpuAddress address(uint64_t number) const {
    return reinterpret_cast<GpuAddress>(memory_) + number * kStride;
  }
  // For this memory.
  uint64_t mappings() const {
    std::ifstream maps("/proc/self/maps");
    uint64_t count = 0;
    for (std::string line; std::getline(maps, line);) {
      const uint64_t begin = std::stoull(line, nullptr, 16);
      if (begin >= address(0) && begin < address(0) + bytes_) ++count;
    }
    return count;
  }
  const HostStores& stores() const { return stores_; }

 private:
  const uint64_t bytes_;
  std::byte* const memory_;
  Checker checker_{[](const Finding&) { FAIL("no access is judged"); }, false};
  HostStores stores_;
};

uint64_t mappings_of_process() {
  std::ifstream maps("/proc/self/maps");
  uint64_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

}  // namespace

TEST_CASE("a store of the host gives the page contents", "[memory_check]") {
  DeviceMemory memory(3);
  for (uint64_t i = 0; i < 3; ++i) memory.allocate(i);
  memory.store(1, 100);
  CHECK_FALSE(memory.has_contents(0));
  CHECK(memory.has_contents(1));
  CHECK_FALSE(memory.has_contents(2));
  // A store beyond an allocation takes place, as without the check.
  memory.store(0, kPageBytes + 8);
  CHECK_FALSE(memory.has_contents(0));
  memory.free(2);
  memory.store(2);  // of the program's next user of the address
  CHECK(memory.stores().unobserved() == 0);
}

TEST_CASE("memory in one state takes one mapping, whatever its number of allocations",
          "[memory_check]") {
  constexpr uint64_t kMany = 1000;
  DeviceMemory memory(kMany);
  for (uint64_t i = 0; i < kMany; ++i) memory.allocate(i);
  CHECK(memory.mappings() == 1);
  for (uint64_t i = 0; i < kMany; ++i) memory.store(i);
  CHECK(memory.mappings() == 1);
  CHECK(memory.stores().unobserved() == 0);
  for (uint64_t i = 0; i < kMany; ++i) CHECK(memory.has_contents(i));
}

TEST_CASE("beyond the limit of mappings, stores are not observed, and that is counted",
          "[memory_check]") {
  constexpr uint64_t kMany = 4000, kRoom = 400;
  const uint64_t before = mappings_of_process();
  DeviceMemory memory(kMany, before + kRoom);
  for (uint64_t i = 0; i < kMany; ++i) memory.allocate(i);
  for (uint64_t i = 0; i < kMany; i += 2) memory.store(i);
  CHECK(mappings_of_process() <= before + kRoom + 20);  // the checker maps memory itself
  CHECK(memory.stores().unobserved() != 0);
  uint64_t stored = 0, others = 0;
  for (uint64_t i = 0; i < kMany; ++i) {
    if (i % 2 == 0)
      stored += memory.has_contents(i) ? 1 : 0;
    else
      others += memory.has_contents(i) ? 1 : 0;
  }
  CHECK(stored == kMany / 2);
  CHECK(others != 0);
  CHECK(others <= memory.stores().unobserved());
  CHECK(others < kMany / 2);  // those before the limit are observed
  // Memory that is free again is observed again.
  for (uint64_t i = 0; i < kMany; ++i) memory.free(i);
  CHECK(memory.mappings() == 1);
}

TEST_CASE("memory that is allocated at the limit counts as stored to", "[memory_check]") {
  DeviceMemory memory(3, 1);
  for (uint64_t i = 0; i < 3; ++i) memory.allocate(i);
  for (uint64_t i = 0; i < 3; ++i) CHECK(memory.has_contents(i));
  CHECK(memory.stores().unobserved() == 3);
  memory.store(0);
  memory.free(1);
  memory.store(1);
  CHECK(memory.mappings() == 1);
}

TEST_CASE("threads store to the same pages", "[memory_check]") {
  constexpr uint64_t kMany = 500;
  for (const uint64_t limit : {uint64_t{0}, mappings_of_process() + 50}) {
    DeviceMemory memory(kMany, limit);
    for (uint64_t i = 0; i < kMany; ++i) memory.allocate(i);
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < 3; ++thread)
      threads.emplace_back([&memory, thread] {
        for (uint64_t i = 0; i < kMany; i += 2) memory.store(i, thread);
      });
    for (std::thread& thread : threads) thread.join();
    for (uint64_t i = 0; i < kMany; i += 2) CHECK(memory.has_contents(i));
  }
}

}  // namespace uptempo::vgpu::memory_check
