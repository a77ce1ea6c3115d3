#include "engine/runtime/memory_model.hpp"

#include <algorithm>
#include <array>

namespace uptempo {
namespace {

constexpr std::string_view kGfx9 =
    "LLVM AMDGPUUsage, Memory Model GFX6-GFX9 and gfx90A; Linux, amdgpu_amdkfd_gpuvm.c and "
    "gmc_v9_0.c: memory types UC, NC, RW and CC";
constexpr std::string_view kGfx942 =
    "LLVM AMDGPUUsage, Memory Model GFX942; Linux, gmc_v9_0_get_coherence_flags(), GC 9.4.3: local "
    "memory RW with the C bit, system memory UC";

constexpr MemoryModel gfx9(std::string_view processor) noexcept {
  return {processor, true, true, false, kGfx9};
}

constexpr std::array kModels{
    gfx9("gfx900"),
    gfx9("gfx902"),
    gfx9("gfx904"),
    gfx9("gfx906"),
    gfx9("gfx908"),
    gfx9("gfx909"),
    gfx9("gfx90a"),
    // One L2 for each XCD. A partition of one XCD has the same name and gets the same fences.
    MemoryModel{"gfx942", false, true, true, kGfx942},
};

constexpr MemoryModel kUnknown{"", false, false, false,
                               "unknown target: every fence of the HSA specification"};

}  // namespace

const MemoryModel& memory_model(std::string_view processor) noexcept {
  const auto* const found = std::ranges::find(kModels, processor, &MemoryModel::processor);
  return found == kModels.end() ? kUnknown : *found;
}

}  // namespace uptempo
