// Guarantees of the core beyond results: faults that name their cause, changing code, preemption,
// observation, repeatability.
#include <atomic>
#include <thread>

#include "device/observer.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "a load from an unmapped address is a memory fault that names address, kernel, workgroup, "
    "wave, offset and instruction") {
  Fragment fragment;
  const Buffer data = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare("s_nop 0\nglobal_load_dword v1, v0, s[0:1]");
  wave.set_pair(0, data.address);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    wave.vgpr[0].lane[lane] = lane == 37 ? 8192 : 4 * lane;
  const auto fault = fragment.run();
  REQUIRE(fault);
  REQUIRE(fault->memory);
  CHECK(fault->error == QueueError::none);
  CHECK(fault->memory->address == data.address + 8192);
  CHECK(fault->memory->access == Access::read);
  CHECK_FALSE(fault->memory->present);
  CHECK(fault->memory->where ==
        "kernel assembled + 0x4, workgroup (0,0,0), wave 0: global_load_dword");
  CHECK(contains(fault->message, "not mapped"));
}

TEST_CASE("stores and atomics to read-only memory are faults, and loads from it are not") {
  for (const char* text : {"global_store_dword v0, v1, s[0:1]", "global_atomic_add v0, v1, s[0:1]",
                           "s_store_dword s2, s[0:1], 0x0"}) {
    Fragment fragment;
    INFO(text);
    const Buffer data = fragment.machine.allocate(4096, false);
    Wave& wave = fragment.prepare(std::string("global_load_dword v1, v0, s[0:1]\n") + text);
    wave.set_pair(0, data.address);
    const auto fault = fragment.run();
    REQUIRE(fault);
    REQUIRE(fault->memory);
    CHECK(fault->memory->present);
    CHECK(fault->memory->access != Access::read);
    CHECK(wave.vgpr[1].lane[0] == 0xcccccccc);
  }
}

TEST_CASE("accesses at the very end of a mapping succeed, and one byte later they fault") {
  for (const unsigned past : {0u, 1u}) {
    Fragment fragment;
    const Buffer data = fragment.machine.allocate(4096);
    Wave& wave = fragment.prepare("global_load_dwordx4 v[4:7], v0, s[0:1]");
    wave.set_pair(0, data.address);
    for (unsigned lane = 0; lane < kLanes; ++lane) wave.vgpr[0].lane[lane] = 4096 - 16 + past;
    CHECK(fragment.run().has_value() == (past != 0));
  }
}

TEST_CASE("a misaligned atomic is a memory fault") {
  Fragment fragment;
  const Buffer data = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare("global_atomic_add_x2 v0, v[2:3], s[0:1] offset:4");
  wave.set_pair(0, data.address);
  const auto fault = fragment.run();
  REQUIRE(fault);
  REQUIRE(fault->memory);
  CHECK(fault->memory->access == Access::atomic);
}

TEST_CASE("a 64-bit atomic on private memory is refused by name") {
  Fragment fragment;
  const Buffer scratch = fragment.machine.allocate(64 * 64);
  Wave& wave = fragment.prepare("flat_atomic_add_x2 v[0:1], v[2:3]");
  wave.set_pair(kFlatScratchLo, scratch.address);
  for (uint32_t& lane : wave.vgpr[1].lane) lane = 2u << 16;
  const auto fault = fragment.run();
  REQUIRE(fault);
  CHECK(fault->error == QueueError::illegal_instruction);
  CHECK(contains(fault->message, "flat_atomic_add_x2"));
  CHECK(contains(fault->message, "updates 64 bits of private memory"));
}

TEST_CASE(
    "an unsupported instruction ends the dispatch with its mnemonic, bytes, kernel and offset") {
  Fragment fragment;
  fragment.prepare("s_mov_b32 s0, 0\ns_setvskip s0, 1");
  const auto fault = fragment.run();
  REQUIRE(fault);
  CHECK(fault->error == QueueError::illegal_instruction);
  CHECK(fault->message ==
        "s_setvskip (0xbf108100) is not supported: kernel assembled + 0x4, workgroup (0,0,0), wave "
        "0");
}

