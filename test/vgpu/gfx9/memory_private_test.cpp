// Buffers, private memory and FLAT, in assembly.
#include <algorithm>
#include <string>

#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {

TEST_CASE("raw buffers: offsets add up, and past the end loads give 0 and stores do nothing") {
  Fragment fragment;
  const Buffer data = counted(fragment.machine, 128);
  Wave& wave = fragment.prepare(R"(
    buffer_load_dword v2, v0, s[0:3], s4 offen offset:8
    buffer_load_dwordx2 v[4:5], v0, s[0:3], 0 offen
    buffer_store_dword v1, v0, s[0:3], 0 offen offset:4
    buffer_atomic_add v6, v0, s[0:3], 0 offen glc)");
  wave.set_pair(0, data.address);
  wave.scalar[2] = 200;  // bytes
  wave.scalar[3] = 0x00027000;
  wave.scalar[4] = 16;
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 4 * lane;
    wave.vgpr[1].lane[lane] = 77;
    wave.vgpr[6].lane[lane] = 1;
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    const auto at = [](unsigned index) { return index < 50 ? 0x10000 + index : 0; };
    REQUIRE(wave.vgpr[2].lane[lane] == at(lane + 6));
    REQUIRE(wave.vgpr[4].lane[lane] == at(lane));
    REQUIRE(wave.vgpr[5].lane[lane] == at(lane + 1));
    REQUIRE(wave.vgpr[6].lane[lane] == (lane == 0 ? 0x10000 : lane < 50 ? 77 : 0));
  });
  CHECK(data.as<uint32_t>()[49] == 78);
  CHECK(data.as<uint32_t>()[50] == 0x10000 + 50);
}

TEST_CASE(
    "structured buffers: the index is multiplied by the stride, and the range counts records") {
  Fragment fragment;
  const Buffer data = counted(fragment.machine, 256);
  Wave& wave = fragment.prepare("buffer_load_dword v2, v[0:1], s[0:3], 0 idxen offen offset:4");
  wave.set_pair(0, data.address | uint64_t{12} << 48);
  wave.scalar[2] = 40;  // records
  wave.scalar[3] = 0x00027000;
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = lane;
    wave.vgpr[1].lane[lane] = 4;
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    REQUIRE(wave.vgpr[2].lane[lane] == (lane < 40 ? 0x10000 + 3 * lane + 2 : 0));
  });
}

TEST_CASE(
    "scratch: each lane has its own bytes at one offset, also misaligned and through flat "
    "addresses") {
  Fragment fragment;
  const Buffer scratch = fragment.machine.allocate(64 * 256);
  std::memset(scratch.bytes.data(), 0, scratch.bytes.size());
  Wave& wave = fragment.prepare(R"(
    scratch_store_dwordx2 off, v[2:3], s0 offset:8
    scratch_load_dword v4, v0, off offset:4
    scratch_store_short v1, v2, off offset:3
    scratch_load_ubyte v5, v1, off offset:4
    v_mov_b32 v9, 0x20000
    v_mov_b32 v8, v0
    flat_load_dword v6, v[8:9]
    scratch_load_dword v7, v1, off offset:2)");
  wave.set_pair(kFlatScratchLo, scratch.address);
  wave.scalar[0] = 4;
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = lane % 2 == 0 ? 8 : 12;
    wave.vgpr[1].lane[lane] = 32 + lane % 4 * 4;
    wave.vgpr[2].lane[lane] = 0xabcd0000 + lane;
    wave.vgpr[3].lane[lane] = 0xef010000 + lane;
  });
  fragment.finish();
  // dword 3 of lane 5 is at (3 * 64 + 5) * 4
  CHECK(scratch.as<uint32_t>()[3 * 64 + 5] == 0xabcd0005);
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    REQUIRE(wave.vgpr[4].lane[lane] == (lane % 2 == 0 ? 0xabcd0000 : 0xef010000) + lane);
    REQUIRE(wave.vgpr[5].lane[lane] ==
            0);  // the high byte of the short, which crossed into the next dword
    REQUIRE(wave.vgpr[6].lane[lane] == (lane % 2 == 0 ? 0 : 0xabcd0000 + lane));
    REQUIRE(wave.vgpr[7].lane[lane] == lane << 8);
  });
}

