// The memory checker: bits of initialised bytes, allocations, quarantine, and the judgement of
// copies. memory_frees_test.cpp has wrong frees, cp/memory_watch_test.cpp the accesses of kernels.
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "checked_memory.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::memory_check {

TEST_CASE("bits of initialised bytes are those of a model", "[memory_check]") {
  std::mt19937 random(1);
  constexpr uint64_t kBytes = 1000;
  std::vector<std::atomic<uint64_t>> words(16), others(16);
  std::vector<bool> model(kBytes), other_model(kBytes);
  const auto range = [&](uint64_t limit) {
    const uint64_t offset = random() % limit;
    return std::pair(offset, 1 + random() % (limit - offset));
  };
  for (int step = 0; step < 20'000; ++step) {
    const auto [offset, bytes] = range(kBytes);
    switch (random() % 8) {
      case 0:
        if (bytes > 40) break;  // so that bytes without contents remain
        mark_initialised(words.data(), offset, bytes);
        for (uint64_t i = 0; i < bytes; ++i) model[offset + i] = true;
        break;
      case 1:
        if (bytes > 40) break;
        mark_initialised(others.data(), offset, bytes);
        for (uint64_t i = 0; i < bytes; ++i) other_model[offset + i] = true;
        break;
      case 2: {
        const uint64_t from = random() % (kBytes - bytes + 1);
        copy_initialised(words.data(), offset, others.data(), from, bytes);
        for (uint64_t i = 0; i < bytes; ++i) model[offset + i] = other_model[from + i];
        break;
      }
      case 3:
        if (random() % 50 != 0) break;
        for (auto& word : others) word = 0;
        other_model.assign(kBytes, false);
        break;
      default: {
        bool all = true, any = false;
        for (uint64_t i = 0; i < bytes; ++i) {
          all = all && model[offset + i];
          any = any || model[offset + i];
        }
        REQUIRE(all_initialised(words.data(), offset, bytes) == all);
        REQUIRE(any_initialised(words.data(), offset, bytes) == any);
      }
    }
  }
}

TEST_CASE("an access must lie in the bytes that the program asked for", "[memory_check]") {
  Checked checked;
  CHECK(checked.allocate(kBlock, 1000));
  checked.store(kBlock, 1000);
  CHECK(checked.verdict(kBlock, 1000, true) == Verdict::fine);
  CHECK(checked.verdict(kBlock + 996, 4, true) == Verdict::fine);
  CHECK(checked.verdict(kBlock + 997, 4, true) == Verdict::outside);
  CHECK(checked.verdict(kBlock + 1000, 1, false) == Verdict::outside);
  CHECK(checked.verdict(kBlock + 4096, 4, false) == Verdict::outside);  // the redzone
  // The rest of a block that holds an allocation is no memory of the program's.
  CHECK(checked.verdict(kBlock + 3 * 4096, 4, false) == Verdict::outside);
}

TEST_CASE("a buffer of the driver without allocations is all valid", "[memory_check]") {
  Checked checked;
  CHECK(checked.verdict(kBlock + 12345, 64, true) == Verdict::fine);
  CHECK(checked.verdict(kBlock + kBlockBytes, 4, true) == Verdict::outside);
  checked.checker.remove_buffer(kBlock);
  CHECK(checked.verdict(kBlock + 12345, 64, true) == Verdict::outside);
}

TEST_CASE("a finding names the nearest allocation, with the distance", "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 1000, 11);
  checked.allocate(kBlock + 2 * 4096, 64, 12);
  checked.access(kBlock + 1004, 4, false, 0x100);
  checked.access(kBlock + 2 * 4096 - 8, 4, false, 0x108);
  checked.access(kBlock + (uint64_t{64} << 20), 4, false, 0x110);
  REQUIRE(checked.findings.size() == 3);
  for (const Finding& finding : checked.findings) CHECK(finding.what == Class::out_of_bounds);
  REQUIRE(checked.findings[0].buffer);
  CHECK(checked.findings[0].buffer->begin == kBlock);
  CHECK(checked.findings[0].buffer->bytes == 1000);
  CHECK(checked.findings[0].buffer->allocated == 11);
  REQUIRE(checked.findings[1].buffer);
  CHECK(checked.findings[1].buffer->begin == kBlock + 2 * 4096);
  CHECK(checked.findings[1].buffer->allocated == 12);
  CHECK_FALSE(checked.findings[2].buffer);  // 64 MiB away
}