TEST_CASE("a word that is no instruction ends the dispatch with its bytes") {
  Machine machine;
  const uint32_t words[] = {0xbf800000, 0xffffffff, 0xbf810000};
  const auto fault = machine.run(machine.prepare(machine.assemble_kernel(words), {}, {}));
  REQUIRE(fault);
  CHECK(fault->error == QueueError::illegal_instruction);
  CHECK(contains(fault->message, "0xffffffff"));
  CHECK(contains(fault->message, "+ 0x4"));
}

TEST_CASE("a trap ends the dispatch with the trap error, and a debug trap does nothing") {
  Fragment fragment;
  Wave& wave = fragment.prepare("s_trap 3\ns_mov_b32 s4, 1\ns_trap 2");
  const auto fault = fragment.run();
  REQUIRE(fault);
  CHECK(fault->error == QueueError::trap);
  CHECK(wave.scalar[4] == 1);
}

TEST_CASE("a jump out of code is a fault of the instruction fetch") {
  Fragment fragment;
  const Buffer data = fragment.machine.allocate(4096);
  fragment.machine.memory.unmap(data.address);
  Wave& wave = fragment.prepare("s_setpc_b64 s[0:1]");
  wave.set_pair(0, data.address);
  const auto fault = fragment.run();
  REQUIRE(fault);
  REQUIRE(fault->memory);
  CHECK(fault->memory->access == Access::execute);
  CHECK(fault->memory->address == data.address);
}

TEST_CASE("kernel objects that cannot run are rejected, and the error names the reason") {
  Machine machine;
  const auto load = [&](GpuAddress object, Target target = Target::gfx90a) {
    machine.executor.enter();
    auto result = Kernel::load(machine.executor.memory, object, target);
    machine.executor.leave();
    return result;
  };
  const uint32_t end[] = {0xbf810000};
  const GpuAddress good = machine.assemble_kernel(end);
  REQUIRE(std::holds_alternative<Kernel>(load(good)));
  CHECK(std::get<Kernel>(load(good)).vgprs == 128);
  CHECK(std::get<Kernel>(load(good)).accumulation_vgprs == 128);
  CHECK_FALSE(std::get<Kernel>(load(good)).legacy);

  const auto unmapped = load(0x123400000040);
  REQUIRE(std::holds_alternative<Kernel::Rejected>(unmapped));
  CHECK(std::get<Kernel::Rejected>(unmapped).error == QueueError::invalid_code_object);
  CHECK(contains(std::get<Kernel::Rejected>(unmapped).reason, "0x123400000040"));
  CHECK(std::holds_alternative<Kernel::Rejected>(load(good + 4)));

  const Buffer copy = machine.allocate(64);  // the entry is beyond the mapping
  std::memset(copy.bytes.data(), 0, 64);
  const int64_t entry = 1 << 20;
  std::memcpy(copy.bytes.data() + 16, &entry, 8);
  CHECK(std::holds_alternative<Kernel::Rejected>(load(copy.address)));
  const int64_t here = 0;
  std::memcpy(copy.bytes.data() + 16, &here, 8);
  CHECK(std::holds_alternative<Kernel>(load(copy.address)));
  const uint16_t wave32 = 1u << 10;
  std::memcpy(copy.bytes.data() + 56, &wave32, 2);
  CHECK(std::holds_alternative<Kernel::Rejected>(load(copy.address)));
  std::memset(copy.bytes.data() + 56, 0, 2);

  // Only gfx90a and gfx942 have the mode; COMPUTE_PGM_RSRC3 of older targets is reserved.
  const uint32_t tg_split = 1u << 16;
  std::memcpy(copy.bytes.data() + 44, &tg_split, 4);
  for (const Target target : {Target::gfx90a, Target::gfx942}) {
    const auto split = load(copy.address, target);
    REQUIRE(std::holds_alternative<Kernel::Rejected>(split));
    CHECK(std::get<Kernel::Rejected>(split).error == QueueError::invalid_code_object);
    CHECK(contains(std::get<Kernel::Rejected>(split).reason,
                   "sets TG_SPLIT, which is not supported"));
  }
  CHECK(std::holds_alternative<Kernel>(load(copy.address, Target::gfx908)));
}

