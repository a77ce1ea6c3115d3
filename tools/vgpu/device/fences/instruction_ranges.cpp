#include "device/fences/instruction_ranges.hpp"

#include <algorithm>

namespace uptempo::vgpu::fences {

InstructionList InstructionRanges::list() const {
  auto list = std::make_shared<std::vector<InstructionRange>>();
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (const Entry& entry : entries_)
    if (entry.instruction.load(kRelaxed) != 0)
      list->push_back({entry.instruction.load(kRelaxed), entry.begin.load(kRelaxed),
                       entry.end.load(kRelaxed), entry.reads.load(kRelaxed),
                       entry.writes.load(kRelaxed)});
  std::ranges::sort(*list, {}, &InstructionRange::instruction);
  return list;
}

}  // namespace uptempo::vgpu::fences
