// Memory instructions in assembly: global memory, LDS, atomics, sub-dword forms, and accesses past
// the end.
#include <bit>
#include <functional>
#include <string>

#include "device/description.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {

TEST_CASE(
    "loads give the same with consecutive and other addresses of the lanes, and inactive lanes "
    "keep their registers") {
  for (const char* width : {"dword v4", "dwordx2 v[4:5]", "dwordx3 v[4:6]", "dwordx4 v[4:7]"}) {
    for (const uint64_t exec : {~uint64_t{0}, kStripes, uint64_t{1} << 63, uint64_t{0xff00}}) {
      for (const unsigned step : {1u, 2u, 3u, 4u, 5u, 0u}) {
        Fragment fragment;
        const Buffer data = counted(fragment.machine, 64 * 5 + 8);
        const std::string text = width;
        Wave& wave = fragment.prepare(
            "global_load_" + text + ", v[0:1], off offset:4\nglobal_load_" +
            text.substr(0, text.find(' ')) +
            (text.find('[') == std::string::npos
                 ? " v12"
                 : " v[12:" + std::to_string(12 + text[text.find(':') + 1] - '4') + "]") +
            ", v2, s[0:1] offset:4");
        wave.set_exec(exec);
        wave.set_pair(0, data.address);
        each_lane([&](unsigned lane) {
          set_address(wave, 0, lane, data.address + 4 * step * lane);
          wave.vgpr[2].lane[lane] = 4 * step * lane;
          for (unsigned v = 0; v < 4; ++v)
            wave.vgpr[4 + v].lane[lane] = wave.vgpr[12 + v].lane[lane] = 99;
        });
        fragment.finish();
        const unsigned count = text.find('[') == std::string::npos
                                   ? 1
                                   : static_cast<unsigned>(text[text.find(':') + 1] - '3');
        each_lane([&](unsigned lane) {
          for (unsigned v = 0; v < count; ++v) {
            CAPTURE(text, exec, step, lane, v);
            const uint32_t expected = (exec >> lane & 1) != 0 ? 0x10000 + step * lane + v + 1 : 99;
            REQUIRE(wave.vgpr[4 + v].lane[lane] == expected);
            REQUIRE(wave.vgpr[12 + v].lane[lane] == expected);
          }
        });
      }
    }
  }
}

TEST_CASE("stores change only the active lanes' memory") {
  for (const uint64_t exec : {~uint64_t{0}, kStripes, uint64_t{1} << 63}) {
    for (const unsigned dwords : {1u, 2u, 3u, 4u}) {
      Fragment fragment;
      const Buffer data = counted(fragment.machine, 64 * 4);
      const char* text[] = {
          "global_store_dword v2, v4, s[0:1]", "global_store_dwordx2 v2, v[4:5], s[0:1]",
          "global_store_dwordx3 v2, v[4:6], s[0:1]", "global_store_dwordx4 v2, v[4:7], s[0:1]"};
      Wave& wave = fragment.prepare(text[dwords - 1]);
      wave.set_exec(exec);
      wave.set_pair(0, data.address);
      each_lane([&](unsigned lane) {
        wave.vgpr[2].lane[lane] = lane * 4 * dwords;
        for (unsigned v = 0; v < 4; ++v) wave.vgpr[4 + v].lane[lane] = lane * 10 + v;
      });
      fragment.finish();
      for (unsigned i = 0; i < 64 * dwords; ++i) {
        CAPTURE(exec, dwords, i);
        REQUIRE(data.as<uint32_t>()[i] ==
                ((exec >> (i / dwords) & 1) != 0 ? i / dwords * 10 + i % dwords : 0x10000 + i));
      }
    }
  }
}

