#include <string>

#include "run.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

TEST_CASE("a program built with a sanitizer runs, with that runtime loaded first", "[sanitizers]") {
  // ROCr stays loaded, because LeakSanitizer takes what its statics point to for lost once they are
  // unmapped.
  for (const char* program : {UPTEMPO_VGPU_PROBE_ASAN, UPTEMPO_VGPU_PROBE_TSAN}) {
    const CommandResult finished =
        launch({"--", program, "rocr-kept"},
               {"LSAN_OPTIONS=print_suppressions=0:suppressions=" UPTEMPO_VGPU_LSAN_SUPPRESSIONS});
    CAPTURE(program, finished.err);
    CHECK(finished.exit_code == 0);
    CHECK(finished.err.find("Sanitizer") == std::string::npos);
    CHECK(finished.err.find("does not come first") == std::string::npos);
  }
}

}  // namespace
}  // namespace uptempo::vgpu