TEST_CASE("an instruction is reported once per class, and its repetitions are counted",
          "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 1000);
  for (int i = 0; i < 5; ++i) checked.access(kBlock + 1000, 4, false, 0x100);
  checked.access(kBlock, 4, true, 0x100);
  CHECK(checked.findings.size() == 2);
  CHECK(checked.checker.repeated() == 4);
}

TEST_CASE("device memory has no contents until something stores to it", "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 1000);
  CHECK(checked.verdict(kBlock + 8, 4, true) == Verdict::uninitialised);
  CHECK(checked.verdict(kBlock + 8, 4, false) == Verdict::fine);
  checked.store(kBlock + 8, 4);
  CHECK(checked.verdict(kBlock + 8, 4, true) == Verdict::fine);
  CHECK(checked.verdict(kBlock + 7, 2, true) == Verdict::uninitialised);
  // Another allocation at the same place has none either.
  checked.checker.expose(kBlock);
  CHECK(checked.checker.freed(kBlock, 2).what == Checker::Freed::What::passed);
  checked.allocate(kBlock, 1000);
  CHECK(checked.verdict(kBlock + 8, 4, true) == Verdict::uninitialised);
  // Host memory, and memory that another process may store to, has.
  checked.checker.share_buffer(kBlock);
  CHECK(checked.verdict(kBlock + 8, 4, true) == Verdict::fine);
  checked.checker.add_buffer(kBlock + kBlockBytes, 1 << 20, {});
  CHECK_FALSE(checked.allocate(kBlock + kBlockBytes, 100));
  CHECK(checked.verdict(kBlock + kBlockBytes, 100, true) == Verdict::fine);
}

TEST_CASE("copies pass on which bytes have contents", "[memory_check]") {
  Checked checked;
  const GpuAddress from = kBlock, to = kBlock + 0x10000;
  checked.allocate(from, 256);
  checked.allocate(to, 256);
  checked.store(from + 16, 32);
  checked.store(to, 256);
  checked.checker.copied(kKernel, Checker::Range{from + 10, 100}, {to + 3, 100});
  CHECK(checked.verdict(to, 3, true) == Verdict::fine);
  CHECK(checked.verdict(to + 8, 1, true) == Verdict::uninitialised);
  CHECK(checked.verdict(to + 9, 32, true) == Verdict::fine);
  CHECK(checked.verdict(to + 41, 1, true) == Verdict::uninitialised);
  CHECK(checked.verdict(to + 103, 100, true) == Verdict::fine);
  // A fill.
  checked.checker.copied(kKernel, std::nullopt, {to, 256});
  CHECK(checked.verdict(to, 256, true) == Verdict::fine);
  CHECK(checked.findings.empty());
}

TEST_CASE("a copy beyond an allocation is a finding at the first byte beyond", "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 1000);
  checked.allocate(kBlock + 0x10000, 4096);
  checked.checker.copied(kKernel, Checker::Range{kBlock + 0x10000, 1024}, {kBlock, 1024});
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::out_of_bounds);
  CHECK(checked.findings[0].access == Access::write);
  CHECK(checked.findings[0].address == kBlock + 1000);
  CHECK(checked.findings[0].bytes == 24);
}

