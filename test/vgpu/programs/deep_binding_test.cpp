// Libraries that are opened with RTLD_DEEPBIND or dlmopen().
#include <string>
#include <vector>

#include "run_without_userfaultfd.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

std::vector<std::string> opened(const char* how) {
  return {"--", "timeout", "120", UPTEMPO_VGPU_DEEP_BINDING, how, UPTEMPO_VGPU_DEEPLY_BOUND};
}

TEST_CASE(
    "a library opened with RTLD_DEEPBIND finds the virtual GPU and keeps its SIGSEGV action") {
  const std::string works = "round trip, and 1 fault of the library\n";
  for (const char* how : {"dlopen", "dlmopen"}) {
    for (const CommandResult& finished :
         {launch(opened(how)), launch_without_userfaultfd(opened(how))}) {
      INFO(how << ": " << finished.err);
      CHECK(finished.exit_code == 0);
      CHECK(finished.out == works);
      CHECK(finished.err == "uptempo-vgpu: " UPTEMPO_VGPU_DEEPLY_BOUND
                            " is opened without RTLD_DEEPBIND, which would hide the functions of "
                            "preloaded libraries\n");
    }
  }
  const CommandResult plain = launch(opened("plain"));
  CHECK(plain.out == works);
  CHECK(plain.err.empty());
}

TEST_CASE("a library opened in another namespace finds no virtual GPU, and the launcher says so") {
  const CommandResult finished = launch(opened("namespace"));
  CHECK(finished.out == "no GPU\n");
  CHECK(finished.err == "uptempo-vgpu: " UPTEMPO_VGPU_DEEPLY_BOUND
                        " is opened in another namespace, which hides the functions of preloaded "
                        "libraries\n");
}

}  // namespace
}  // namespace uptempo::vgpu
