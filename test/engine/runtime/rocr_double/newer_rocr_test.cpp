// Tools beside a ROCr that has hsa_amd_queue_create, which the ROCr of the build lacks: a double
// with its name. This program must not link the other one.
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include <uptempo/runtime/ring_access.hpp>
#include "test/support/catch.hpp"

using namespace uptempo;

namespace {

void of_tool() {}

// The double's tables.
struct Rocr {
  Rocr() {
    void* const library = dlopen(ROCR_DOUBLE, RTLD_NOW | RTLD_GLOBAL);
    REQUIRE(library != nullptr);
    core = static_cast<void (**)()>(dlsym(library, "rocr_double_core"));
    amd = static_cast<void (**)()>(dlsym(library, "rocr_double_amd"));
    REQUIRE((core != nullptr && amd != nullptr));
  }
  void (**core)() = nullptr;
  void (**amd)() = nullptr;
};

void check_finds(const std::string& function) {
  const detail::Interposition found = detail::find_interposition();
  CAPTURE(found.finding);
  CHECK_FALSE(found.none);
  const std::string start = "a tool interposes: " + function + " leads to ";
  REQUIRE(found.finding.starts_with(start));
  CHECK(std::filesystem::equivalent(found.finding.substr(start.size()), "/proc/self/exe"));
}

}  // namespace

TEST_CASE("a tool that replaces hsa_amd_queue_create alone is found") {
  const Rocr rocr;
  CHECK(detail::find_interposition().none);
  // The 87th function, after a version of two words.
  void (*&entry)() = rocr.amd[2 + 86];
  void (*const own)() = entry;
  entry = &of_tool;
  check_finds("hsa_amd_queue_create");
  entry = own;
  CHECK(detail::find_interposition().none);
  // The tables' other functions count as before.
  rocr.core[2] = &of_tool;
  check_finds("hsa_queue_create");
  rocr.core[2] = own;
  rocr.amd[2 + 85] = &of_tool;
  CHECK(detail::find_interposition().none);
}