TEST_CASE("the older amd_kernel_code_t is read: segments, registers, entry") {
  Machine machine;
  const Buffer object = machine.allocate(512);
  std::memset(object.bytes.data(), 0, 512);
  const auto put = [&](size_t offset, auto value) {
    std::memcpy(object.bytes.data() + offset, &value, sizeof value);
  };
  put(0, uint32_t{1});    // amd_kernel_code_version_major
  put(4, uint32_t{1});    // minor
  put(8, uint16_t{1});    // AMD_MACHINE_KIND_AMDGPU
  put(10, uint16_t{9});   // machine version
  put(16, int64_t{256});  // entry
  put(48, uint32_t{3});   // rsrc1: 4 granules of registers
  put(56, uint32_t{1u << 3 | 1u << 19});
  put(60, uint32_t{16});
  put(64, uint32_t{1024});
  put(72, uint64_t{40});
  machine.executor.enter();
  const auto loaded = Kernel::load(machine.executor.memory, object.address, Target::gfx90a);
  machine.executor.leave();
  REQUIRE(std::holds_alternative<Kernel>(loaded));
  const auto& kernel = std::get<Kernel>(loaded);
  CHECK(kernel.legacy);
  CHECK(kernel.entry == object.address + 256);
  CHECK(kernel.private_segment_bytes == 16);
  CHECK(kernel.group_segment_bytes == 1024);
  CHECK(kernel.kernarg_bytes == 40);
  CHECK(kernel.vgprs == 32);
  CHECK(kernel.accumulation_vgprs == 0);
  CHECK(kernel.properties == 1u << 3);
}

TEST_CASE("straight-line code, branches and two-dword instructions cross page boundaries") {
  Fragment fragment;
  std::string text = "s_mov_b32 s4, 0\n";
  for (int i = 0; i < 1500; ++i)
    text += "s_add_u32 s4, s4, 0x10001\n";  // 8 bytes each, so some cross a page boundary
  text +=
      "s_add_u32 s5, s5, 1\ns_cmp_lt_u32 s5, 3\ns_cbranch_scc0 over\ns_branch "
      "back\nback:\ns_add_u32 s6, s6, "
      "1\n";
  for (int i = 0; i < 1100; ++i) text += "s_nop 0\n";
  text += "over:\ns_mov_b32 s7, s4";
  Wave& wave = fragment.finish(text);
  CHECK(wave.scalar[7] == 1500u * 0x10001);

  // In one of these placements the literal is the first dword of the next page.
  for (int nops = 956; nops <= 962; ++nops) {
    std::string odd;
    for (int i = 0; i < nops; ++i) odd += "s_nop 0\n";
    CHECK(fragment.finish(odd + "s_mov_b32 s4, 0x12345678\ns_mov_b32 s5, 5").scalar[4] ==
          0x12345678);
  }
}

TEST_CASE("overwritten code takes effect after invalidate(), and remapped code at once") {
  Machine machine;
  const auto program = [](uint32_t value) {
    return std::array<uint32_t, 3>{0xbe8400ff, value, 0xbf810000};  // s_mov_b32 s4, value; s_endpgm
  };
  const GpuAddress object = machine.assemble_kernel(program(1));
  const auto dispatch = machine.prepare(object, {}, {});
  Workgroup workgroup;
  const auto run = [&] {
    workgroup.start(*dispatch, {0, 0, 0}, 0);
    machine.executor.enter();
    REQUIRE(workgroup.run(machine.executor, 100) == Workgroup::Result::ended);
    machine.executor.leave();
    return workgroup.wave(0).scalar[4];
  };
  CHECK(run() == 1);

  machine.executor.enter();
  std::byte* code = machine.executor.memory.translate(object + 256, 12, Access::write);
  machine.executor.leave();
  std::memcpy(code, program(2).data(), 12);
  CHECK(run() == 1);  // no invalidation yet, as with an instruction cache
  machine.code.invalidate();
  CHECK(run() == 2);

  alignas(4096) static std::byte elsewhere[4096];
  std::memcpy(elsewhere, code - 256, 512);
  std::memcpy(elsewhere + 256, program(3).data(), 12);
  machine.memory.unmap(object);
  machine.memory.map({.begin = object, .end = object + 4096, .host = elsewhere});
  CHECK(run() == 3);
}

