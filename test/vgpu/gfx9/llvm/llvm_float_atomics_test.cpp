// Minimum and maximum atomics of floats in LDS and memory, compared with LLVM's APFloat: NaN on
// either side, signed zeros, denormals, infinities. LLVM gives those instructions to atomicrmw fmin
// and fmax, which its LangRef defines by minnum and maxnum. The rule of signalling NaNs is the
// manuals' (CDNA2 ISA 9.5.3, CDNA3 and CDNA4 ISA 9.2.3): the result is the quiet form.
#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/llvm/llvm_float.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;
using u32 = uint32_t;
using apfloat::Format;

template <class T, class Bits>
std::vector<u64> edge_values() {
  using Limits = std::numeric_limits<T>;
  constexpr Bits kInfinity = std::bit_cast<Bits>(Limits::infinity());
  constexpr Bits kQuiet = Bits{1} << (Limits::digits - 2), kSign = ~(~Bits{0} >> 1);
  const Bits magnitudes[] = {0,
                             1,
                             std::bit_cast<Bits>(Limits::min()),
                             std::bit_cast<Bits>(T{1}),
                             std::bit_cast<Bits>(T{2.5}),
                             kInfinity,
                             kInfinity | 1,
                             kInfinity | kQuiet >> 1,
                             kInfinity | kQuiet,
                             kInfinity | kQuiet | 5};
  std::vector<u64> values;
  for (const Bits magnitude : magnitudes)
    for (const Bits sign : {Bits{0}, kSign}) values.push_back(magnitude | sign);
  return values;
}
std::vector<u64> edge_values(Format format) {
  return format == Format::f32 ? edge_values<float, u32>() : edge_values<double, u64>();
}

// Checks the value left in memory.
void check_result(Format format, bool largest, u64 memory, u64 data, u64 result) {
  const u64 quiet = u64{1} << (format == Format::f32 ? 22 : 51);
  const bool memory_nan = apfloat::is_nan(format, memory), data_nan = apfloat::is_nan(format, data);
  const bool signalling =
      apfloat::is_signalling(format, memory) || apfloat::is_signalling(format, data);
  if (memory_nan && data_nan) {  // no source says which of two quiet NaNs
    CHECK(apfloat::is_nan(format, result));
    CHECK_FALSE(apfloat::is_signalling(format, result));
    CHECK((result == (memory | quiet) || result == (data | quiet)));
  } else if (signalling) {
    CHECK(result == ((memory_nan ? memory : data) | quiet));
  } else {
    CHECK(result == (largest ? apfloat::greater(format, memory, data)
                             : apfloat::lesser(format, memory, data)));
  }
}

enum class Place { lds, flat, flat_lds, global, buffer };

struct Instruction {
  std::string text;
  Place place;
  Format format;
  bool largest, returns;
};

// Each lane has 8 bytes: at v[0:1] or at offset v0 of LDS or of the buffer in s[4:7]. Data is in
// v[4:5], the result in v[8:9]; that of a buffer instruction replaces the data.
std::vector<Instruction> instructions(Target target) {
  const std::string glc = target == Target::gfx942 ? " sc0" : " glc";
  std::vector<Instruction> all;
  for (const bool largest : {false, true}) {
    for (const bool returns : {false, true}) {
      const std::string op = largest ? "max" : "min";
      const std::string result = returns ? " v[8:9]," : "", bit = returns ? glc : "";
      const std::string ds = "ds_" + op + (returns ? "_rtn" : "");
      all.push_back({ds + "_f32" + (returns ? " v8," : "") + " v0, v4", Place::lds, Format::f32,
                     largest, returns});
      all.push_back(
          {ds + "_f64" + result + " v0, v[4:5]", Place::lds, Format::f64, largest, returns});
      const std::string name = "_atomic_" + op + "_f64";
      for (const Place place : {Place::flat, Place::flat_lds})
        all.push_back({"flat" + name + result + " v[0:1], v[4:5]" + bit, place, Format::f64,
                       largest, returns});
      all.push_back({"global" + name + result + " v[0:1], v[4:5], off" + bit, Place::global,
                     Format::f64, largest, returns});
      all.push_back({"buffer" + name + " v[4:5], v0, s[4:7], 0 offen" + bit, Place::buffer,
                     Format::f64, largest, returns});
    }
  }
  return all;
}

void check(Target target, const Instruction& instruction) {
  const bool in_lds = instruction.place == Place::lds || instruction.place == Place::flat_lds;
  const bool in_buffer = instruction.place == Place::buffer;
  const size_t size = instruction.format == Format::f32 ? 4 : 8;
  const std::vector<u64> values = edge_values(instruction.format);
  for (const u64 first : values) {
    Fragment fragment(target);
    const Buffer buffer = fragment.machine.allocate(64 * 8);
    Wave& wave = fragment.prepare(instruction.text, 64 * 8);
    std::byte* const at = in_lds ? wave.lds : buffer.bytes.data();
    const GpuAddress base = instruction.place == Place::flat_lds ? aperture_base(kSharedAperture)
                            : in_lds || in_buffer                ? 0
                                                                 : buffer.address;
    wave.scalar[4] = static_cast<u32>(buffer.address);
    wave.scalar[5] = static_cast<u32>(buffer.address >> 32) & 0xffff;
    wave.scalar[6] = 64 * 8;
    wave.scalar[7] = 0x00027000;  // LLVM, SIDefines.h: 32-bit data
    const auto data_of = [&](unsigned lane) { return values[lane % values.size()]; };
    each_lane([&](unsigned lane) {
      std::memcpy(at + 8 * lane, &first, size);
      set_address(wave, 0, lane, base + 8 * lane);
      set_address(wave, 4, lane, data_of(lane));
    });
    fragment.finish();
    each_lane([&](unsigned lane) {
      CAPTURE(instruction.text, static_cast<int>(target), lane, first, data_of(lane));
      u64 result = 0;
      std::memcpy(&result, at + 8 * lane, size);
      check_result(instruction.format, instruction.largest, first, data_of(lane), result);
      if (!instruction.returns) return;
      const Vgpr* old = wave.vgpr + (in_buffer ? 4 : 8);
      CHECK(old[0].lane[lane] == static_cast<u32>(first));
      if (size == 8) CHECK(old[1].lane[lane] == static_cast<u32>(first >> 32));
    });
  }
}

}  // namespace

TEST_CASE("float minimum and maximum atomics order NaNs and zeros as LLVM's minnum and maxnum do") {
  for (const Target target : llvm_targets()) {
    if (target != Target::gfx90a && target != Target::gfx942) continue;
    for (const Instruction& instruction : instructions(target)) check(target, instruction);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
