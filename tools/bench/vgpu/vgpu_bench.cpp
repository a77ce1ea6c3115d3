// Nanoseconds per wave64 instruction, by class, on one core. The gfx9 core runs hot loops of one
// kind of instruction, without queue or driver.
//
//   vgpu_bench [avx512|avx2|baseline]
//
// Each figure is the best of several repetitions. The 64 instructions of a loop's body include the
// loop's own three scalar instructions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gfx9/vector/entry.hpp"
#include "gfx9/workgroup.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::vgpu;
using namespace uptempo::vgpu::gfx9;
using Words = std::vector<uint32_t>;

constexpr GpuAddress kCode = 0x10000, kData = 0x1000000;
constexpr size_t kDataBytes = 1 << 20;
constexpr unsigned kBody = 64;

// The contents of v2..v7. Read as floats, small integers are denormal: on Intel's processors each
// vector operation on them takes a microcode assist.
enum class Values { integers, floats };

// Registers of the wave before the loop: s[2:3] = data, s8 = iterations; v0 = 4 * lane, v1 = 16 *
// lane, v2..v7 as `values` says, v12 a permutation of 4 * lane over 16 KiB, v13 = 0; s[12:15] and
// flat_scratch address private memory at data, v[14:15] its first dword, v[16:17] LDS.
struct Case {
  std::string_view name;
  Words body;  // repeated to kBody instructions
  unsigned instructions;
  uint64_t exec = ~uint64_t{0};
  Values values = Values::integers;
  bool flushes = false;  // MODE flushes float32 denormals
};

constexpr uint64_t kAllLanes = ~uint64_t{0}, kHalfOfLanes = 0x5555555555555555;

const Case kCases[] = {
    {"integer: v_add_u32", {0x68020702}, 1},
    {"integer: lshlrev, xor, min, cmp, cndmask",
     {0x24080483, 0x2a0a0704, 0x1c0c0505, 0x7d920702, 0x000e0702},
     5},
    {"integer: v_mul_lo_u32", {0xd2850007, 0x00020702}, 1},
    {"integer, half of EXEC: v_add_u32", {0x68020702}, 1, kHalfOfLanes},
    {"float: v_fma_f32", {0xd1cb0001, 0x04120702}, 1, kAllLanes, Values::floats},
    {"float, half of EXEC: v_fma_f32", {0xd1cb0001, 0x04120702}, 1, kHalfOfLanes, Values::floats},
    {"float, denormal operands: v_fma_f32", {0xd1cb0001, 0x04120702}, 1},
    {"float, flushed by MODE: v_fma_f32",
     {0xd1cb0001, 0x04120702},
     1,
     kAllLanes,
     Values::floats,
     true},
    {"float, denormal operands, flushed by MODE: v_fma_f32",
     {0xd1cb0001, 0x04120702},
     1,
     kAllLanes,
     Values::integers,
     true},
    {"memory, coalesced: global_load_dword", {0xdc508000, 0x08020000}, 1},
    {"memory, coalesced, half of EXEC: global_load_dword",
     {0xdc508000, 0x08020000},
     1,
     kHalfOfLanes},
    {"memory, coalesced: global_load_dwordx4", {0xdc5c8000, 0x08020001}, 1},
    {"memory, coalesced: global_store_dword", {0xdc708000, 0x00020800}, 1},
    {"memory, scattered: global_load_dword", {0xdc508000, 0x0802000c}, 1},
    {"memory, one address: global_load_dword", {0xdc508000, 0x0802000d}, 1},
    {"memory, private: buffer_load_dword", {0xe0500010, 0x80030800}, 1},
    {"memory, private through FLAT: flat_load_dword", {0xdc500010, 0x0800000e}, 1},
    {"LDS through FLAT: flat_load_dword", {0xdc500000, 0x08000010}, 1},
    {"LDS: ds_read_b32", {0xd86c0000, 0x08000000}, 1},
    {"LDS, scattered: ds_read_b32", {0xd86c0000, 0x0800000c}, 1},
    {"scalar: s_add_u32", {0x80048104}, 1},
    {"scalar memory: s_load_dwordx2", {0xc0060281, 0x00000000}, 1},
    {"branch: s_branch to the next instruction", {0xbf820000}, 1},
};

// s_sub_u32 s8, s8, 1; s_cmp_lg_u32 s8, 0
constexpr uint32_t kLoopEnd[] = {0x80888108, 0xbf078008};
constexpr uint32_t kBranchIfScc = 0xbf850000, kEndProgram = 0xbf810000;

class Bench {
 public:
  Bench() : data_(kDataBytes), code_(kCode) {
    memory_.map({.begin = kData, .end = kData + kDataBytes, .host = data_.data()});
    memory_.map({.begin = kCode, .end = kCode + code_.size(), .host = code_.data()});
  }