TEST_CASE("s_icache_inv makes the program's own changes to its code visible") {
  Fragment fragment;
  Wave& wave = fragment.prepare(R"(
    s_getpc_b64 s[0:1]
    s_mov_b32 s2, 0xbe860087        // s_mov_b32 s6, 7
    s_mov_b64 s[8:9], 0
  again:
    s_mov_b32 s6, 5
    s_add_u32 s8, s8, s6
    s_add_u32 s9, s9, 1
    s_store_dword s2, s[0:1], 0xc
    s_dcache_wb
    s_waitcnt lgkmcnt(0)
    s_icache_inv
    s_cmp_lt_u32 s9, 2
    s_cbranch_scc1 again)");
  fragment.finish();
  CHECK(wave.scalar[8] == 12);
}

TEST_CASE("an endless loop is preempted after its slice, and the next slice continues it") {
  Fragment fragment;
  fragment.prepare("loop: s_add_u32 s4, s4, 1\ns_branch loop");
  Machine& machine = fragment.machine;
  const uint32_t words[] = {0x80048104, 0xbf82fffe};  // s_add_u32 s4, s4, 1; s_branch back
  const auto dispatch = machine.prepare(machine.assemble_kernel(words), {}, {});
  Workgroup workgroup;
  workgroup.start(*dispatch, {0, 0, 0}, 0);
  for (unsigned slice = 1; slice <= 3; ++slice) {
    machine.executor.instructions = 0;
    machine.executor.enter();
    CHECK(workgroup.run(machine.executor, 1000) == Workgroup::Result::preempted);
    machine.executor.leave();
    CHECK(machine.executor.instructions == 1000);
    CHECK(workgroup.wave(0).scalar[4] == 500 * slice);
  }
}

TEST_CASE("a barrier does not wait for waves that have ended") {
  Machine machine;
  LlvmMc assembler(Target::gfx90a);
  const auto words = assembler.assemble(R"(
    v_readfirstlane_b32 s8, v0
    s_cmp_eq_u32 s8, 64
    s_cbranch_scc1 end
    s_barrier
    s_mov_b32 s9, 1
    s_barrier
  end:
    s_endpgm)");
  const auto dispatch =
      machine.prepare(machine.assemble_kernel(words), {{256, 1, 1}, {256, 1, 1}, 0}, {});
  Workgroup workgroup;
  workgroup.start(*dispatch, {0, 0, 0}, 0);
  machine.executor.enter();
  CHECK(workgroup.run(machine.executor, 100) == Workgroup::Result::ended);
  machine.executor.leave();
  CHECK(workgroup.wave(0).scalar[9] == 1);
  CHECK(workgroup.wave(1).scalar[9] == 0);
  CHECK(workgroup.wave(3).scalar[9] == 1);
}

TEST_CASE("user and system SGPRs are set up as the descriptor requests, in order") {
  Machine machine;
  LlvmMc assembler(Target::gfx90a);
  // 3 user SGPR groups: dispatch pointer, kernarg pointer, dispatch id; then the workgroup ids and
  // the workgroup info.
  const GpuAddress object =
      machine.assemble_kernel(assembler.assemble("s_endpgm"), 6u << 1 | 0xfu << 7 | 2u << 11);
  machine.executor.enter();
  std::byte* host = machine.executor.memory.translate(object, 64, Access::write);
  machine.executor.leave();
  const uint16_t properties = 1u << 1 | 1u << 3 | 1u << 4;
  std::memcpy(host + 56, &properties, 2);
  auto dispatch =
      std::make_shared<DispatchState>(*machine.prepare(object, {{512, 6, 4}, {128, 2, 2}, 0}, {}));
  dispatch->dispatch_id = 0x123456789;
  Workgroup workgroup;
  workgroup.start(*dispatch, {3, 2, 1}, 0);
  CHECK(workgroup.waves() == 8);
  Wave& wave = workgroup.wave(5);
  CHECK(wave.pair(0) == dispatch->packet_address);
  CHECK(wave.pair(2) == reinterpret_cast<uint64_t>(dispatch->packet.kernarg_address));
  CHECK(wave.pair(4) == 0x123456789);
  CHECK(wave.scalar[6] == 3);
  CHECK(wave.scalar[7] == 2);
  CHECK(wave.scalar[8] == 1);
  CHECK((wave.scalar[9] & 0x3f) == 8);
  CHECK((wave.scalar[9] >> 6 & 0x1f) == 5);
  CHECK(wave.mode == 0x3f0);
  // lane 3 of wave 5 is work-item 323: x 67, y 0, z 1
  CHECK(wave.vgpr[0].lane[3] == (67u | 0u << 10 | 1u << 20));
}

