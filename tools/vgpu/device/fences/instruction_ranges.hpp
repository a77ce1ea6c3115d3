// The addresses that each instruction of a dispatch accessed, as one range per instruction, so that
// a finding can name source lines.
//
// Thread safety: add() from any thread, without locks; list() when the dispatch has ended.
// Cost: add() searches a table of kInstructions; no allocation. Instructions beyond that are not
// kept.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/memory.hpp"

namespace uptempo::vgpu::fences {

struct InstructionRange {
  GpuAddress instruction = 0;
  GpuAddress begin = 0, end = 0;  // of all accesses, perhaps with gaps
  bool reads = false, writes = false;
};
using InstructionList = std::shared_ptr<const std::vector<InstructionRange>>;

class InstructionRanges {
 public:
  static constexpr size_t kInstructions = 256;

  void add(GpuAddress instruction, GpuAddress begin, GpuAddress end, Access access) noexcept {
    for (size_t probe = 0; probe < kInstructions; ++probe) {
      Entry& entry = entries_[(instruction / 4 + probe) % kInstructions];
      // relaxed throughout: each field stands for itself, and list() comes after the dispatch's end.
      GpuAddress found = entry.instruction.load(std::memory_order_relaxed);
      if (found == 0 &&
          entry.instruction.compare_exchange_strong(found, instruction, std::memory_order_relaxed))
        found = instruction;
      if (found != instruction) continue;
      entry.extend(begin, end, access);
      return;
    }
  }

  // By address of the instruction.
  InstructionList list() const;

 private:
  struct Entry {
    std::atomic<GpuAddress> instruction{0};  // 0: free
    std::atomic<GpuAddress> begin{~GpuAddress{0}}, end{0};
    std::atomic<bool> reads{false}, writes{false};

    void extend(GpuAddress from, GpuAddress to, Access access) noexcept {
      constexpr auto kRelaxed = std::memory_order_relaxed;
      for (GpuAddress now = begin.load(kRelaxed);
           from < now && !begin.compare_exchange_weak(now, from, kRelaxed);) {
      }
      for (GpuAddress now = end.load(kRelaxed);
           to > now && !end.compare_exchange_weak(now, to, kRelaxed);) {
      }
      if (access != Access::write && !reads.load(kRelaxed)) reads.store(true, kRelaxed);
      if (access != Access::read && !writes.load(kRelaxed)) writes.store(true, kRelaxed);
    }
  };
  std::array<Entry, kInstructions> entries_{};
};

}  // namespace uptempo::vgpu::fences
