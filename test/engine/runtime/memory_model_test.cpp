// The engine's table of targets, against the virtual GPU's own table of memory types, and against
// a table written down from the sources of LLVM and Linux. None of them share code.
#include <uptempo/runtime/agent.hpp>

#include <string>
#include <utility>

#include <uptempo/fences/fence_planner.hpp>
#include "device/caches/caching.hpp"
#include "device/description.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;

namespace {

AgentProperties gpu(std::string name, bool is_apu = false, bool xgmi_to_host = false) {
  AgentProperties agent;
  agent.name = std::move(name);
  agent.type = HSA_DEVICE_TYPE_GPU;
  agent.is_apu = is_apu;
  agent.xgmi_to_host = xgmi_to_host;
  return agent;
}

}  // namespace

TEST_CASE("the memory model of each target agrees with its memory types") {
  for (const vgpu::DeviceDescription& device : vgpu::device_descriptions()) {
    CAPTURE(device.target);
    const MemoryModel& model = memory_model(gpu(std::string(device.target)));
    CHECK(model.proved);
    CHECK_FALSE(model.source.empty());
    const MemoryModel rules = model.rules();
    CHECK(rules.one_l2 == (device.xcds == 1));
    const auto type = [&](vgpu::MemoryKind kind) { return memory_type(device.target, kind); };
    CHECK(rules.host_memory_bypasses_l2 == !l2_holds_dirty(type(vgpu::MemoryKind::fine_grained)));
    CHECK(rules.device_memory_is_probed == !l2_goes_stale(type(vgpu::MemoryKind::device_local)));
  }
}

// One L2: LLVM AMDGPUUsage, first list of each memory model. Host memory: MTYPE that amdgpu gives
// coherent system memory (gmc_v9_0_get_coherence_flags(), gmc_v10_0_get_vm_pte(),
// gmc_v11_0_get_vm_pte(), gmc_v12_0_get_vm_pte()); L2 holds all but UC. Probed: local memory that
// is RW and snooped, on GC 9.4.3 and 9.5.0 only.
TEST_CASE("each row assumes what its sources state") {
  struct Row {
    AgentProperties agent;
    const char* name;
    bool proved;
    bool one_l2;
    bool host_is_uc;
    bool probed;
  };
  const Row rows[] = {
      {gpu("gfx90a"), "gfx900 to gfx90a", true, true, true, false},
      {gpu("gfx90a", false, true), "gfx900 to gfx90a", true, true, true, false},
      {gpu("gfx902", true), "gfx900 to gfx90a", true, true, true, false},
      {gpu("gfx942"), "gfx942", true, false, true, true},
      // AMD_IS_APU: RW or NC
      {gpu("gfx942", true), "gfx942 APU", false, false, false, false},
      {gpu("gfx942", true, true), "gfx942 APU", false, false, false, false},
      {gpu("gfx942", false, true), "gfx942 APU", false, false, false, false},
      {gpu("gfx950"), "gfx950", true, false, false, true},  // system memory NC from GC 9.5.0 on
      {gpu("gfx1030"), "gfx103x", false, true, true, false},
      {gpu("gfx1036", true), "gfx103x", false, true, true, false},
      {gpu("gfx1100"), "gfx110x", false, true, true, false},
      {gpu("gfx1103", true), "gfx110x", false, true, true, false},
      {gpu("gfx1151", true), "gfx115x", false, true, true, false},
      {gpu("gfx1201"), "gfx120x", false, false, false, false},  // NC
      {gpu("gfx1250"), "unknown target", false, false, false, false},
      {gpu("gfx1010"), "unknown target", false, false, false, false},
      {gpu("gfx90c", true), "unknown target", false, false, false, false},
      {gpu("gfx9"), "unknown target", false, false, false, false},
      {gpu(""), "unknown target", false, false, false, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.agent.name, row.agent.is_apu, row.agent.xgmi_to_host);
    const MemoryModel& model = memory_model(row.agent);
    CHECK(model.name == row.name);
    CHECK(model.proved == row.proved);
    CHECK_FALSE(model.source.empty());
    CHECK(model.one_l2 == row.one_l2);
    CHECK(model.host_memory_bypasses_l2 == row.host_is_uc);
    CHECK(model.device_memory_is_probed == row.probed);
  }
}

TEST_CASE("a row that is not proved leaves no fence out") {
  for (const char* processor :
       {"gfx1030", "gfx1035", "gfx1100", "gfx1150", "gfx1201", "gfx1250", ""}) {
    CAPTURE(processor);
    const MemoryModel& model = memory_model(gpu(processor));
    CHECK(model.rules() == MemoryModel{});
    CHECK(kernargs_go_stale_in_l2(model, false));
    CHECK(kernargs_go_stale_in_l2(model, true));
  }
  const MemoryModel& mi300a = memory_model(gpu("gfx942", true, true));
  CHECK(kernargs_go_stale_in_l2(mi300a, false));
  CHECK(kernargs_go_stale_in_l2(mi300a, true));
  const MemoryModel& mi355x = memory_model(gpu("gfx950"));
  CHECK(kernargs_go_stale_in_l2(mi355x, false));
  CHECK_FALSE(kernargs_go_stale_in_l2(mi355x, true));
  CHECK(detail::overwrites_on(nullptr) == detail::Overwrites::handed_over);
}

TEST_CASE("a description names the row and whether fences depend on it") {
  CHECK(describe(memory_model(gpu("gfx90a")))
            .starts_with("memory model gfx900 to gfx90a: one L2, fine-grained host memory bypasses "
                         "L2, device memory is not probed (LLVM AMDGPUUsage"));
  CHECK(describe(memory_model(gpu("gfx1100")))
            .starts_with("memory model gfx110x, not proved on hardware, so that every fence is "
                         "kept: one L2, "));
  CHECK(describe(memory_model(gpu("gfx942", true)))
            .starts_with("memory model gfx942 APU: every fence is kept (Linux, "));
  CHECK(describe(memory_model(gpu("gfx7"))) ==
        "memory model unknown target: every fence is kept (HSA Platform System Architecture 1.2, "
        "section 3)");
}