TEST_CASE(
    "dword stores at any distance, rising or falling, leave the memory in between unchanged") {
  for (const uint64_t exec : {~uint64_t{0}, kStripes}) {
    // The index of each lane's dword: gaps, pairs at a distance (as in a sorting network),
    // descending, crossing the edge of a 32-dword window.
    const std::function<unsigned(unsigned)> patterns[] = {
        [](unsigned lane) { return 2 * lane; },
        [](unsigned lane) { return 3 * lane; },
        [](unsigned lane) { return lane / 4 * 8 + lane % 4; },
        [](unsigned lane) { return lane / 8 * 16 + lane % 8; },
        [](unsigned lane) { return 200 - lane; },
        [](unsigned lane) { return lane % 16 == 15 ? lane * 2 + 20 : lane * 2; }};
    for (unsigned pattern = 0; pattern < std::size(patterns); ++pattern) {
      Fragment fragment;
      const Buffer data = counted(fragment.machine, 256);
      Wave& wave =
          fragment.prepare("global_load_dword v3, v1, s[0:1]\nglobal_store_dword v1, v2, s[0:1]");
      wave.set_pair(0, data.address);
      wave.set_exec(exec);
      std::vector<uint32_t> expected(256);
      for (uint32_t i = 0; i < 256; ++i) expected[i] = 0x10000 + i;
      each_lane([&](unsigned lane) {
        wave.vgpr[1].lane[lane] = 4 * patterns[pattern](lane);
        wave.vgpr[2].lane[lane] = lane;
        if ((exec >> lane & 1) != 0) expected[patterns[pattern](lane)] = lane;
      });
      fragment.finish();
      CAPTURE(exec, pattern);
      CHECK(std::vector<uint32_t>(data.as<uint32_t>().begin(), data.as<uint32_t>().end()) ==
            expected);
      each_lane([&](unsigned lane) {
        REQUIRE(wave.vgpr[3].lane[lane] ==
                ((exec >> lane & 1) != 0 ? 0x10000 + patterns[pattern](lane) : 0));
      });
    }
  }
}

TEST_CASE("sub-dword loads extend, and the d16 forms of gfx900 keep the other half") {
  struct Row {
    const char* mnemonic;
    uint32_t result;
  };
  for (const Row& row :
       {Row{"ubyte", 0x85}, Row{"sbyte", 0xffffff85}, Row{"ushort", 0x9485},
        Row{"sshort", 0xffff9485}, Row{"ubyte_d16", 0x11110085}, Row{"ubyte_d16_hi", 0x00852222},
        Row{"sbyte_d16", 0x1111ff85}, Row{"sbyte_d16_hi", 0xff852222}, Row{"short_d16", 0x11119485},
        Row{"short_d16_hi", 0x94852222}}) {
    for (const char* form : {"global_load_", "flat_load_"}) {
      Fragment fragment(Target::gfx900);
      INFO(form << row.mnemonic);
      const Buffer data = fragment.machine.allocate(64 * 2);
      Wave& wave = fragment.prepare(std::string(form) + row.mnemonic + " v4, v[0:1]" +
                                    (*form == 'g' ? ", off" : ""));
      each_lane([&](unsigned lane) {
        data.as<uint16_t>()[lane] = 0x9485;
        set_address(wave, 0, lane, data.address + lane * 2);
        wave.vgpr[4].lane[lane] = 0x11112222;
      });
      fragment.finish();
      each_lane([&](unsigned lane) { REQUIRE(wave.vgpr[4].lane[lane] == row.result); });
    }
  }
}

