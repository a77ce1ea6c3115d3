// Instructions and the start of waves that only gfx942 has, in assembly. matrix/layouts.txt and
// llvm/llvm_float8_test.cpp are the sources for matrix instructions and 8-bit floats.
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "device/observer.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

u32 bits(float x) { return std::bit_cast<u32>(x); }

// Two bfloat16 numbers in a dword.
u32 bfloats(float low, float high) { return bits(low) >> 16 | (bits(high) & 0xffff0000); }

}  // namespace

TEST_CASE("gfx942: 64-bit moves, and shifted 64-bit sums") {
  Fragment fragment(Target::gfx942);
  Wave& wave = fragment.prepare(R"(
    v_mov_b64 v[4:5], v[0:1]
    v_mov_b64 v[6:7], s[0:1]
    v_mov_b64 v[8:9], -2
    v_mov_b64 v[10:11], 0x12345678
    v_lshl_add_u64 v[12:13], v[0:1], 3, v[2:3]
    v_lshl_add_u64 v[14:15], v[0:1], v2, s[0:1]
    v_mov_b64 v[16:17], v[0:1] row_newbcast:5 row_mask:0xf bank_mask:0xf)");
  wave.set_pair(0, 0xfedcba9876543210);
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 0x89abcdef + lane;
    wave.vgpr[1].lane[lane] = 0x01234567 * lane;
    wave.vgpr[2].lane[lane] = lane % 5;
    wave.vgpr[3].lane[lane] = ~lane;
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    const auto pair = [&](unsigned reg) {
      return wave.vgpr[reg].lane[lane] | u64{wave.vgpr[reg + 1].lane[lane]} << 32;
    };
    REQUIRE(pair(4) == pair(0));
    REQUIRE(pair(6) == 0xfedcba9876543210);
    REQUIRE(pair(8) == ~u64{1});
    REQUIRE(pair(10) == 0x12345678);
    REQUIRE(pair(12) == (pair(0) << 3) + pair(2));
    REQUIRE(pair(14) == (pair(0) << lane % 5) + 0xfedcba9876543210);
    const unsigned from = lane / 16 * 16 + 5;
    REQUIRE(wave.vgpr[16].lane[lane] == 0x89abcdef + from);
    REQUIRE(wave.vgpr[17].lane[lane] == 0x01234567 * from);
  });
}

TEST_CASE("gfx942: v_fmamk and v_fmaak round once") {
  Fragment fragment(Target::gfx942);
  Wave& wave = fragment.prepare(R"(
    v_fmamk_f32 v2, v0, 0x3f800001, v1
    v_fmaak_f32 v3, v0, v1, 0x3dcccccd)");
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = bits(1.0f + static_cast<float>(lane) * 0x1p-23f);
    wave.vgpr[1].lane[lane] = bits(-1.0f / static_cast<float>(lane + 3));
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    const auto x = std::bit_cast<float>(wave.vgpr[0].lane[lane]),
               y = std::bit_cast<float>(wave.vgpr[1].lane[lane]);
    REQUIRE(wave.vgpr[2].lane[lane] == bits(std::fma(x, std::bit_cast<float>(0x3f800001u), y)));
    REQUIRE(wave.vgpr[3].lane[lane] == bits(std::fma(x, y, 0.1f)));
  });
}

TEST_CASE("gfx942: the address of a scratch access is the sum of the operands that it has") {
  Fragment fragment(Target::gfx942);
  const Buffer scratch = fragment.machine.allocate(64 * 256);
  const auto words = scratch.as<u32>();
  for (unsigned i = 0; i < words.size(); ++i) words[i] = i;
  Wave& wave = fragment.prepare(R"(
    scratch_load_dword v2, off, off offset:12
    scratch_load_dword v3, off, s0 offset:12
    scratch_load_dword v4, v0, off offset:12
    scratch_load_dword v5, v0, s0 offset:12
    scratch_store_dword v1, v1, s0)");
  wave.set_pair(kFlatScratchLo, scratch.address);
  wave.scalar[0] = 16;
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 4 * (lane % 8);
    wave.vgpr[1].lane[lane] = 128;
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    // Dword d of a lane's private memory is the lane's dword of row d.
    REQUIRE(wave.vgpr[2].lane[lane] == 64 * 3 + lane);
    REQUIRE(wave.vgpr[3].lane[lane] == 64 * 7 + lane);
    REQUIRE(wave.vgpr[4].lane[lane] == 64 * (3 + lane % 8) + lane);
    REQUIRE(wave.vgpr[5].lane[lane] == 64 * (7 + lane % 8) + lane);
    REQUIRE(words[64 * (128 + 16) / 4 + lane] == 128);
  });
}

