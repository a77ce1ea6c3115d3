// A second copy of ROCr in the process, as a library with a ROCm of its own brings it.
#include <dlfcn.h>
#include <uptempo/uptempo.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo;

namespace {

// The mapped file whose name begins so, as /proc/self/maps names it: the one behind all links.
std::string mapped(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find('/' + name) != std::string::npos) return line.substr(line.find('/'));
  FAIL(name << " is not mapped");
  return {};
}

// For the rest of the process, since ROCr is not made to be unloaded.
void load(const std::string& file) {
  INFO(file);
  REQUIRE(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr);
}

}  // namespace

TEST_CASE("a second ROCr in the process is refused, and both files are named") {
  const std::string rocr = mapped("libhsa-runtime64.so");
  const support::TemporaryDirectory folder;
  // Neither is a second ROCr: another name of the first, and another library.
  const std::string link = folder.file("libhsa-runtime64.so.1");
  std::filesystem::create_symlink(rocr, link);
  load(link);
  const std::string plugin = folder.file("libhsa-runtime64-plugin.so");
  std::filesystem::copy_file(mapped("libstdc++.so"), plugin);
  load(plugin);
  { const Runtime runtime; }

  const std::string copy = folder.file("bundled.so");
  std::filesystem::copy_file(rocr, copy);
  load(copy);
  const std::string error = test::error_of<Error>([] { const Runtime runtime; });
  CAPTURE(error);
  CHECK(test::contains(error, copy));
  Dl_info first{};
  REQUIRE(dladdr(reinterpret_cast<const void*>(&hsa_init), &first) != 0);
  CHECK(test::contains(error, first.dli_fname));
  CHECK(test::contains(error, "2 are loaded"));
}