// CDNA1 to CDNA4 ISA: with ECC, "16-bit memory loads write the full 32-bit VGPR". LLVM,
// GCNSubtarget, d16PreservesUnusedBits(): the forms of LDS as well.
TEST_CASE("d16 loads clear the other half where the target has SRAM ECC") {
  struct Row {
    const char* type;      // "ubyte" in "global_load_ubyte_d16"
    const char* lds_type;  // "u8" in "ds_read_u8_d16"
    uint32_t low;
  };
  for (const Target target : llvm_targets()) {
    if (target == Target::gfx900) continue;
    for (const Row& row :
         {Row{"ubyte", "u8", 0x85}, Row{"sbyte", "i8", 0xff85}, Row{"short", "u16", 0x9485}}) {
      for (const bool high : {false, true}) {
        const std::string name = row.type + std::string("_d16") + (high ? "_hi" : ""),
                          lds_name = row.lds_type + std::string("_d16") + (high ? "_hi" : "");
        Fragment fragment(target);
        const Buffer data = fragment.machine.allocate(64 * 2);
        const Buffer scratch = fragment.machine.allocate(64 * 4);
        // The last load replaces the register of its own address.
        Wave& wave = fragment.prepare("global_load_" + name + " v4, v[0:1], off\nflat_load_" +
                                          name + " v5, v[0:1]\nbuffer_load_" + name +
                                          " v6, v2, s[4:7], 0 offen\nscratch_load_" + name +
                                          " v7, off, s8\nds_read_" + lds_name +
                                          " v8, v2\nds_read_" + lds_name + " v2, v2",
                                      64 * 2);
        wave.set_exec(kStripes);
        wave.set_pair(4, data.address);
        wave.scalar[6] = 64 * 2;
        wave.scalar[7] = 0x00027000;
        wave.set_pair(kFlatScratchLo, scratch.address);
        each_lane([&](unsigned lane) {
          data.as<uint16_t>()[lane] = 0x9485;
          scratch.as<uint32_t>()[lane] = 0x9485;
          std::memcpy(wave.lds + 2 * lane, &data.as<uint16_t>()[lane], 2);
          set_address(wave, 0, lane, data.address + lane * 2);
          wave.vgpr[2].lane[lane] = 2 * lane;
          for (unsigned reg = 4; reg <= 8; ++reg) wave.vgpr[reg].lane[lane] = 0x11112222;
        });
        fragment.finish();
        each_lane([&](unsigned lane) {
          const bool active = (kStripes >> lane & 1) != 0;
          CAPTURE(static_cast<int>(target), name, lane);
          const uint32_t loaded = high ? row.low << 16 : row.low;
          for (unsigned reg = 4; reg <= 8; ++reg) {
            CAPTURE(reg);
            CHECK(wave.vgpr[reg].lane[lane] == (active ? loaded : 0x11112222));
          }
          CHECK(wave.vgpr[2].lane[lane] == (active ? loaded : 2 * lane));
        });
      }
    }
  }
}

TEST_CASE("a target has SRAM ECC if its description says so") {
  for (const Target target :
       {Target::gfx900, Target::gfx906, Target::gfx908, Target::gfx90a, Target::gfx942}) {
    const DeviceDescription* const device = find_device_description(cpu_name(target));
    REQUIRE(device != nullptr);
    CHECK(has_sram_ecc(target) == device->sram_ecc);
  }
}

TEST_CASE("d16 loads of accumulation registers clear the other half, too") {
  Fragment fragment(Target::gfx90a);
  const Buffer data = fragment.machine.allocate(64 * 2);
  Wave& wave = fragment.prepare("global_load_short_d16_hi a4, v[0:1], off");
  each_lane([&](unsigned lane) {
    data.as<uint16_t>()[lane] = 0x9485;
    set_address(wave, 0, lane, data.address + lane * 2);
    wave.vgpr[4].lane[lane] = wave.vgpr[256 + 4].lane[lane] = 0x11112222;
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    CHECK(wave.vgpr[256 + 4].lane[lane] == 0x94850000);
    CHECK(wave.vgpr[4].lane[lane] == 0x11112222);
  });
}

TEST_CASE("sub-dword stores write the low or the high part") {
  Fragment fragment;
  const Buffer data = fragment.machine.allocate(64 * 8);
  std::memset(data.bytes.data(), 0, data.bytes.size());
  Wave& wave = fragment.prepare(R"(
    global_store_byte v0, v1, s[0:1]
    global_store_byte_d16_hi v0, v1, s[0:1] offset:1
    global_store_short v0, v1, s[0:1] offset:2
    global_store_short_d16_hi v0, v1, s[0:1] offset:4)");
  wave.set_pair(0, data.address);
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 8 * lane;
    wave.vgpr[1].lane[lane] = 0xaabbccdd;
  });
  fragment.finish();
  each_lane([&](unsigned lane) { REQUIRE(data.as<uint64_t>()[lane] == 0x0000aabbccddbbdd); });
}