TEST_CASE("an observer sees every access: address, size, lanes, kind and wave") {
  struct Recorder : MemoryObserver {
    struct Seen {
      Access access;
      bool scalar;
      uint32_t size_bytes;
      uint64_t lanes;
      GpuAddress first;
      uint32_t wave;
    };
    std::vector<Seen> seen;
    void access(const ObservedAccess& what) noexcept override {
      seen.push_back({what.access, what.scalar, what.size_bytes, what.lanes,
                      what.scalar ? what.address[0] : what.address[std::countr_zero(what.lanes)],
                      what.wave});
    }
  } recorder;
  Fragment fragment(Target::gfx90a, MemoryPolicy::observed);
  fragment.machine.observer = &recorder;
  const Buffer data = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare(R"(
    s_load_dwordx2 s[4:5], s[0:1], 0x20
    global_load_dwordx2 v[2:3], v0, s[0:1] offset:8
    global_store_short v0, v2, s[0:1]
    global_atomic_add v0, v2, s[0:1]
    ds_read_b32 v4, v5
    scratch_store_dwordx2 off, v[2:3], s2)");
  wave.set_pair(0, data.address);
  wave.set_pair(kFlatScratchLo, data.address);
  wave.set_exec(0xf0);
  for (unsigned lane = 0; lane < kLanes; ++lane) wave.vgpr[0].lane[lane] = 8 * lane;
  fragment.finish();
  REQUIRE(recorder.seen.size() == 6);
  const auto check = [&](size_t index, Access access, bool scalar, uint32_t bytes, uint64_t lanes,
                         GpuAddress first) {
    CAPTURE(index);
    const auto& seen = recorder.seen[index];
    CHECK(seen.access == access);
    CHECK(seen.scalar == scalar);
    CHECK(seen.size_bytes == bytes);
    CHECK(seen.lanes == lanes);
    CHECK(seen.first == first);
    CHECK(seen.wave == 0);
  };
  check(0, Access::read, true, 8, 1, data.address + 0x20);
  check(1, Access::read, false, 8, 0xf0, data.address + 4 * 8 + 8);
  check(2, Access::write, false, 2, 0xf0, data.address + 4 * 8);
  check(3, Access::atomic, false, 4, 0xf0, data.address + 4 * 8);
  check(4, Access::write, false, 4, 0xf0, data.address + 4 * 4);
  check(5, Access::write, false, 4, 0xf0, data.address + 256 + 4 * 4);
}

TEST_CASE("an observer sees agent scope where glc makes a load miss L1, and in atomics") {
  using enum AccessScope;
  struct Recorder : MemoryObserver {
    std::vector<AccessScope> scopes;
    void access(const ObservedAccess& what) noexcept override { scopes.push_back(what.scope); }
  };
  for (const Target target : {Target::gfx900, Target::gfx906, Target::gfx908, Target::gfx90a}) {
    Recorder recorder;
    Fragment fragment(target, MemoryPolicy::observed);
    fragment.machine.observer = &recorder;
    const Buffer data = fragment.machine.allocate(4096);
    Wave& wave = fragment.prepare(R"(
      global_load_dword v2, v0, s[0:1]
      global_load_dword v2, v0, s[0:1] glc
      global_store_dword v0, v2, s[0:1]
      global_store_dword v0, v2, s[0:1] glc
      global_atomic_add v0, v2, s[0:1]
      global_atomic_add v3, v0, v2, s[0:1] glc)");
    wave.set_pair(0, data.address);
    for (unsigned lane = 0; lane < kLanes; ++lane) wave.vgpr[0].lane[lane] = 4 * lane;
    fragment.finish();
    CAPTURE(cpu_name(target));
    // In this order: wave, agent, wave, wave, agent, agent.
    CHECK(recorder.scopes == std::vector{AccessScope::wave, agent, AccessScope::wave,
                                         AccessScope::wave, agent, agent});
  }
}

