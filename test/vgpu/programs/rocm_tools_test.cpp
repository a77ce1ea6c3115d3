// Debian's unmodified programs (package rocminfo).
#include <dlfcn.h>
#include <string>
#include <vector>

#include "run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

TEST_CASE("rocminfo prints the agent of each target", "[tools]") {
  struct Case {
    const char* target;
    const char* isa;
    const char* name;
    const char* units;
  };
  for (const Case& each :
       {Case{"gfx90a", "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "AMD Instinct MI210", "104"},
        Case{"gfx908", "amdgcn-amd-amdhsa--gfx908:sramecc+:xnack-", "AMD Instinct MI100", "120"},
        Case{"gfx906", "amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-", "AMD Instinct MI60 / MI50",
             "64"},
        Case{"gfx900", "amdgcn-amd-amdhsa--gfx900:xnack-", "AMD Radeon Instinct MI25", "64"}}) {
    const CommandResult finished = launch({"--device", each.target, "--", "rocminfo"});
    CAPTURE(each.target, finished.err, finished.out);
    CHECK(finished.exit_code == 0);
    CHECK(holds(finished.out, "ROCk module is loaded"));
    CHECK(holds(finished.out, each.isa));
    CHECK(holds(finished.out, each.name));
    CHECK(holds(finished.out, std::string("Compute Unit:            ") + each.units));
    CHECK(holds(finished.out, "*** Done ***"));
  }
}

TEST_CASE("rocminfo prints a CPU agent for each socket, and then the GPU", "[tools][sockets]") {
  const CommandResult finished = launch({"--sockets", "2", "--", "rocminfo"});
  CAPTURE(finished.err, finished.out);
  CHECK(finished.exit_code == 0);
  const auto node_of = [&](const char* agent) {
    const size_t start = finished.out.find(agent);
    const size_t line = finished.out.find("  Node:", start);
    return start == std::string::npos || line == std::string::npos
               ? std::string()
               : finished.out.substr(line, finished.out.find('\n', line) - line);
  };
  CHECK(holds(node_of("Agent 1 "), " 0"));
  CHECK(holds(node_of("Agent 2 "), " 1"));
  CHECK(holds(node_of("Agent 3 "), " 2"));
  CHECK(holds(finished.out.substr(finished.out.find("Agent 3 ")), "gfx90a"));
  CHECK_FALSE(holds(finished.out, "Agent 4 "));
}

TEST_CASE("rocminfo prints an agent for each GPU, or for those that ROCr is to see",
          "[tools][gpus]") {
  const std::vector<std::string> arguments{"--gpus", "gfx90a,gfx908", "--", "rocminfo"};
  const CommandResult both = launch(arguments);
  CAPTURE(both.err, both.out);
  CHECK(both.exit_code == 0);
  CHECK(holds(both.out, "AMD Instinct MI210"));
  CHECK(holds(both.out, "AMD Instinct MI100"));
  CHECK(holds(both.out, "Agent 3 "));
  CHECK_FALSE(holds(both.out, "Agent 4 "));
  const CommandResult second = launch(arguments, {"ROCR_VISIBLE_DEVICES=1"});
  CHECK(second.exit_code == 0);
  CHECK_FALSE(holds(second.out, "AMD Instinct MI210"));
  CHECK(holds(second.out, "AMD Instinct MI100"));
}

TEST_CASE("rocm_agent_enumerator lists the target", "[tools]") {
  const CommandResult finished = launch({"--device", "gfx908", "--", "rocm_agent_enumerator"});
  CAPTURE(finished.err);
  CHECK(finished.exit_code == 0);
  CHECK(holds(finished.out, "gfx908\n"));
}

// hsa_amd_agent_set_async_scratch_limit appeared in ROCr 6.1, which is the first with gfx942.
bool runtime_is_6_1() {
  void* const runtime = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_LOCAL);
  REQUIRE(runtime != nullptr);
  const bool found = dlsym(runtime, "hsa_amd_agent_set_async_scratch_limit") != nullptr;
  dlclose(runtime);
  return found;
}

TEST_CASE("an MI300X is offered to ROCr 6.1 and newer, and refused by name to older ones",
          "[tools]") {
  const CommandResult finished = launch({"--device", "gfx942", "--", "rocminfo"});
  CAPTURE(finished.err, finished.out);
  if (!runtime_is_6_1()) {
    CHECK(finished.exit_code != 0);
    CHECK(holds(finished.err, "gfx942 needs ROCr 6.1 or newer"));
    CHECK(holds(finished.err, "libhsa-runtime64.so"));
    return;
  }
  CHECK(finished.exit_code == 0);
  for (const char* text :
       {"amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "AMD Instinct MI300X",
        "Compute Unit:            304", "Shader Engines:          32", "SIMDs per CU:            4",
        "L1:                      32(0x20) KB", "L2:                      4096(0x1000) KB",
        "L3:                      262144(0x40000) KB", "*** Done ***"})
    CHECK(holds(finished.out, text));
}

}  // namespace
}  // namespace uptempo::vgpu