TEST_CASE("gfx942: loads to LDS write one dword per active lane at M0 plus the offset") {
  Fragment fragment(Target::gfx942);
  const Buffer data = counted(fragment.machine, 1024);
  Wave& wave = fragment.prepare(R"(
    s_mov_b32 m0, 0x100
    global_load_lds_dword v0, s[0:1] offset:16
    s_mov_b32 m0, 0x400
    global_load_lds_sshort v[2:3], off
    s_mov_b32 m0, 0x600
    buffer_load_ubyte v0, s[8:11], 0 offen lds)",
                                0x680);
  wave.set_pair(0, data.address);
  wave.set_pair(8, data.address);
  wave.scalar[10] = 4096;
  wave.scalar[11] = 0x00027000;
  wave.set_exec(~u64{2});
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 4 * (63 - lane);
    const GpuAddress at = data.address + 2 * lane;
    wave.vgpr[2].lane[lane] = static_cast<u32>(at);
    wave.vgpr[3].lane[lane] = static_cast<u32>(at >> 32);
  });
  data.as<uint16_t>()[0] = 0xfffe;
  const u32 first = data.as<u32>()[0];
  fragment.finish();
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    const auto lds = [&](u32 base) {
      u32 value = 0;
      std::memcpy(&value, wave.lds + base + 4 * lane, sizeof value);
      return value;
    };
    const bool active = lane != 1;
    const auto entry = [&](unsigned dword) { return dword == 0 ? first : 0x10000 + dword; };
    REQUIRE(lds(0x110) == (active ? entry(63 - lane + 4) : 0));
    const auto half = static_cast<int16_t>(entry(lane / 2) >> (lane % 2 * 16));
    REQUIRE(lds(0x400) == (active ? static_cast<u32>(int32_t{half}) : 0));
    // The group segment ends at 0x680.
    REQUIRE(lds(0x600) == (active && lane < 32 ? entry(63 - lane) & 0xff : 0));
  });
}

TEST_CASE("gfx942: packed sums of float16 and bfloat16 in memory and LDS") {
  Fragment fragment(Target::gfx942);
  const Buffer data = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare(R"(
    global_atomic_pk_add_bf16 v4, v0, v1, s[0:1] sc0
    flat_atomic_pk_add_bf16 v[2:3], v1
    flat_atomic_pk_add_f16 v[2:3], v6 offset:4
    flat_atomic_add_f32 v[2:3], v7 offset:8
    ds_pk_add_bf16 v0, v1
    ds_pk_add_rtn_bf16 v5, v0, v1
    ds_pk_add_f16 v0, v6 offset:4
    ds_pk_add_rtn_f16 v8, v0, v6 offset:4
    s_waitcnt lgkmcnt(0))",
                                4096);
  wave.set_exec(1);
  wave.set_pair(0, data.address);
  wave.vgpr[0].lane[0] = 0;
  // Both sums are half-way between two bfloat16 numbers. The even one is the lower one for 1, the
  // upper one for 3 + 2^-6, and then the lower one for 3 + 2^-5.
  wave.vgpr[1].lane[0] = bfloats(0x1p-8f, 0x1p-7f);
  wave.vgpr[2].lane[0] = static_cast<u32>(data.address);
  wave.vgpr[3].lane[0] = static_cast<u32>(data.address >> 32);
  wave.vgpr[6].lane[0] = 0x3c004000;  // 2, 1
  wave.vgpr[7].lane[0] = bits(2.5f);
  const auto words = data.as<u32>();
  words[0] = bfloats(1.0f, 3.015625f);
  words[1] = 0x3c003c00;
  words[2] = bits(1.0f);
  std::memcpy(wave.lds, words.data(), 8);
  fragment.finish();
  CHECK(wave.vgpr[4].lane[0] == bfloats(1.0f, 3.015625f));
  CHECK(words[0] == bfloats(1.0f, 3.03125f));
  CHECK(words[1] == 0x40004200);  // 3, 2
  CHECK(words[2] == bits(3.5f));
  u32 lds[2];
  std::memcpy(lds, wave.lds, sizeof lds);
  CHECK(wave.vgpr[5].lane[0] == bfloats(1.0f, 3.03125f));
  CHECK(lds[0] == bfloats(1.0f, 3.03125f));
  CHECK(wave.vgpr[8].lane[0] == 0x40004200);
  CHECK(lds[1] == 0x42004500);  // 5, 3
}

