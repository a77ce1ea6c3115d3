// Addresses and range checks of buffer accesses. The first test's code comes from a compiler, whose
// arithmetic on offsets is that of 32 bits: an instruction adds the lane's offset and its own in 32
// bits on gfx9 to gfx12 (LLVM pull request 152584: from gfx1250 on, each is extended to 45 bits
// first).
//
// Nothing else wraps: neither a dword of an element after the first, nor soffset, which LLVM
// splits off an offset only if no sum wraps (LLVM pull request 207821).
#include <functional>

#include <uptempo/kernels/raw_buffers.hpp>
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

// Runs one instruction with s[8:11] as the descriptor of `memory`, v0 as the offset or the index,
// v1 as the offset beside an index, v[4:7] as data.
struct BufferAccess {
  Fragment fragment;
  Buffer memory = counted(fragment.machine, 1024);
  uint32_t stride = 0;
  uint32_t records = 4096;
  uint32_t word3 = 0;
  uint32_t soffset = 0;  // s12
  bool swizzled = false;

  Wave& run(const char* text, const std::function<void(Wave&)>& prepare) {
    Wave& wave = fragment.prepare(text, 256);
    wave.set_pair(8, memory.address | uint64_t{stride} << 48 | uint64_t{swizzled} << 63);
    wave.scalar[10] = records;
    wave.scalar[11] = word3;
    wave.scalar[12] = soffset;
    prepare(wave);
    return fragment.finish();
  }
  // Runs it with this offset in v0 of every lane. Returns v4 of lane 0.
  uint32_t load(const char* text, uint32_t offset) {
    return run(text,
               [&](Wave& wave) {
                 wave.set_exec(1);
                 wave.vgpr[0].lane[0] = offset;
                 wave.vgpr[4].lane[0] = 99;
               })
        .vgpr[4]
        .lane[0];
  }
};

constexpr uint32_t at(unsigned index) { return 0x10000 + index; }
constexpr uint32_t minus(uint32_t bytes) { return 0u - bytes; }

}  // namespace

TEST_CASE(
    "compiled accesses to raw buffers add the lane's and the instruction's offset in 32 bits") {
  for (const Target target : {Target::gfx90a, Target::gfx908, Target::gfx906, Target::gfx900}) {
    Machine machine(target);
    machine.load(kernels::raw_buffers());
    for (const uint32_t back : {0u, 4u, 64u, 2048u}) {
      CAPTURE(target, back);
      // With the constant in the instruction, lane `back / 4 - 512` is the first of the buffer.
      const uint32_t first = 512 - back / 4;
      const Buffer in = counted(machine, 1024), out = machine.allocate(4096);
      REQUIRE_FALSE(machine.run("shift", {}, Arguments().add(in).add(out).add(4096u).add(back)));
      for (uint32_t i = 0; i < 1024; ++i) {
        CAPTURE(i);
        const bool written = i > first && i <= first + kLanes;
        REQUIRE(out.as<uint32_t>()[i] == (written ? at(i - 1) : 0xcccccccc));
      }
      const uint32_t first_of_four = 512 - back / 4;
      REQUIRE_FALSE(
          machine.run("copy_four", {}, Arguments().add(in).add(out).add(4096u).add(back)));
      for (uint32_t i = 0; i < 4 * kLanes; ++i) {
        CAPTURE(i);
        REQUIRE(out.as<uint32_t>()[i] == at(first_of_four + i));
      }
    }
  }
}

TEST_CASE("an offset of -1 masks a lane's store to a raw buffer, also one of several dwords") {
  Machine machine;
  machine.load(kernels::raw_buffers());
  const Buffer out = machine.allocate(8 * kLanes);
  REQUIRE_FALSE(
      machine.run("masked", {}, Arguments().add(out).add(static_cast<uint32_t>(8 * kLanes))));
  for (uint32_t i = 0; i < 2 * kLanes; ++i) {
    CAPTURE(i);
    REQUIRE(out.as<uint32_t>()[i] == (i / 2 % 2 == 0 ? 0xcccccccc : i / 2));
  }
}