TEST_CASE("consecutive bytes and halfwords form one run") {
  Fragment fragment;
  const Buffer in = fragment.machine.allocate(64 * 3), out = fragment.machine.allocate(64 * 3);
  Wave& wave = fragment.prepare(R"(
    global_load_ubyte v2, v0, s[0:1]
    global_load_ushort v3, v1, s[0:1] offset:64
    global_store_byte v0, v2, s[2:3]
    global_store_short v1, v3, s[2:3] offset:64)");
  wave.set_pair(0, in.address);
  wave.set_pair(2, out.address);
  for (size_t i = 0; i < in.bytes.size(); ++i)
    in.as<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + 3);
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = lane;
    wave.vgpr[1].lane[lane] = 2 * lane;
  });
  fragment.finish();
  CHECK(std::memcmp(in.bytes.data(), out.bytes.data(), in.bytes.size()) == 0);
}

TEST_CASE("LDS reads and writes of every width work, adjacent and scattered") {
  for (const unsigned step : {1u, 3u}) {
    Fragment fragment;
    Wave& wave = fragment.prepare(R"(
      ds_write_b32 v0, v4
      ds_write_b64 v1, v[4:5] offset:1024
      ds_write_b96 v2, v[4:6] offset:4096
      ds_write_b128 v3, v[4:7] offset:8192
      ds_read_b32 v10, v0
      ds_read_b64 v[12:13], v1 offset:1024
      ds_read_b96 v[16:18], v2 offset:4096
      ds_read_b128 v[20:23], v3 offset:8192)",
                                  16384);
    each_lane([&](unsigned lane) {
      for (unsigned v = 0; v < 4; ++v) wave.vgpr[v].lane[lane] = lane * step % 64 * 4 * (v + 1);
      for (unsigned v = 4; v < 8; ++v) wave.vgpr[v].lane[lane] = lane * 100 + v;
    });
    fragment.finish();
    each_lane([&](unsigned lane) {
      CAPTURE(lane, step);
      REQUIRE(lds_dword(wave, lane * step % 64) == lane * 100 + 4);
      const unsigned first[] = {10, 12, 16, 20};
      for (unsigned width = 0; width < 4; ++width)
        for (unsigned v = 0; v <= width; ++v)
          REQUIRE(wave.vgpr[first[width] + v].lane[lane] == lane * 100 + 4 + v);
    });
  }
}

TEST_CASE("the two-address LDS forms scale their offsets, and a result may replace the address") {
  Fragment fragment;
  Wave& wave = fragment.prepare(R"(
    ds_write2_b32 v0, v1, v2 offset0:3 offset1:70
    ds_write2st64_b64 v0, v[4:5], v[6:7] offset0:2 offset1:4
    ds_read2_b64 v[8:11], v0 offset0:128 offset1:129
    ds_read2st64_b32 v[0:1], v0 offset0:4 offset1:8)",
                                8192);
  wave.set_exec(1);
  wave.vgpr[0].lane[0] = 0;
  wave.vgpr[1].lane[0] = 111;
  wave.vgpr[2].lane[0] = 222;
  for (unsigned v = 4; v < 8; ++v) wave.vgpr[v].lane[0] = 40 + v;
  fragment.finish();
  CHECK(lds_dword(wave, 3) == 111);
  CHECK(lds_dword(wave, 70) == 222);
  CHECK(lds_dword(wave, 256) == 44);
  CHECK(lds_dword(wave, 257) == 45);
  CHECK(lds_dword(wave, 512) == 46);
  CHECK(wave.vgpr[8].lane[0] == 44);
  CHECK(wave.vgpr[9].lane[0] == 45);
  CHECK(wave.vgpr[10].lane[0] == 0);
  CHECK(wave.vgpr[0].lane[0] == 44);
  CHECK(wave.vgpr[1].lane[0] == 46);
}

