#include <uptempo/runtime/agent.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace uptempo {
namespace {

constexpr MemoryModel kGfx9{
    .name = "gfx900 to gfx90a",
    .proved = true,
    .one_l2 = true,
    .host_memory_bypasses_l2 = true,
    .source =
        "LLVM AMDGPUUsage, Memory Model GFX6-GFX9 and gfx90A; Linux, "
        "amdgpu_amdkfd_gpuvm.c and gmc_v9_0.c: memory types UC, NC, RW and CC"};

// One L2 for each XCD. A partition of one XCD has the same name and gets the same fences.
constexpr MemoryModel kGfx942{
    .name = "gfx942",
    .proved = true,
    .host_memory_bypasses_l2 = true,
    .device_memory_is_probed = true,
    .source =
        "LLVM AMDGPUUsage, Memory Model GFX942; Linux, gmc_v9_0_get_coherence_flags(), "
        "GC 9.4.3: local memory RW with the C bit, system memory UC"};

// MI300A. Host memory is local memory of the XCDs.
constexpr MemoryModel kGfx942Apu{
    .name = "gfx942 APU",
    .source =
        "Linux, gmc_v9_0_get_coherence_flags() and gmc_v9_0_override_vm_pte_flags(), "
        "GC 9.4.3 with AMD_IS_APU: host memory RW where it is local to the GPU, else NC, so "
        "L2 holds it"};

constexpr MemoryModel kGfx950{
    .name = "gfx950",
    .proved = true,
    .device_memory_is_probed = true,
    .source =
        "LLVM, SIMemoryLegalizer.cpp: the cache control of gfx940 targets; Linux, "
        "gmc_v9_0_get_coherence_flags(), GC 9.5.0: local memory RW with the C bit, system "
        "memory NC, so L2 holds it"};

// The packet processor's firmware decides which packet fences act on L2, and no public source says
// so for these targets.
constexpr MemoryModel kGfx103x{
    .name = "gfx103x",
    .one_l2 = true,
    .host_memory_bypasses_l2 = true,
    .source =
        "LLVM AMDGPUUsage, Memory Model GFX10-GFX11: one L2 for an agent; Linux, "
        "gmc_v10_0_get_vm_pte(): coherent memory UC"};
constexpr MemoryModel kGfx110x{
    .name = "gfx110x",
    .one_l2 = true,
    .host_memory_bypasses_l2 = true,
    .source =
        "LLVM AMDGPUUsage, Memory Model GFX10-GFX11: one L2 for an agent; Linux, "
        "gmc_v11_0_get_vm_pte(): coherent memory UC"};
constexpr MemoryModel kGfx115x{
    .name = "gfx115x", .one_l2 = true, .host_memory_bypasses_l2 = true, .source = kGfx110x.source};

constexpr MemoryModel kGfx120x{
    .name = "gfx120x",
    .source =
        "Linux, gmc_v12_0_get_vm_pte(): host memory NC unless allocated as uncached, so L2 "
        "may hold it"};

constexpr MemoryModel kUnknown{.name = "unknown target",
                               .source = "HSA Platform System Architecture 1.2, section 3"};

struct Row {
  std::string_view processor;
  const MemoryModel* model;
};
constexpr std::array kRows{
    Row{"gfx900", &kGfx9},     Row{"gfx902", &kGfx9},     Row{"gfx904", &kGfx9},
    Row{"gfx906", &kGfx9},     Row{"gfx908", &kGfx9},     Row{"gfx909", &kGfx9},
    Row{"gfx90a", &kGfx9},     Row{"gfx942", &kGfx942},   Row{"gfx950", &kGfx950},
    Row{"gfx1030", &kGfx103x}, Row{"gfx1031", &kGfx103x}, Row{"gfx1032", &kGfx103x},
    Row{"gfx1033", &kGfx103x}, Row{"gfx1034", &kGfx103x}, Row{"gfx1035", &kGfx103x},
    Row{"gfx1036", &kGfx103x}, Row{"gfx1100", &kGfx110x}, Row{"gfx1101", &kGfx110x},
    Row{"gfx1102", &kGfx110x}, Row{"gfx1103", &kGfx110x}, Row{"gfx1150", &kGfx115x},
    Row{"gfx1151", &kGfx115x}, Row{"gfx1152", &kGfx115x}, Row{"gfx1153", &kGfx115x},
    Row{"gfx1200", &kGfx120x}, Row{"gfx1201", &kGfx120x},
};

}  // namespace

const MemoryModel& memory_model(const AgentProperties& agent) noexcept {
  const auto* const found = std::ranges::find(kRows, agent.name, &Row::processor);
  if (found == kRows.end()) return kUnknown;
  // ROCr before 6.0 does not report APUs, but the MI300A's link to its host is xGMI, and no
  // discrete gfx942 has one (Linux, kfd_crat.c, kfd_fill_gpu_direct_io_link_to_cpu()).
  if (found->model == &kGfx942 && (agent.is_apu || agent.xgmi_to_host)) return kGfx942Apu;
  return *found->model;
}

std::string describe(const MemoryModel& model) {
  if (!model.one_l2 && !model.host_memory_bypasses_l2 && !model.device_memory_is_probed)
    return fmt::format("memory model {}: every fence is kept ({})", model.name, model.source);
  return fmt::format("memory model {}{}: {}, fine-grained host memory {} L2, device memory {} ({})",
                     model.name,
                     model.proved ? "" : ", not proved on hardware, so that every fence is kept",
                     model.one_l2 ? "one L2" : "several L2s",
                     model.host_memory_bypasses_l2 ? "bypasses" : "may be in",
                     model.device_memory_is_probed ? "is probed" : "is not probed", model.source);
}

}  // namespace uptempo