// Two waves of 16 bytes for each lane. What is beyond a wave's own is the other's.
TEST_CASE("private memory ends with the wave's own segment") {
  struct Row {
    const char* text;
    bool is_outside;
    const char* message;
  };
  for (const Row& row : {
           Row{"scratch_store_dword off, v2, s0 offset:8", false, ""},
           Row{"scratch_store_dword off, v2, s0 offset:12", true, "writes byte 16 of"},
           Row{"scratch_load_dwordx2 v[4:5], off, s0 offset:4", false, ""},
           Row{"scratch_load_dwordx2 v[4:5], off, s0 offset:8", true, "reads byte 16 of"},
           Row{"scratch_store_byte v0, v2, off offset:15", false, ""},
           Row{"scratch_store_byte v0, v2, off offset:17", true, "writes byte 17 of"},
           Row{"scratch_load_dword v4, v1, off", true, "reads byte 16 of"},  // of lane 9 alone
           Row{"flat_load_dword v4, v[8:9] offset:12", false, ""},
           Row{"flat_load_dword v4, v[8:9] offset:16", true, "reads byte 16 of"},
           Row{"flat_atomic_add v[8:9], v2 offset:16", true, "atomically updates byte 16 of"},
       }) {
    CAPTURE(row.text);
    Fragment fragment;
    const Buffer scratch = fragment.machine.allocate(2 * 64 * 16);
    std::memset(scratch.bytes.data(), 0, scratch.bytes.size());
    Wave& wave = fragment.prepare(row.text);
    wave.set_pair(kFlatScratchLo, scratch.address);
    wave.scratch_base = scratch.address;
    wave.scratch_bytes = 64 * 16;
    wave.scalar[0] = 4;
    each_lane([&](unsigned lane) {
      wave.vgpr[1].lane[lane] = lane == 9 ? 16 : 0;
      wave.vgpr[2].lane[lane] = 1;
      set_address(wave, 8, lane, GpuAddress{2} << 48);
    });
    const auto fault = fragment.run();
    CHECK(fault.has_value() == row.is_outside);
    if (!fault) continue;
    CAPTURE(fault->message);
    CHECK(fault->error == QueueError::aperture_violation);
    CHECK(fault->message.find(row.message) != std::string::npos);
    CHECK(fault->message.find("a work-item's private memory, which has 16") != std::string::npos);
    CHECK(std::ranges::count(scratch.bytes.subspan(64 * 16), std::byte{}) == 64 * 16);
  }
}

