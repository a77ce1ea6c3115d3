#include "tools/support/launch/rocm_libraries.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo;
using support::is_found_by_name;
using support::missing_rocm;
using support::rocm_packages;

// packages.debian.org: libamdhip64-5 in Debian 12 and 13, libamdhip64-6 in testing; AMD's packages
// hip-runtime-amd and hsa-rocr have the same names in ROCm 5, 6 and 7.
TEST_CASE("packages of ROCr and of each HIP are known, and no others") {
  CHECK(rocm_packages("libhsa-runtime64.so.1") ==
        "libhsa-runtime64-1 (Debian) or hsa-rocr (AMD's ROCm)");
  CHECK(rocm_packages("libamdhip64.so.5") ==
        "libamdhip64-5 (Debian) or hip-runtime-amd (AMD's ROCm 5)");
  CHECK(rocm_packages("libamdhip64.so.6") ==
        "libamdhip64-6 (Debian) or hip-runtime-amd (AMD's ROCm 6)");
  for (const char* other : {"", "libc.so.6", "libamdhip64", "libhsa", "libmyamdhip64.so.6"})
    CHECK(rocm_packages(other).empty());
}

TEST_CASE("a library is found in the dynamic linker's cache, by its whole name") {
  const support::TemporaryDirectory directory;
  const std::string cache = directory.file("cache"), list = directory.file("conf");
  std::ofstream(list) << MISSING_HIP_FOLDER << '\n';
  REQUIRE(test::run_command({"/sbin/ldconfig", "-X", "-C", cache, "-f", list}).exit_code == 0);
  CHECK(is_found_by_name("libamdhip64.so.999", cache.c_str()));
  CHECK_FALSE(is_found_by_name("libamdhip64.so.99", cache.c_str()));
  CHECK_FALSE(is_found_by_name("amdhip64.so.999", cache.c_str()));
  CHECK_FALSE(is_found_by_name("libamdhip64.so.999", directory.file("none").c_str()));
}

TEST_CASE("the system of the tests has ROCr") { CHECK(support::has_rocr()); }

TEST_CASE("only libraries of ROCm that the dynamic linker does not find are missing") {
  const std::string expected =
      "needs libamdhip64.so.999, which this system lacks: install libamdhip64-999 (Debian) or "
      "hip-runtime-amd (AMD's ROCm 999)";
  CHECK(missing_rocm(NEEDS_MISSING_HIP, {"libc.so.6", "libamdhip64.so.999"}) == expected);
  CHECK(missing_rocm(NEEDS_MISSING_HIP, {"libc.so.6"}).empty());
  // The build's program names the folder (DT_RUNPATH).
  CHECK(missing_rocm(KNOWS_MISSING_HIP, {"libamdhip64.so.999"}).empty());
  setenv("LD_LIBRARY_PATH", "/nonexistent:" MISSING_HIP_FOLDER, 1);
  CHECK(missing_rocm(NEEDS_MISSING_HIP, {"libamdhip64.so.999"}).empty());
  unsetenv("LD_LIBRARY_PATH");
}

TEST_CASE("a library that the caller preloads is not missing") {
  setenv("LD_PRELOAD", MISSING_HIP_FOLDER "/libamdhip64.so.999", 1);
  CHECK(missing_rocm(NEEDS_MISSING_HIP, {"libamdhip64.so.999"}).empty());
  unsetenv("LD_PRELOAD");
  CHECK_FALSE(missing_rocm(NEEDS_MISSING_HIP, {"libamdhip64.so.999"}).empty());
}

TEST_CASE("a library in a folder of ROCm that the dynamic linker does not search is named there") {
  const support::TemporaryDirectory directory;
  const std::string folder = directory.file("lib");
  REQUIRE(std::filesystem::create_directory(folder));
  std::ofstream(folder + "/libamdhip64.so.999") << "a library";
  setenv("ROCM_PATH", directory.file("").c_str(), 1);
  const std::string found = missing_rocm(NEEDS_MISSING_HIP, {"libamdhip64.so.999"});
  unsetenv("ROCM_PATH");
  CHECK(found == "needs libamdhip64.so.999, which is in " + folder +
                     ", where the dynamic linker does not search: add that folder to "
                     "LD_LIBRARY_PATH");
}