TEST_CASE("freed memory stays known, in quarantine and after it", "[memory_check]") {
  using What = Checker::Freed::What;
  Checked checked;
  checked.allocate(kBlock, 1000, 11);
  const auto first = checked.checker.freed(kBlock, 12);
  CHECK(first.what == What::held);
  CHECK(first.release.empty());
  CHECK(checked.verdict(kBlock, 4, true) == Verdict::freed);
  checked.access(kBlock + 4, 4, true, 0x100);
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::use_after_free);
  CHECK(checked.findings[0].buffer->allocated == 11);
  CHECK(checked.findings[0].buffer->freed == 12);

  const auto again = checked.checker.freed(kBlock, 13);
  CHECK(again.what == What::twice);
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[1].what == Class::double_free);
  CHECK(checked.findings[1].freed_again == 13);
  CHECK(checked.checker.freed(kBlock + 0x5000, 13).what == What::unknown);

  const auto released = checked.checker.release_all();
  REQUIRE(released.size() == 1);
  CHECK(released[0].begin == kBlock);
  CHECK(released[0].bytes == 1000);
  CHECK(released[0].watched);
  CHECK(checked.verdict(kBlock, 4, true) == Verdict::freed);
  CHECK(checked.checker.release_all().empty());
  // ROCr uses the memory again.
  checked.allocate(kBlock, 2000);
  checked.store(kBlock, 2000);
  CHECK(checked.verdict(kBlock, 2000, true) == Verdict::fine);
}

TEST_CASE("the quarantine releases the oldest memory beyond its limit", "[memory_check]") {
  Checked checked;
  constexpr uint64_t kThird = Checker::kQuarantineBytes / 3 + 4096;
  for (uint64_t i = 0; i < 3; ++i) checked.allocate(kBlock + i * 0x3000000, kThird);
  CHECK(checked.checker.freed(kBlock + 0x3000000, 1).release.empty());
  CHECK(checked.checker.freed(kBlock, 1).release.empty());
  const auto third = checked.checker.freed(kBlock + 2 * 0x3000000, 1);
  REQUIRE(third.release.size() == 1);
  CHECK(third.release[0].begin == kBlock + 0x3000000);
  // Memory that does not fit into the quarantine is not held at all.
  checked.allocate(kBlock + 0xa000000, Checker::kQuarantineBytes);
  const auto large = checked.checker.freed(kBlock + 0xa000000, 1);
  CHECK(large.what == Checker::Freed::What::passed);
  REQUIRE(large.release.size() == 1);
  CHECK(large.release[0].begin == kBlock + 0xa000000);
}

TEST_CASE("leaks are those of the program, one finding for each place", "[memory_check]") {
  Checked checked;
  for (uint64_t i = 0; i < 3; ++i) checked.allocate(kBlock + i * 0x4000, 100 + i, 5);
  checked.allocate(kBlock + 0x10000, 200, 6);
  checked.allocate(kBlock + 0x14000, 300, 7);  // of the runtime
  checked.allocate(kBlock + 0x18000, 400, 8);
  checked.checker.freed(kBlock + 0x18000, 9);
  checked.allocate(kBlock + 0x1c000, 500, 10);
  checked.checker.hip_freed(kBlock + 0x1c000, checked.checker.before_hip_free(kBlock + 0x1c000),
                            Checker::HipResult::freed, 11, [](HostStackId) { return true; });
  checked.checker.report_leaks([](HostStackId stack) {
    return stack == 7 ? std::nullopt : std::optional(std::to_string(stack));
  });
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[0].what == Class::leak);
  CHECK(checked.findings[0].leaks == 3);
  CHECK(checked.findings[0].leaked_bytes == 303);
  CHECK(checked.findings[0].buffer->begin == kBlock);
  CHECK(checked.findings[1].leaks == 1);
  CHECK(checked.findings[1].leaked_bytes == 200);
}