TEST_CASE(
    "one FLAT instruction serves lanes in LDS, in private memory and elsewhere, for each element "
    "size") {
  struct Row {
    const char* load;
    const char* store;
    unsigned bytes;
  };
  // Every third lane per kind of memory, or all lanes of one kind; adjacent or apart.
  for (const Row& row :
       {Row{"ubyte v4", "byte", 1}, Row{"ushort v4", "short", 2}, Row{"dword v4", "dword", 4},
        Row{"dwordx2 v[4:5]", "dwordx2", 8}, Row{"dwordx4 v[4:7]", "dwordx4", 16}}) {
    for (const uint64_t exec : {~uint64_t{0}, kStripes}) {
      for (unsigned way = 0; way < 4; ++way) {
        for (const unsigned step : {0u, 16u}) {
          CAPTURE(row.load, exec, way, step);
          Fragment fragment;
          const Buffer data = fragment.machine.allocate(4096);
          const Buffer scratch = fragment.machine.allocate(64 * 2048);
          const std::string load = row.load;
          Wave& wave =
              fragment.prepare("flat_store_" + std::string(row.store) + " v[0:1], v" +
                                   (load.find('[') == std::string::npos
                                        ? std::string("8")
                                        : "[8:" + std::to_string(8 + row.bytes / 4 - 1) + "]") +
                                   "\nflat_load_" + load + ", v[0:1]",
                               2048);
          wave.set_pair(kFlatScratchLo, scratch.address);
          wave.set_exec(exec);
          const auto way_of = [&](unsigned lane) { return way == 3 ? lane % 3 : way; };
          const auto offset_of = [&](unsigned lane) {
            return way_of(lane) == 2 ? 16 + step * lane : 32 * lane;
          };
          each_lane([&](unsigned lane) {
            const GpuAddress base =
                way_of(lane) == 0 ? data.address : GpuAddress{way_of(lane)} << 48;
            set_address(wave, 0, lane, base + offset_of(lane));
            for (unsigned v = 0; v < 4; ++v)
              wave.vgpr[8 + v].lane[lane] = 0x01010101 * (lane + 1) + v;
          });
          fragment.finish();
          const uint32_t mask = row.bytes >= 4 ? ~0u : (1u << 8 * row.bytes) - 1;
          each_lane([&](unsigned lane) {
            CAPTURE(lane);
            const bool active = (exec >> lane & 1) != 0;
            for (unsigned v = 0; v < std::max(1u, row.bytes / 4); ++v) {
              const uint32_t stored = wave.vgpr[8 + v].lane[lane] & mask;
              REQUIRE(wave.vgpr[4 + v].lane[lane] == (active ? stored : 0));
              const unsigned dword = offset_of(lane) / 4 + v;
              uint32_t there = 0;
              if (way_of(lane) == 0) std::memcpy(&there, data.bytes.data() + 4 * dword, 4);
              if (way_of(lane) == 1) there = lds_dword(wave, dword);
              if (way_of(lane) == 2)
                std::memcpy(&there, scratch.bytes.data() + 4 * (64 * dword + lane), 4);
              if (active) REQUIRE((there & mask) == stored);
            }
          });
        }
      }
    }
  }
}

TEST_CASE("a FLAT access past the end of LDS is a memory fault") {
  Fragment fragment;
  Wave& wave = fragment.prepare("flat_load_dwordx2 v[4:5], v[0:1]", 1024);
  each_lane(
      [&](unsigned lane) { set_address(wave, 0, lane, (GpuAddress{1} << 48) + 16 * lane + 4); });
  set_address(wave, 0, 63, (GpuAddress{1} << 48) + 1020);
  const auto fault = fragment.run();
  REQUIRE(fault);
  REQUIRE(fault->memory);
  CHECK(fault->memory->address == (GpuAddress{1} << 48) + 1020);
}

TEST_CASE("private memory has the same layout through the scratch descriptor") {
  Fragment fragment;
  const Buffer scratch = fragment.machine.allocate(64 * 64);
  Wave& wave = fragment.prepare(R"(
    buffer_store_dword v2, off, s[0:3], s4 offset:8
    buffer_load_dword v3, v0, s[0:3], s4 offen
    buffer_store_byte v2, v0, s[0:3], s4 offen offset:5
    buffer_load_dword v4, off, s[0:3], s4 offset:12)");
  wave.set_pair(0, scratch.address | uint64_t{1} << 63);
  wave.scalar[2] = 0xffffffff;
  wave.scalar[3] = 0x00ea7000;  // element size 4, index stride 64, add lane id
  wave.scalar[4] = 256;         // one dword of each lane
  std::memset(scratch.bytes.data(), 0, scratch.bytes.size());
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 8;
    wave.vgpr[2].lane[lane] = 500 + lane;
  });
  fragment.finish();
  CHECK(scratch.as<uint32_t>()[3 * 64 + 17] == 517);
  each_lane([&](unsigned lane) {
    REQUIRE(wave.vgpr[3].lane[lane] == 500 + lane);
    REQUIRE(wave.vgpr[4].lane[lane] == ((500 + lane) & 0xff) << 8);
  });
}

}  // namespace uptempo::vgpu::gfx9::test