TEST_CASE(
    "LDS past its end reads 0 and is not written, and sub-dword forms keep their neighbours") {
  Fragment fragment;
  Wave& wave = fragment.prepare(R"(
    ds_write_b32 v0, v1
    ds_read_b32 v2, v0
    ds_add_rtn_u32 v3, v0, v1
    ds_write_b8 v4, v1
    ds_write_b8_d16_hi v4, v1 offset:1
    ds_write_b16_d16_hi v4, v1 offset:2
    ds_read_i8 v5, v4
    ds_read_u16_d16_hi v6, v4 offset:2)",
                                256);
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = lane < 32 ? 4 * lane : 252 + 4 * (lane - 31);
    wave.vgpr[1].lane[lane] = 0x00c300f0 + lane;
    wave.vgpr[2].lane[lane] = wave.vgpr[3].lane[lane] = 5;
    wave.vgpr[4].lane[lane] = 128;
    wave.vgpr[6].lane[lane] = 0x1234;
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    REQUIRE(wave.vgpr[2].lane[lane] == (lane < 32 ? 0x00c300f0 + lane : 0));
    REQUIRE(wave.vgpr[3].lane[lane] == (lane < 32 ? 0x00c300f0 + lane : 0));
  });
  CHECK(lds_dword(wave, 0) == 2 * 0x00c300f0);
  CHECK(lds_dword(wave, 32) == 0x00c3c32f);  // the highest lane's
  CHECK(wave.vgpr[5].lane[0] == 0x2f);
  CHECK(wave.vgpr[6].lane[0] == 0x00c30000);  // gfx90a: without the other half
}

TEST_CASE("LDS atomics return the old value and store the new one") {
  struct Row {
    const char* text;
    uint64_t before, data, data1, after;
  };
  const uint64_t minus1 = 0xffffffff, one_f = 0x3f800000, two_f = 0x40000000, three_f = 0x40400000;
  const auto d = [](double value) { return std::bit_cast<uint64_t>(value); };
  for (const Row& row :
       {Row{"ds_add_rtn_u32 v8, v0, v2", minus1, 2, 0, 1},
        Row{"ds_sub_rtn_u32 v8, v0, v2", 1, 2, 0, minus1},
        Row{"ds_rsub_rtn_u32 v8, v0, v2", 1, 5, 0, 4},
        Row{"ds_inc_rtn_u32 v8, v0, v2", 5, 5, 0, 0},
        Row{"ds_dec_rtn_u32 v8, v0, v2", 9, 5, 0, 5},
        Row{"ds_dec_rtn_u32 v8, v0, v2", 3, 5, 0, 2},
        Row{"ds_min_rtn_i32 v8, v0, v2", 1, minus1, 0, minus1},
        Row{"ds_min_rtn_u32 v8, v0, v2", 1, minus1, 0, 1},
        Row{"ds_max_rtn_i32 v8, v0, v2", 1, minus1, 0, 1},
        Row{"ds_and_rtn_b32 v8, v0, v2", 0xff, 0x0f, 0, 0x0f},
        Row{"ds_or_rtn_b32 v8, v0, v2", 0xf0, 0x0f, 0, 0xff},
        Row{"ds_xor_rtn_b32 v8, v0, v2", 0xff, 0x0f, 0, 0xf0},
        Row{"ds_mskor_rtn_b32 v8, v0, v2, v4", 0xff, 0x0f, 0x100, 0x1f0},
        Row{"ds_wrxchg_rtn_b32 v8, v0, v2", 7, 8, 0, 8},
        Row{"ds_cmpst_rtn_b32 v8, v0, v2, v4", 7, 7, 9, 9},
        Row{"ds_cmpst_rtn_b32 v8, v0, v2, v4", 7, 8, 9, 7},
        Row{"ds_wrap_rtn_b32 v8, v0, v2, v4", 7, 5, 100, 2},
        Row{"ds_wrap_rtn_b32 v8, v0, v2, v4", 3, 5, 100, 103},
        Row{"ds_add_rtn_f32 v8, v0, v2", one_f, two_f, 0, three_f},
        Row{"ds_max_rtn_f32 v8, v0, v2", one_f, two_f, 0, two_f},
        Row{"ds_add_rtn_u64 v[8:9], v0, v[2:3]", minus1, 1, 0, 1ull << 32},
        Row{"ds_max_rtn_i64 v[8:9], v0, v[2:3]", 1, ~0ull, 0, 1},
        Row{"ds_cmpst_rtn_b64 v[8:9], v0, v[2:3], v[4:5]", 1ull << 40, 1ull << 40, 6, 6},
        Row{"ds_add_rtn_f64 v[8:9], v0, v[2:3]", d(1.5), d(2.25), 0, d(3.75)},
        Row{"ds_condxchg32_rtn_b64 v[8:9], v0, v[2:3]", 0x0000000500000006, 0x8000000700000008, 0,
            0x0000000700000006}}) {
    Fragment fragment;
    INFO(row.text);
    Wave& wave = fragment.prepare(std::string(row.text) + " offset:16", 64);
    wave.set_exec(1);
    set_lds(wave, 4, static_cast<uint32_t>(row.before));
    set_lds(wave, 5, static_cast<uint32_t>(row.before >> 32));
    set_address(wave, 2, 0, row.data);
    set_address(wave, 4, 0, row.data1);
    fragment.finish();
    CHECK((lds_dword(wave, 4) | uint64_t{lds_dword(wave, 5)} << 32) == row.after);
    CHECK((wave.vgpr[8].lane[0] | uint64_t{wave.vgpr[9].lane[0]} << 32) == row.before);
  }
}

