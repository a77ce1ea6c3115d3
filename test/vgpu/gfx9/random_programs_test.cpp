// Random programs. clang compiles them for each target at several optimisation levels, the core
// runs them on every SIMD target of this machine, and the results must equal the generator's.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>

#include "gfx9/vector/entry.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/machine.hpp"
#include "test/vgpu/gfx9/random_program.hpp"
#include "tools/support/command.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

constexpr uint32_t kItems = 4 * RandomProgram::kWorkItems;

std::vector<std::byte> compiled(const uptempo::test::TemporaryDirectory& directory,
                                const std::string& source, const std::string& options) {
  const std::string from = directory.file("program.cl"), to = directory.file("program.co");
  std::ofstream(from) << source;
  const std::string command =
      std::string("'" UPTEMPO_DEVICE_CLANG
                  "' -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -nogpulib "
                  "-mcode-object-version=4 -ffp-contract=off -w ") +
      options + " '" + from + "' -o '" + to + "'";
  INFO(command);
  REQUIRE(std::system(command.c_str()) == 0);
  const std::string bytes = uptempo::test::contents_of(to);
  const auto* raw = reinterpret_cast<const std::byte*>(bytes.data());
  return {raw, raw + bytes.size()};
}

// Inputs for which programs take different branches: small, negative, sparse, floats, any bits.
std::vector<uint64_t> inputs(uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> values(2 * kItems);
  for (uint64_t& value : values) {
    value = random();
    switch (random() % 6) {
      case 0:
        value %= 100;
        break;
      case 1:
        value = 0 - value % 100;
        break;
      case 2:
        value &= 0x000f00ff00ff000f;
        break;
      case 3:
        value = std::bit_cast<uint64_t>(static_cast<double>(value % 1000) / 8) |
                std::bit_cast<uint32_t>(1.5f);
        break;
      default:
        break;
    }
  }
  return values;
}

}  // namespace

TEST_CASE("random programs compute the generator's results, on every target and every SIMD target",
          "[random]") {
  struct Choice {
    Target target;
    const char* option;
  };
  static constexpr Choice kTargets[] = {{Target::gfx90a, "-mcpu=gfx90a"},
                                        {Target::gfx908, "-mcpu=gfx908"},
                                        {Target::gfx906, "-mcpu=gfx906"},
                                        {Target::gfx900, "-mcpu=gfx900"}};
  constexpr uint32_t kPrograms = 120;
  const char* only = std::getenv("UPTEMPO_RANDOM_SEED");  // to repeat one that failed
  const uptempo::test::TemporaryDirectory directory;
  for (uint32_t n = 0; n < (only != nullptr ? 1 : kPrograms); ++n) {
    const uint32_t seed =
        only != nullptr ? static_cast<uint32_t>(std::strtoul(only, nullptr, 10)) : n;
    const RandomProgram program(seed);
    const Choice& choice = kTargets[seed % 4];
    const auto object =
        compiled(directory, program.source(),
                 std::string(choice.option) + " -O" + std::to_string(1 + seed / 4 % 3));
    const auto values = inputs(seed);
    std::vector<uint64_t> expected(kItems);
    for (uint32_t i = 0; i < kItems; ++i)
      expected[i] = program.expected(values[2 * i], values[2 * i + 1]);
    const vector::Simd best = vector::simd_in_use();
    for (const vector::Simd simd :
         {vector::Simd::avx512, vector::Simd::avx2, vector::Simd::baseline}) {
      if (!vector::use_simd(simd)) continue;
      Machine machine(choice.target);
      machine.load(object);
      const Buffer in = machine.allocate(values.size() * 8), out = machine.allocate(kItems * 8);
      std::memcpy(in.bytes.data(), values.data(), in.bytes.size());
      const auto fault = machine.run("run", {{kItems, 1, 1}, {RandomProgram::kWorkItems, 1, 1}, 0},
                                     Arguments().add(in).add(out));
      CAPTURE(seed, choice.option, static_cast<unsigned>(simd));
      INFO((fault ? fault->message : std::string()));
      REQUIRE_FALSE(fault);
      uint32_t wrong = 0, first = 0;
      for (uint32_t i = kItems; i-- > 0;) {
        if (out.as<uint64_t>()[i] != expected[i]) ++wrong, first = i;
      }
      CAPTURE(first, values[2 * first], values[2 * first + 1]);
      CHECK(wrong == 0);
    }
    vector::use_simd(best);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