TEST_CASE("gfx942: XCC_ID reads the number of the XCD, and other targets have no such register") {
  Fragment fragment(Target::gfx942);
  CHECK(fragment.finish("s_getreg_b32 s4, hwreg(HW_REG_XCC_ID)").scalar[4] == 0);
  Fragment older(Target::gfx90a);
  older.prepare("s_getreg_b32 s4, hwreg(20)");
  const auto fault = older.run();
  REQUIRE(fault);
  CHECK(mentions(fault->message, "hardware register that is not supported"));
}

TEST_CASE("gfx942: an instruction that is not executed ends the dispatch with its name") {
  for (const char* text :
       {"scratch_load_lds_dword off, s0", "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[1,0,0]",
        "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10 abid:4"}) {
    Fragment fragment(Target::gfx942);
    fragment.prepare(text);
    const auto fault = fragment.run();
    REQUIRE(fault);
    INFO(fault->message);
    CHECK(fault->error == QueueError::illegal_instruction);
    const std::string name = std::string(text).substr(0, std::string(text).find(' '));
    CHECK(mentions(fault->message, name));
  }
}

TEST_CASE("gfx942: waves start with FLAT_SCRATCH set, packed work-item ids and no scratch offset") {
  Machine machine(Target::gfx942);
  LlvmMc assembler(Target::gfx942);
  const auto words = assembler.assemble("s_endpgm");
  // Two user SGPRs, ENABLE_PRIVATE_SEGMENT, workgroup ids x and y, three components of ids.
  const GpuAddress object =
      machine.assemble_kernel(words, 1u | 2u << 1 | 1u << 7 | 1u << 8 | 2u << 11);
  Launch launch;
  launch.grid = {16, 16, 4};
  launch.workgroup = {4, 8, 4};
  const Buffer scratch = machine.allocate(1 << 16);
  auto state = std::make_shared<DispatchState>(*machine.prepare(object, launch, {}));
  state->scratch_base = scratch.address;
  state->scratch_bytes_per_wave = 1024;
  Workgroup workgroup;
  workgroup.start(*state, {3, 1, 0}, 5);
  REQUIRE(workgroup.waves() == 2);
  for (unsigned w = 0; w < 2; ++w) {
    Wave& wave = workgroup.wave(w);
    CHECK(wave.scalar[2] == 3);
    CHECK(wave.scalar[3] == 1);
    CHECK(wave.scalar[4] == 0);
    CHECK(wave.pair(kFlatScratchLo) == scratch.address + (5 + w) * 1024);
    each_lane([&](unsigned lane) {
      const u32 item = w * kLanes + lane;
      REQUIRE(wave.vgpr[0].lane[lane] == (item % 4 | item / 4 % 8 << 10 | item / 32 << 20));
    });
  }
}

TEST_CASE("a kernel that asks for a scratch descriptor in SGPRs is rejected on gfx942") {
  Machine machine(Target::gfx942);
  LlvmMc assembler(Target::gfx942);
  const GpuAddress object = machine.assemble_kernel(assembler.assemble("s_endpgm"));
  std::byte* const host = const_cast<std::byte*>([&] {
    machine.executor.enter();
    const std::byte* found = machine.executor.memory.translate(object + 56, 2, Access::read);
    machine.executor.leave();
    return found;
  }());
  const uint16_t properties = 1u << 3 | 1u << 5;
  std::memcpy(host, &properties, sizeof properties);
  const std::string said = uptempo::test::error_of([&] { machine.prepare(object, {}, {}); });
  CHECK(uptempo::test::contains(said, "FLAT_SCRATCH in SGPRs, which gfx942 lacks"));
}

