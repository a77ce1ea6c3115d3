// Errors that name the packages of ROCr or HIP, where the system lacks them.
#include <string>

#include "run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

// Debian names the package of a library by the library's name and version (Debian's policy, 8.1).
TEST_CASE("a program whose HIP is missing is refused with the package that has it", "[rocm]") {
  const CommandResult refused = launch({UPTEMPO_VGPU_NEEDS_MISSING_HIP});
  CHECK(refused.exit_code == 126);
  CHECK(refused.err ==
        "uptempo-vgpu: '" UPTEMPO_VGPU_NEEDS_MISSING_HIP
        "' needs libamdhip64.so.999, which this system lacks: install libamdhip64-999 (Debian) or "
        "hip-runtime-amd (AMD's ROCm 999)\n");
}

TEST_CASE("a program that finds its HIP by LD_LIBRARY_PATH runs", "[rocm]") {
  const CommandResult finished = launch({UPTEMPO_VGPU_NEEDS_MISSING_HIP},
                                        {"LD_LIBRARY_PATH=" UPTEMPO_VGPU_MISSING_HIP_FOLDER});
  CHECK(finished.exit_code == 0);
  CHECK(finished.err.empty());
}

// The launcher sets the variable where the system has no ROCr. Here it is set without the launcher.
CommandResult without_rocr(const std::string& process, std::vector<std::string> program) {
  program.insert(program.begin(), {"sh", "-c",
                                   "UPTEMPO_VGPU_NO_ROCR=" + process +
                                       " LD_PRELOAD=" UPTEMPO_VGPU_LIBRARY " exec \"$@\"",
                                   "sh"});
  return run_command(program);
}

TEST_CASE("a system without ROCr is named once, by the launched process, at its end", "[rocm]") {
  const CommandResult launched =
      without_rocr("$$", {"sh", "-c", "\"$0\" exit 0; \"$0\" exit 3", UPTEMPO_VGPU_PROBE});
  CHECK(launched.exit_code == 3);
  CHECK(launched.err ==
        "uptempo-vgpu: this process has opened no GPU, and this system has no ROCr; if its "
        "children have opened none either, install libhsa-runtime64-1 (Debian) or hsa-rocr (AMD's "
        "ROCm)\n");
  CHECK(without_rocr("$$", {UPTEMPO_VGPU_PROBE, "exit", "3"}).err == launched.err);
  CHECK(without_rocr("1", {UPTEMPO_VGPU_PROBE, "exit", "3"}).err.empty());
}

TEST_CASE("a program that opens a GPU has brought its ROCr", "[rocm]") {
  const CommandResult launched = without_rocr("$$", {"rocminfo"});
  CHECK(launched.exit_code == 0);
  CHECK(launched.err.empty());
  CHECK(holds(launched.out, "gfx90a"));
}

}  // namespace
}  // namespace uptempo::vgpu