  double nanoseconds(const Case& one) {
    Words words;
    const unsigned repeats = kBody / one.instructions;
    for (unsigned i = 0; i < repeats; ++i)
      words.insert(words.end(), one.body.begin(), one.body.end());
    words.insert(words.end(), std::begin(kLoopEnd), std::end(kLoopEnd));
    words.push_back(kBranchIfScc |
                    (static_cast<uint32_t>(-static_cast<int>(words.size()) - 1) & 0xffff));
    words.push_back(kEndProgram);
    std::memcpy(code_.data(), words.data(), words.size() * 4);

    constexpr uint32_t kIterations = 2000;
    double best = std::numeric_limits<double>::max();
    for (int repetition = 0; repetition < 7; ++repetition) {
      code_cache_.invalidate();
      start(one, kIterations);
      const uint64_t before = executor_.instructions;
      const auto begin = std::chrono::steady_clock::now();
      executor_.enter();
      const auto result = workgroup_.run(executor_, std::numeric_limits<uint64_t>::max());
      executor_.leave();
      const std::chrono::duration<double, std::nano> time =
          std::chrono::steady_clock::now() - begin;
      if (result != Workgroup::Result::ended) {
        throw std::runtime_error(
            fmt::format("{}: {}", one.name,
                        executor_.fault ? executor_.fault->message : "the workgroup did not end"));
      }
      best = std::min(best, time.count() / static_cast<double>(executor_.instructions - before));
    }
    return best;
  }

  // Time per wave to start a workgroup of four waves.
  double start_nanoseconds() {
    double best = std::numeric_limits<double>::max();
    for (int repetition = 0; repetition < 7; ++repetition) {
      constexpr int kStarts = 2000;
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kStarts; ++i) workgroup_.start(*dispatch(256), {0, 0, 0}, 0);
      const std::chrono::duration<double, std::nano> time =
          std::chrono::steady_clock::now() - begin;
      best = std::min(best, time.count() / (kStarts * 4.0));
    }
    return best;
  }

 private:
  static std::shared_ptr<const DispatchState> dispatch(uint16_t work_items) {
    static const auto make = [](uint16_t items) {
      auto state = std::make_shared<DispatchState>();
      state->kernel.entry = kCode;
      state->kernel.vgprs = 32;
      state->kernel.rsrc1 = 0xf0u << 12;
      state->packet.workgroup_size_x = items;
      state->packet.workgroup_size_y = state->packet.workgroup_size_z = 1;
      state->packet.grid_size_x = items;
      state->packet.grid_size_y = state->packet.grid_size_z = 1;
      state->packet.group_segment_size = 64 * 1024;
      state->name = "bench";
      return state;
    };
    static const auto one = make(64), four = make(256);
    return work_items == 64 ? one : four;
  }

  void start(const Case& one, uint32_t iterations) {
    workgroup_.start(*dispatch(64), {0, 0, 0}, 0);
    Wave& wave = workgroup_.wave(0);
    wave.set_pair(2, kData);
    wave.scalar[8] = iterations;
    wave.set_pair(12, kData | uint64_t{1} << 63);  // the scratch descriptor: swizzled
    wave.set_pair(14, 0x00ea7000ffffffff);
    wave.set_pair(kFlatScratchLo, kData);
    wave.set_exec(one.exec);
    if (one.flushes) wave.mode &= ~0x30u;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      wave.vgpr[0].lane[lane] = 4 * lane;
      wave.vgpr[1].lane[lane] = 16 * lane;
      for (unsigned v = 2; v < 8; ++v)
        wave.vgpr[v].lane[lane] =
            one.values == Values::integers
                ? v * lane + 1
                : std::bit_cast<uint32_t>(1.0f + static_cast<float>(v * lane) / 256);
      wave.vgpr[12].lane[lane] = (lane * 37 % kLanes) * 256 + 4 * lane;
      wave.vgpr[13].lane[lane] = 0;
      wave.vgpr[14].lane[lane] = 0;
      wave.vgpr[15].lane[lane] = static_cast<uint32_t>(kPrivateAperture << 16);
      wave.vgpr[16].lane[lane] = 4 * lane;
      wave.vgpr[17].lane[lane] = static_cast<uint32_t>(kSharedAperture << 16);
    }
  }

  std::vector<std::byte> data_, code_;
  AddressSpace memory_;
  CodeCache code_cache_{memory_, Target::gfx90a};
  Executor executor_{memory_, code_cache_, Target::gfx90a};
  Workgroup workgroup_;
};

constexpr std::pair<std::string_view, vector::Simd> kSimds[] = {
    {"avx512", vector::Simd::avx512},
    {"avx2", vector::Simd::avx2},
    {"baseline", vector::Simd::baseline}};

support::ExitCode run(const std::string& chosen) {
  std::string_view in_use;
  for (const auto& [name, simd] : kSimds) {
    if (chosen == name && !vector::use_simd(simd))
      throw support::Unavailable("this machine does not support " + chosen);
  }
  for (const auto& [name, simd] : kSimds)
    if (vector::simd_in_use() == simd) in_use = name;
  Bench bench;
  const support::InterruptWatch watch;
  support::print(fmt::format("ns per wave64 instruction, {}\n", in_use));
  for (const Case& one : kCases) {
    if (support::interrupted()) return support::exit_interrupted;
    support::print(fmt::format("{:>8.2f}  {}\n", bench.nanoseconds(one), one.name));
  }
  support::print(fmt::format("{:>8.2f}  start of a wave, per wave of a workgroup of four\n",
                             bench.start_nanoseconds()));
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("vgpu_bench", "Time of the virtual GPU per instruction of a wave.");
  std::string simd;
  app.option("simd", simd, "avx512, avx2 or baseline (the best of this machine)")
      .one_of({"avx512", "avx2", "baseline"});
  return support::run_program(app, argc, argv, [&] { return run(simd); });
}