TEST_CASE("random allocations and frees agree with a model", "[memory_check]") {
  Checked checked;
  std::mt19937 random(2);
  constexpr uint64_t kSlots = 64, kSlotBytes = 0x8000;
  struct Slot {
    uint64_t bytes = 0;
    enum { never, live, held, gone } state = never;
    std::vector<bool> stored{};
  };
  std::vector<Slot> slots(kSlots);
  const auto at = [](uint64_t slot) { return kBlock + slot * kSlotBytes; };
  for (int step = 0; step < 30'000; ++step) {
    const uint64_t number = random() % kSlots;
    Slot& slot = slots[number];
    switch (random() % 8) {
      case 0:
        if (slot.state == Slot::live || slot.state == Slot::held) break;
        slot = {.bytes = 1 + random() % 9000, .state = Slot::live};
        slot.stored.resize(slot.bytes);
        REQUIRE(checked.allocate(at(number), slot.bytes));
        break;
      case 1:
        if (slot.state != Slot::live) break;
        REQUIRE(checked.checker.freed(at(number), 1).what == Checker::Freed::What::held);
        slot.state = Slot::held;
        break;
      case 2:
        if (random() % 20 != 0) break;
        checked.checker.release_all();
        for (Slot& each : slots)
          if (each.state == Slot::held) each.state = Slot::gone;
        break;
      default: {
        const uint64_t offset = random() % 12000, bytes = 1 + random() % 64;
        const bool reads = random() % 2 == 0;
        const Verdict found = checked.verdict(at(number) + offset, bytes, reads);
        if (slot.state == Slot::never) {
          REQUIRE(found != Verdict::freed);
        } else if (slot.state != Slot::live) {
          if (offset < slot.bytes) REQUIRE(found == Verdict::freed);
        } else if (offset + bytes > slot.bytes) {
          REQUIRE(found == Verdict::outside);
        } else {
          bool all = true;
          for (uint64_t i = 0; i < bytes; ++i) all = all && slot.stored[offset + i];
          REQUIRE(found == (!reads || all ? Verdict::fine : Verdict::uninitialised));
          if (reads) break;
          checked.store(at(number) + offset, bytes);
          for (uint64_t i = 0; i < bytes; ++i) slot.stored[offset + i] = true;
        }
      }
    }
  }
}

TEST_CASE("gone allocations beyond the remembered ones are forgotten", "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 100);
  checked.checker.freed(kBlock, 1);
  checked.checker.release_all();
  const GpuAddress other = kBlock + 0x10000;
  for (size_t i = 0; i < Checker::kRemembered; ++i) {
    checked.allocate(other, 100);
    checked.checker.freed(other, 1);
    checked.checker.release_all();
  }
  CHECK(checked.verdict(kBlock, 4, false) == Verdict::outside);
  CHECK(checked.verdict(other, 4, false) == Verdict::freed);
}

TEST_CASE("threads access memory while others allocate and free", "[memory_check]") {
  Checked checked;
  constexpr uint64_t kKept = 8;
  for (uint64_t i = 0; i < kKept; ++i) checked.allocate(kBlock + i * 0x4000, 4096);
  std::atomic<uint64_t> wrong{0};
  const auto access = [&](uint64_t seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (int step = 0; step < 20'000; ++step) {
      const GpuAddress address = kBlock + random() % kKept * 0x4000 + random() % 1024 * 4;
      // No other thread frees it.
      if (checked.verdict(address, 4, false) != Verdict::fine) ++wrong;
      checked.store(address, 4);
      if (checked.verdict(address, 4, true) != Verdict::fine) ++wrong;
      // This one may be anything.
      static_cast<void>(checked.verdict(kBlock + 0x100000 + random() % 0x40000, 4, true));
    }
  };
  const auto change = [&](uint64_t seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (int step = 0; step < 5'000; ++step) {
      const GpuAddress begin = kBlock + 0x100000 + seed * 0x20000;
      checked.allocate(begin, 1 + random() % 60'000);
      checked.checker.freed(begin, 1);
      if (random() % 3 == 0) checked.checker.release_all();
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 2; ++i) {
    threads.emplace_back(access, i);
    threads.emplace_back(change, i);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(checked.findings.empty());
}

}  // namespace uptempo::vgpu::memory_check