TEST_CASE("each kind of global atomic works, with and without a returned value") {
  struct Row {
    const char* name;
    unsigned dwords;
    uint64_t before, data, compare, after;
  };
  const auto d = [](double value) { return std::bit_cast<uint64_t>(value); };
  for (const Row& row : {Row{"swap", 1, 1, 2, 0, 2},
                         Row{"cmpswap", 1, 1, 2, 1, 2},
                         Row{"cmpswap", 1, 1, 2, 3, 1},
                         Row{"add", 1, 0xffffffff, 3, 0, 2},
                         Row{"sub", 1, 1, 3, 0, 0xfffffffe},
                         Row{"smin", 1, 1, 0xffffffff, 0, 0xffffffff},
                         Row{"umin", 1, 1, 0xffffffff, 0, 1},
                         Row{"smax", 1, 1, 0xffffffff, 0, 1},
                         Row{"umax", 1, 1, 0xffffffff, 0, 0xffffffff},
                         Row{"and", 1, 12, 10, 0, 8},
                         Row{"or", 1, 12, 10, 0, 14},
                         Row{"xor", 1, 12, 10, 0, 6},
                         Row{"inc", 1, 3, 3, 0, 0},
                         Row{"dec", 1, 0, 9, 0, 9},
                         Row{"swap_x2", 2, 1, ~0ull, 0, ~0ull},
                         Row{"cmpswap_x2", 2, 1ull << 40, 7, 1ull << 40, 7},
                         Row{"add_x2", 2, 0xffffffff, 1, 0, 1ull << 32},
                         Row{"smin_x2", 2, 5, ~0ull, 0, ~0ull},
                         Row{"umax_x2", 2, 5, ~0ull, 0, ~0ull},
                         Row{"add_f32", 1, 0x3f800000, 0x40000000, 0, 0x40400000},
                         Row{"pk_add_f16", 1, 0x3c004000, 0x3c003c00, 0, 0x40004200},
                         Row{"add_f64", 2, d(0.5), d(0.25), 0, d(0.75)},
                         Row{"min_f64", 2, d(0.5), d(0.25), 0, d(0.25)},
                         Row{"max_f64", 2, d(0.5), d(0.25), 0, d(0.5)}}) {
    for (const bool returns : {false, true}) {
      Fragment fragment;
      INFO(row.name << (returns ? " returning" : ""));
      const bool compares = std::string_view(row.name).starts_with("cmpswap");
      const unsigned data_dwords = row.dwords * (compares ? 2 : 1);
      const std::string data =
          data_dwords == 1 ? "v4" : "v[4:" + std::to_string(3 + data_dwords) + "]";
      const std::string destination = !returns ? "" : row.dwords == 1 ? "v8, " : "v[8:9], ";
      const Buffer memory = fragment.machine.allocate(64 * 8);
      Wave& wave = fragment.prepare("global_atomic_" + std::string(row.name) + " " + destination +
                                    "v0, " + data + ", s[0:1]" + (returns ? " glc" : ""));
      wave.set_pair(0, memory.address);
      wave.set_exec(kStripes);
      each_lane([&](unsigned lane) {
        memory.as<uint64_t>()[lane] = row.before;
        wave.vgpr[0].lane[lane] = 8 * lane;
        set_address(wave, 4, lane, row.data);
        set_address(wave, 4 + row.dwords, lane, row.compare);
        if (row.dwords == 1) wave.vgpr[4].lane[lane] = static_cast<uint32_t>(row.data);
      });
      fragment.finish();
      each_lane([&](unsigned lane) {
        CAPTURE(lane);
        const bool active = (kStripes >> lane & 1) != 0;
        const uint64_t mask = row.dwords == 1 ? 0xffffffff : ~0ull;
        REQUIRE((memory.as<uint64_t>()[lane] & mask) == ((active ? row.after : row.before) & mask));
        const uint64_t old = wave.vgpr[8].lane[lane] | uint64_t{wave.vgpr[9].lane[lane]} << 32;
        REQUIRE((old & mask) == (active && returns ? row.before & mask : 0));
      });
    }
  }
}