TEST_CASE("the sum of both offsets wraps in loads, stores, atomics and loads to LDS") {
  BufferAccess raw;
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], 0 offen offset:8", minus(4)) == at(1));
  CHECK(raw.load("buffer_load_dwordx2 v[4:5], v0, s[8:11], 0 offen offset:4", minus(4)) == at(0));
  raw.run("buffer_store_dword v4, v0, s[8:11], 0 offen offset:16", [](Wave& wave) {
    wave.set_exec(1);
    wave.vgpr[0].lane[0] = minus(8);
    wave.vgpr[4].lane[0] = 7;
  });
  CHECK(raw.memory.as<uint32_t>()[2] == 7);
  raw.run("buffer_atomic_add v4, v0, s[8:11], 0 offen offset:16", [](Wave& wave) {
    wave.set_exec(1);
    wave.vgpr[0].lane[0] = minus(8);
    wave.vgpr[4].lane[0] = 5;
  });
  CHECK(raw.memory.as<uint32_t>()[2] == 12);
  const Wave& wave =
      raw.run("buffer_load_dword v0, s[8:11], 0 offen offset:16 lds", [](Wave& lane) {
        lane.set_exec(1);
        lane.scalar[kM0] = 0;
        lane.vgpr[0].lane[0] = minus(12);
      });
  CHECK(lds_dword(wave, 4) == at(1));
}

TEST_CASE("a sum of offsets that stays negative is out of range, and so are its later dwords") {
  BufferAccess raw;
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], 0 offen offset:4", minus(8)) == 0);
  const Wave& wave = raw.run("buffer_load_dwordx2 v[4:5], v0, s[8:11], 0 offen", [](Wave& lane) {
    lane.set_exec(1);
    lane.vgpr[0].lane[0] = minus(4);
    lane.vgpr[5].lane[0] = 99;
  });
  CHECK(wave.vgpr[4].lane[0] == 0);
  CHECK(wave.vgpr[5].lane[0] == 0);
}

// Vega ISA and CDNA3 ISA, range checking: raw buffers are out of range from num_records -
// sgpr_offset on, and sgpr_offset is no part of the offset.
TEST_CASE("soffset moves the address and the end of a raw buffer, and wraps nothing") {
  BufferAccess raw;
  raw.soffset = 8;
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], s12 offen", 0) == at(2));
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], s12 offen", 4096 - 12) == at(1023));
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], s12 offen", 4096 - 8) == 0);
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], s12 offen", minus(8)) == 0);
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], s12 offen offset:4", minus(4)) == at(2));
  raw.soffset = 8192;  // more than num_records
  CHECK(raw.load("buffer_load_dword v4, v0, s[8:11], s12 offen", 0) == 0);
}

TEST_CASE("the sum of both offsets wraps in structured and swizzled buffers, too") {
  BufferAccess structured;
  structured.stride = 16;
  structured.records = 64;
  const auto load = [&](uint32_t index, uint32_t offset) {
    return structured
        .run("buffer_load_dword v4, v[0:1], s[8:11], 0 idxen offen offset:8",
             [&](Wave& wave) {
               wave.set_exec(1);
               wave.vgpr[0].lane[0] = index;
               wave.vgpr[1].lane[0] = offset;
               wave.vgpr[4].lane[0] = 99;
             })
        .vgpr[4]
        .lane[0];
  };
  CHECK(load(3, minus(4)) == at(3 * 4 + 1));
  CHECK(load(64, minus(4)) == 0);  // the index decides the range
  structured.swizzled = true;      // index stride 8: dword d of element i is at 32 * d + 4 * i
  CHECK(load(3, minus(4)) == at(8 * 1 + 3));
  CHECK(load(3, minus(16)) == 0);  // the offset does, too
}

// The private segment's descriptor is not range checked on gfx9, so LLVM lets an offset register be
// negative there (LLVM review D40585).
TEST_CASE("the sum of both offsets wraps in private memory") {
  BufferAccess scratch;
  scratch.memory = scratch.fragment.machine.allocate(16 * 256);
  scratch.swizzled = true;
  scratch.word3 = 1u << 23 | 3u << 21;  // add lane, index stride 64
  const Wave& wave = scratch.run(
      "buffer_store_dword v4, v0, s[8:11], 0 offen offset:8\n"
      "buffer_load_dword v5, v1, s[8:11], 0 offen",
      [](Wave& lanes) {
        each_lane([&](unsigned lane) {
          lanes.vgpr[0].lane[lane] = minus(4);
          lanes.vgpr[1].lane[lane] = 4;
          lanes.vgpr[4].lane[lane] = lane;
        });
      });
  each_lane([&](unsigned lane) { CHECK(wave.vgpr[5].lane[lane] == lane); });
}

// LLVM pull request 68302: scalar loads extend the offset to 64 bits.
TEST_CASE("scalar buffer loads add in 64 bits") {
  BufferAccess raw;
  raw.soffset = minus(4);
  const Wave& wave = raw.run("s_buffer_load_dword s4, s[8:11], s12 offset:8",
                             [](Wave& lane) { lane.scalar[4] = 99; });
  CHECK(wave.scalar[4] == 0);
}

}  // namespace uptempo::vgpu::gfx9::test
