#include "device/memory.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

constexpr uint64_t kPage = 4096;

Mapping page_at(GpuAddress begin, std::byte* host, uint64_t pages = 1) {
  return {.begin = begin, .end = begin + pages * kPage, .host = host};
}

TEST_CASE("an address inside a mapping translates to the host alias", "[memory]") {
  std::array<std::byte, 2 * kPage> host{};
  AddressSpace space;
  space.map(page_at(0x10000, host.data(), 2));
  AddressSpace::Reader reader(space);
  reader.enter();
  CHECK(reader.translate(0x10000, 1, Access::read) == host.data());
  CHECK(reader.translate(0x10123, 8, Access::write) == host.data() + 0x123);
  CHECK(reader.translate(0x10000, 2 * kPage, Access::read) == host.data());
  reader.leave();
}

TEST_CASE("an access that leaves its mapping does not translate, even where another one follows",
          "[memory]") {
  std::array<std::byte, 2 * kPage> host{};
  AddressSpace space;
  space.map(page_at(0x10000, host.data()));
  space.map(page_at(0x11000, host.data() + kPage));
  AddressSpace::Reader reader(space);
  reader.enter();
  CHECK(reader.translate(0x0ffff, 1, Access::read) == nullptr);
  CHECK(reader.translate(0x10ffc, 8, Access::read) == nullptr);
  CHECK(reader.translate(0x12000, 1, Access::read) == nullptr);
  CHECK(reader.translate(~uint64_t{0}, 8, Access::read) == nullptr);
  reader.leave();
}

TEST_CASE("a page permits only the accesses of its permissions", "[memory]") {
  std::array<std::byte, kPage> host{};
  AddressSpace space;
  Mapping mapping = page_at(0x10000, host.data());
  mapping.writable = false;
  mapping.executable = false;
  space.map(mapping);
  AddressSpace::Reader reader(space);
  reader.enter();
  CHECK(reader.translate(0x10000, 4, Access::read) != nullptr);
  CHECK(reader.translate(0x10000, 4, Access::write) == nullptr);
  CHECK(reader.translate(0x10000, 4, Access::atomic) == nullptr);
  CHECK(reader.translate(0x10000, 4, Access::execute) == nullptr);
  reader.leave();
}

TEST_CASE("overlapping and empty mappings are refused with their ranges and change nothing",
          "[memory]") {
  std::array<std::byte, 4 * kPage> host{};
  AddressSpace space;
  space.map(page_at(0x20000, host.data(), 2));
  const uint64_t before = space.generation();
  for (const GpuAddress begin : {0x1f000u, 0x20000u, 0x21000u}) {
    CAPTURE(begin);
    CHECK_THROWS_AS(space.map(page_at(begin, host.data(), 2)), std::invalid_argument);
  }
  CHECK_THROWS_AS(space.map(page_at(0x1f000, host.data(), 4)), std::invalid_argument);
  CHECK_THROWS_AS(space.map({.begin = 0x5000, .end = 0x5000, .host = host.data()}),
                  std::invalid_argument);
  CHECK(space.generation() == before);
  try {
    space.map(page_at(0x21000, host.data()));
    FAIL("the overlap was accepted");
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    CHECK(text.find("[0x21000, 0x22000)") != std::string::npos);
    CHECK(text.find("[0x20000, 0x22000)") != std::string::npos);
  }
  space.map(page_at(0x1f000, host.data()));
  space.map(page_at(0x22000, host.data()));
}

TEST_CASE("unmap accepts only the address at which a mapping begins", "[memory]") {
  std::array<std::byte, 2 * kPage> host{};
  AddressSpace space;
  space.map(page_at(0x10000, host.data(), 2));
  CHECK_FALSE(space.unmap(0x11000));
  CHECK_FALSE(space.unmap(0xf000));
  CHECK(space.unmap(0x10000));
  CHECK_FALSE(space.unmap(0x10000));
  AddressSpace::Reader reader(space);
  reader.enter();
  CHECK(reader.find(0x10000) == nullptr);
  reader.leave();
}