TEST_CASE("lanes exchange data through the LDS crossbar") {
  Fragment fragment;
  Wave& wave = fragment.prepare(R"(
    ds_bpermute_b32 v2, v0, v1
    ds_permute_b32 v3, v0, v1
    ds_swizzle_b32 v4, v1 offset:swizzle(QUAD_PERM, 1, 0, 3, 2)
    ds_swizzle_b32 v5, v1 offset:swizzle(REVERSE, 32)
    ds_swizzle_b32 v6, v1 offset:swizzle(BROADCAST, 8, 5)
    ds_swizzle_b32 v7, v1 offset:swizzle(SWAP, 16))");
  wave.set_exec(~(uint64_t{1} << 9));
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 4 * ((lane + 3) % 64) + 256;  // high bits are ignored
    wave.vgpr[1].lane[lane] = 1000 + lane;
    for (unsigned v = 2; v < 8; ++v) wave.vgpr[v].lane[lane] = 7;
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    const auto from = [&](unsigned source) {
      return lane == 9 ? 7 : source == 9 ? 0 : 1000 + source;
    };
    REQUIRE(wave.vgpr[2].lane[lane] == from((lane + 3) % 64));
    REQUIRE(wave.vgpr[3].lane[lane] == from((lane + 61) % 64));
    REQUIRE(wave.vgpr[4].lane[lane] == from(lane ^ 1));
    REQUIRE(wave.vgpr[5].lane[lane] == from(lane ^ 31));
    REQUIRE(wave.vgpr[6].lane[lane] == from((lane & ~7u) | 5));
    REQUIRE(wave.vgpr[7].lane[lane] == from(lane ^ 16));
  });
}

TEST_CASE("append and consume count the active lanes") {
  Fragment fragment;
  Wave& wave =
      fragment.prepare("ds_append v0 offset:8\nds_append v1 offset:8\nds_consume v2 offset:8", 64);
  wave.set_exec(0xff);
  fragment.finish();
  CHECK(wave.vgpr[0].lane[0] == 0);
  CHECK(wave.vgpr[1].lane[7] == 8);
  CHECK(wave.vgpr[2].lane[3] == 16);
  CHECK(lds_dword(wave, 2) == 8);
}

TEST_CASE("accumulation registers are loaded and stored directly") {
  Fragment fragment;
  const Buffer data = counted(fragment.machine, 128);
  Wave& wave =
      fragment.prepare("global_load_dwordx2 a[4:5], v0, s[0:1]\nglobal_store_dword v0, a5, s[0:1]");
  wave.set_pair(0, data.address);
  each_lane([&](unsigned lane) { wave.vgpr[0].lane[lane] = 8 * lane; });
  fragment.finish();
  CHECK(wave.vgpr[256 + 4].lane[3] == 0x10006);
  CHECK(data.as<uint32_t>()[6] == 0x10007);
}

}  // namespace uptempo::vgpu::gfx9::test