TEST_CASE("an observer sees FLAT accesses to private memory at its own address, and none to LDS") {
  struct Recorder : MemoryObserver {
    struct Seen {
      uint32_t size_bytes;
      uint64_t lanes;
      std::array<GpuAddress, kLanes> address;
    };
    std::vector<Seen> seen;
    void access(const ObservedAccess& what) noexcept override {
      seen.push_back({what.size_bytes, what.lanes, {}});
      for (unsigned lane = 0; lane < kLanes; ++lane)
        if (what.lanes >> lane & 1) seen.back().address[lane] = what.address[lane];
    }
  } recorder;
  Fragment fragment(Target::gfx90a, MemoryPolicy::observed);
  fragment.machine.observer = &recorder;
  const Buffer data = fragment.machine.allocate(4096), scratch = fragment.machine.allocate(64 * 64);
  Wave& wave =
      fragment.prepare("flat_load_dwordx2 v[2:3], v[0:1]\nflat_atomic_add v[0:1], v4", 1024);
  wave.set_pair(kFlatScratchLo, scratch.address);
  const auto in_lds = [](unsigned lane) { return lane % 3 == 0; };
  const auto in_private = [](unsigned lane) { return lane % 3 == 1; };
  uint64_t global = 0, own = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const GpuAddress address = in_lds(lane)       ? (GpuAddress{1} << 48) + 8 * lane
                               : in_private(lane) ? (GpuAddress{2} << 48) + 8
                                                  : data.address + 16 * lane;
    (in_private(lane) ? own : global) |= uint64_t{!in_lds(lane)} << lane;
    wave.vgpr[0].lane[lane] = static_cast<uint32_t>(address);
    wave.vgpr[1].lane[lane] = static_cast<uint32_t>(address >> 32);
  }
  fragment.finish();
  const auto dword_of = [&](unsigned lane, unsigned dword) {
    return scratch.address + (dword * 64 + lane) * 4;
  };
  REQUIRE(recorder.seen.size() == 4);
  for (const unsigned piece : {0u, 1u}) {
    CHECK(recorder.seen[piece].lanes == own);
    CHECK(recorder.seen[piece].size_bytes == 4);
    CHECK(recorder.seen[piece].address[1] == dword_of(1, 2 + piece));
    CHECK(recorder.seen[piece].address[61] == dword_of(61, 2 + piece));
  }
  CHECK(recorder.seen[2].lanes == global);
  CHECK(recorder.seen[2].size_bytes == 8);
  CHECK(recorder.seen[2].address[62] == data.address + 16 * 62);
  CHECK(recorder.seen[3].lanes == (global | own));
  CHECK(recorder.seen[3].address[1] == dword_of(1, 2));
  CHECK(recorder.seen[3].address[2] == data.address + 16 * 2);
}

TEST_CASE(
    "two workers share decoded code while a third thread invalidates it and remaps other memory") {
  Machine machine(Target::gfx90a, MemoryPolicy::direct);  // a cached machine has only one worker
  LlvmMc assembler(Target::gfx90a);
  const auto words = assembler.assemble(R"(
    s_mov_b32 s4, 0
  loop:
    s_add_u32 s4, s4, 1
    v_mov_b32 v1, 1
    global_atomic_add v0, v1, s[2:3]
    s_cmp_lt_u32 s4, 20
    s_cbranch_scc1 loop
    s_endpgm)");
  const auto dispatch = machine.prepare(machine.assemble_kernel(words), {}, {});
  const Buffer counter = machine.allocate(4096);
  counter.as<uint32_t>()[0] = 0;
  constexpr unsigned kRuns = 200;
  std::atomic<bool> stop{false};
  const auto work = [&] {
    Executor executor(machine.memory, machine.code, Target::gfx90a);
    Workgroup workgroup;
    for (unsigned i = 0; i < kRuns; ++i) {
      workgroup.start(*dispatch, {0, 0, 0}, 0);
      workgroup.wave(0).set_pair(2, counter.address);
      workgroup.wave(0).vgpr[0] = {};
      for (auto result = Workgroup::Result::preempted; result == Workgroup::Result::preempted;) {
        executor.enter();
        result = workgroup.run(executor, 17);
        executor.leave();
      }
    }
  };
  std::thread disturber([&] {
    alignas(4096) static std::byte page[4096];
    while (!stop.load()) {
      machine.code.invalidate();
      machine.memory.map({.begin = 0x5000, .end = 0x6000, .host = page});
      machine.memory.unmap(0x5000);
      std::this_thread::yield();
    }
  });
  std::thread first(work), second(work);
  first.join();
  second.join();
  stop = true;
  disturber.join();
  CHECK(counter.as<uint32_t>()[0] == 2 * kRuns * 20 * kLanes);
}

