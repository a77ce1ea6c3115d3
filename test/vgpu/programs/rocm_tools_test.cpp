// Debian's unmodified programs (package rocminfo).
#include <string>

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

TEST_CASE("rocm_agent_enumerator lists the target", "[tools]") {
  const CommandResult finished = launch({"--device", "gfx908", "--", "rocm_agent_enumerator"});
  CAPTURE(finished.err);
  CHECK(finished.exit_code == 0);
  CHECK(holds(finished.out, "gfx908\n"));
}

}  // namespace
}  // namespace uptempo::vgpu
