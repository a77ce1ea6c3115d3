// Runs the fuzz targets without libFuzzer: on every input that was a finding, and on their seeds. A
// target ends the process if a reader breaks a rule.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "test/fuzz/fuzz.hpp"
#include "test/fuzz/seeds.hpp"
#include "test/support/catch.hpp"
#include "tools/support/temporary_directory.hpp"

using namespace uptempo::fuzz;

namespace {

std::vector<uint8_t> bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the number of inputs.
size_t run_all(const std::filesystem::path& inputs, const Target& target) {
  size_t count = 0;
  if (!std::filesystem::exists(inputs / target.name)) return 0;
  for (const auto& entry : std::filesystem::directory_iterator(inputs / target.name)) {
    INFO(entry.path());
    const std::vector<uint8_t> input = bytes_of(entry.path());
    REQUIRE_NOTHROW(target.run(input));
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("readers refuse or read every input that was a finding", "[fuzz]") {
  size_t count = 0;
  for (const Target& target : kTargets) count += run_all(UPTEMPO_FUZZ_FINDINGS, target);
  CHECK(count > 0);
}

TEST_CASE("readers read the seeds and the empty input", "[fuzz]") {
  const uptempo::support::TemporaryDirectory directory;
  write_seeds(directory.file("seeds"));
  for (const Target& target : kTargets) {
    CAPTURE(target.name);
    CHECK(run_all(directory.file("seeds"), target) > 0);
    REQUIRE_NOTHROW(target.run({}));
  }
}