TEST_CASE("kernel arguments are preloaded, and then waves skip the header that loads them") {
  for (const Target target : {Target::gfx90a, Target::gfx942}) {
    for (const bool preloads : {true, false}) {
      CAPTURE(cpu_name(target), preloads);
      Machine machine(target);
      machine.firmware_preloads = preloads;
      LlvmMc assembler(target);
      // The header loads the second to fourth dword into s[2:4], in 256 bytes. The kernel stores
      // them, and s6, which only the header sets.
      std::string text = R"(
        s_load_dword s2, s[0:1], 0x4
        s_load_dwordx2 s[12:13], s[0:1], 0x8
        s_waitcnt lgkmcnt(0)
        s_mov_b32 s3, s12
        s_mov_b32 s4, s13
        s_mov_b32 s6, 1
        s_branch body
        .p2align 8
        body:
        s_load_dwordx2 s[8:9], s[0:1], 0x10
        s_waitcnt lgkmcnt(0)
        v_mov_b32 v0, 0
        v_mov_b32 v4, s2
        v_mov_b32 v5, s3
        v_mov_b32 v6, s4
        v_mov_b32 v7, s6
        global_store_dwordx4 v0, v[4:7], s[8:9]
        s_endpgm)";
      const auto words = assembler.assemble(text);
      // Two user SGPRs and three preloaded dwords, then workgroup id x in s5.
      const GpuAddress object = machine.assemble_kernel(words, 5u << 1 | 1u << 7);
      machine.executor.enter();
      auto* host =
          const_cast<std::byte*>(machine.executor.memory.translate(object + 58, 2, Access::read));
      machine.executor.leave();
      const uint16_t preload = 3 | 1u << 7;
      std::memcpy(host, &preload, sizeof preload);
      const Buffer out = machine.allocate(4096);
      const Arguments arguments =
          Arguments().add(0x11111111u).add(0x22222222u).add(0x33333333u).add(0x44444444u).add(out);
      const auto fault = machine.run(machine.prepare(object, {}, arguments.bytes()));
      INFO((fault ? fault->message : std::string()));
      REQUIRE_FALSE(fault);
      const auto stored = out.as<u32>();
      CHECK(stored[0] == 0x22222222);
      CHECK(stored[1] == 0x33333333);
      CHECK(stored[2] == 0x44444444);
      CHECK(stored[3] == (preloads ? 0 : 1));
    }
  }
}

TEST_CASE("gfx942: an observer sees the scope that sc0 and sc1 name") {
  struct Recorder : MemoryObserver {
    std::vector<AccessScope> scopes;
    void access(const ObservedAccess& what) noexcept override { scopes.push_back(what.scope); }
  };
  struct Case {
    const char* bits;
    AccessScope access, atomic;  // of a load or store, and of an atomic
  };
  for (const auto& [bits, access, atomic] :
       {Case{"", AccessScope::wave, AccessScope::agent},
        Case{"nt", AccessScope::wave, AccessScope::agent},
        Case{"sc0", AccessScope::workgroup, AccessScope::agent},
        Case{"sc1", AccessScope::agent, AccessScope::system},
        Case{"sc0 sc1", AccessScope::system, AccessScope::system}}) {
    CAPTURE(bits);
    const std::string end = std::string(bits) + "\n";
    const bool returns = end.find("sc0") != end.npos;
    Recorder recorder;
    Fragment fragment(Target::gfx942, MemoryPolicy::observed);
    fragment.machine.observer = &recorder;
    const Buffer data = fragment.machine.allocate(4096);
    Wave& wave = fragment.prepare(
        "global_load_dword v4, v[0:1], off " + end + "flat_load_dwordx2 v[4:5], v[0:1] " + end +
        "buffer_load_dword v4, off, s[8:11], 0 " + end + "global_store_dword v[0:1], v2, off " +
        end + "flat_store_short v[0:1], v2 " + end + "buffer_store_dword v2, off, s[8:11], 0 " +
        end + "global_atomic_add " + (returns ? "v4, " : "") + "v[0:1], v2, off " + end);
    wave.set_exec(1);
    set_address(wave, 0, 0, data.address);
    wave.set_pair(8, data.address);
    wave.set_pair(10, 4096 | u64{0x00027000} << 32);
    fragment.finish();
    REQUIRE(recorder.scopes.size() == 7);
    for (size_t index = 0; index < 6; ++index) {
      CAPTURE(index);
      CHECK(recorder.scopes[index] == access);
    }
    CHECK(recorder.scopes[6] == atomic);
  }
}

}  // namespace uptempo::vgpu::gfx9::test