TEST_CASE("registers that a kernel never wrote hold the same values on every run") {
  const auto leftovers = [] {
    Machine machine;
    LlvmMc assembler(Target::gfx90a);
    const auto dispatch = machine.prepare(
        machine.assemble_kernel(assembler.assemble("v_mov_b32 v5, 9\ns_endpgm")), {}, {});
    Workgroup workgroup;
    std::vector<uint32_t> seen;
    for (int i = 0; i < 3; ++i) {
      workgroup.start(*dispatch, {0, 0, 0}, 0);
      seen.push_back(workgroup.wave(0).vgpr[5].lane[1]);
      seen.push_back(workgroup.wave(0).scalar[50]);
      machine.executor.enter();
      workgroup.run(machine.executor, 100);
      machine.executor.leave();
    }
    return seen;
  };
  CHECK(leftovers() == std::vector<uint32_t>{0, 0, 9, 0, 9, 0});
  CHECK(leftovers() == leftovers());
}

TEST_CASE("at a global barrier every wave waits for all others, and each barrier counts anew") {
  Machine machine;
  LlvmMc assembler(Target::gfx90a);
  const Buffer data = machine.allocate(4096);
  std::memset(data.bytes.data(), 0, data.bytes.size());
  const auto run = [&](std::string_view text) {
    return machine.run(machine.prepare(machine.assemble_kernel(assembler.assemble(text)),
                                       {{256, 1, 1}, {64, 1, 1}, 0}, Arguments().add(data).bytes()),
                       3);
  };
  // One lane of each workgroup increments a counter, waits at the barrier, and stores the count
  // that it reads afterwards.
  constexpr std::string_view kMeetTwice = R"(
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_lshl_b32 s3, s2, 2
    s_mov_b64 exec, 2
    s_mov_b32 m0, 0x30000
    v_mov_b32 v0, 3
    v_mov_b32 v1, s3
    v_mov_b32 v2, 1
    v_mov_b32 v3, 0
    global_atomic_add v3, v2, s[4:5]
    ds_gws_barrier v0 offset:62 gds
    global_load_dword v4, v3, s[4:5]
    global_store_dword v1, v4, s[4:5] offset:8
    global_atomic_add v3, v2, s[4:5] offset:4
    ds_gws_barrier v0 offset:62 gds
    global_load_dword v4, v3, s[4:5] offset:4
    global_store_dword v1, v4, s[4:5] offset:24
    s_endpgm)";
  const auto unprepared = run(kMeetTwice);
  REQUIRE(unprepared);
  CHECK(contains(unprepared->message, "no ds_gws_init"));

  std::memset(data.bytes.data(), 0, data.bytes.size());
  REQUIRE_FALSE(run("v_mov_b32 v0, 3\nds_gws_init v0 offset:1 gds\ns_endpgm"));
  REQUIRE_FALSE(run(kMeetTwice));
  for (unsigned i = 0; i < 10; ++i) CHECK(data.as<uint32_t>()[i] == 4);
}

TEST_CASE("the semaphores of global wave sync are refused by name") {
  Fragment fragment;
  fragment.prepare("ds_gws_sema_v gds");
  const auto fault = fragment.run();
  REQUIRE(fault);
  CHECK(contains(fault->message, "ds_gws_sema_v"));
}

}  // namespace uptempo::vgpu::gfx9::test