TEST_CASE("memory that is mapped during a section is found in it, and earlier results stay valid",
          "[memory]") {
  std::array<std::byte, 2 * kPage> host{};
  AddressSpace space;
  space.map(page_at(0x10000, host.data()));
  AddressSpace::Reader reader(space);
  reader.enter();
  const Mapping* first = reader.find(0x10000);
  REQUIRE(first != nullptr);
  CHECK(reader.find(0x11000) == nullptr);
  space.map(page_at(0x11000, host.data() + kPage));
  CHECK(reader.translate(0x11010, 4, Access::read) == host.data() + kPage + 0x10);
  CHECK(first->at(0x10008) == host.data() + 8);
  CHECK(reader.translate(0x10000, 4, Access::read) == host.data());
  reader.leave();
}

TEST_CASE("the generation changes with every map and unmap", "[memory]") {
  std::array<std::byte, kPage> host{};
  AddressSpace space;
  const uint64_t first = space.generation();
  space.map(page_at(0x10000, host.data()));
  const uint64_t second = space.generation();
  CHECK(second != first);
  space.unmap(0x10000);
  CHECK(space.generation() != second);
}

TEST_CASE("many mappings without an unmap between them are all found", "[memory]") {
  constexpr int kCount = 500;
  std::vector<std::byte> host(kCount * kPage);
  AddressSpace space;
  AddressSpace::Reader reader(space);
  for (int i = kCount - 1; i >= 0; --i) {
    const auto index = static_cast<uint64_t>(i);
    space.map(page_at(0x100000 + index * 2 * kPage, host.data() + index * kPage));
  }
  reader.enter();
  for (uint64_t i = 0; i < kCount; ++i) {
    REQUIRE(reader.translate(0x100000 + i * 2 * kPage + 8, 8, Access::read) ==
            host.data() + i * kPage + 8);
    REQUIRE(reader.find(0x100000 + i * 2 * kPage + kPage) == nullptr);
  }
  reader.leave();
}

TEST_CASE("unmap waits for a reader that is inside a section", "[memory][threads]") {
  std::array<std::byte, kPage> host{};
  AddressSpace space;
  space.map(page_at(0x10000, host.data()));
  AddressSpace::Reader reader(space);
  reader.enter();
  REQUIRE(reader.find(0x10000) != nullptr);
  std::atomic<bool> unmapped{false};
  std::thread writer([&] {
    space.unmap(0x10000);
    unmapped = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK_FALSE(unmapped);
  reader.leave();
  writer.join();
  CHECK(unmapped);
}

// The purpose of the scheme: after unmap() returns, the memory may be destroyed although readers
// run. Freed blocks are overwritten, so a reader that still uses one reads a wrong value, and
// sanitizers report the access.
TEST_CASE("memory may be freed once unmap has returned, whatever readers do", "[memory][threads]") {
  constexpr int kReaders = 3;
  constexpr int kRounds = 3000;
  AddressSpace space;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> hits{0};
  std::atomic<bool> wrong{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i)
    threads.emplace_back([&] {
      AddressSpace::Reader reader(space);
      while (!stop.load(std::memory_order_relaxed)) {
        reader.enter();
        for (uint64_t slot = 0; slot < 4; ++slot) {
          const std::byte* host = reader.translate(0x10000 + slot * kPage, 8, Access::read);
          if (host == nullptr) continue;
          // unmap() runs now, and must wait. Without this, a reader would keep its processor for a
          // whole time slice.
          std::this_thread::yield();
          uint64_t value = 0;
          std::memcpy(&value, host, sizeof value);
          if (value != 0x1000 + slot) wrong = true;
          hits.fetch_add(1, std::memory_order_relaxed);
        }
        reader.leave();
      }
    });
  std::array<std::unique_ptr<std::array<std::byte, kPage>>, 4> blocks;
  for (int round = 0; round < kRounds || hits.load(std::memory_order_relaxed) == 0; ++round) {
    const auto slot = static_cast<uint64_t>(round) % 4;
    auto& block = blocks[slot];
    if (block != nullptr) {
      REQUIRE(space.unmap(0x10000 + slot * kPage));
      block->fill(std::byte{0xee});
    }
    block = std::make_unique<std::array<std::byte, kPage>>();
    const uint64_t value = 0x1000 + slot;
    std::memcpy(block->data(), &value, sizeof value);
    space.map(page_at(0x10000 + slot * kPage, block->data()));
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(wrong);
  CHECK(hits > 0);
}

}  // namespace
}  // namespace uptempo::vgpu
