// Memory instructions with stale caches: waves on two compute units, and the instructions that end
// staleness.
#include "device/caches/incoherent.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

// Compute units 0 to 3, two per scalar cache; nothing is evicted.
class Agent {
 public:
  explicit Agent(Target target = Target::gfx90a)
      : machine(target, MemoryPolicy::cached), assembler_(target) {
    machine.executor.caches = &caches;
  }

  // Runs `text` in one wave on that compute unit, without fences before and after. s[0:1] and
  // v[0:1] of all lanes hold the address of the buffer, s[8:11] its descriptor, s[2:3] and v[2:3]
  // `value`.
  Wave& run(uint32_t compute_unit, const std::string& text, uint64_t value = 0) {
    const auto words = assembler_.assemble(text + "\ns_endpgm\n");
    Launch launch;
    launch.dynamic_lds = 1024;
    dispatch_ = machine.prepare(machine.assemble_kernel(words), launch, {});
    workgroup_.start(*dispatch_, {0, 0, 0}, 0);
    workgroup_.compute_unit = compute_unit;
    Wave& wave = workgroup_.wave(0);
    wave.set_exec(1);
    wave.set_pair(0, buffer.address);
    wave.set_pair(2, value);
    wave.set_pair(8, buffer.address);
    wave.scalar[10] = 4096;
    wave.scalar[11] = 0x00027000;
    set_address(wave, 0, 0, buffer.address);
    set_address(wave, 2, 0, value);
    std::fill_n(wave.vgpr + 4, 8, Vgpr{});
    machine.executor.enter();
    const auto result = workgroup_.run(machine.executor, 1000);
    machine.executor.leave();
    INFO((machine.executor.fault ? machine.executor.fault->message : std::string()));
    REQUIRE(result == Workgroup::Result::ended);
    return wave;
  }
  uint32_t load(uint32_t compute_unit) {
    return run(compute_unit, "global_load_dword v4, v[0:1], off").vgpr[4].lane[0];
  }
  uint32_t scalar_load(uint32_t compute_unit) {
    return run(compute_unit, "s_load_dword s4, s[0:1], 0x0").scalar[4];
  }
  uint32_t& in_memory() { return buffer.as<uint32_t>()[0]; }

  Machine machine;
  Caches caches{*find_device_description("gfx90a"), {.compute_units = 4}};
  const Buffer buffer = counted(machine, 1024);

 private:
  LlvmMc assembler_;
  std::shared_ptr<const DispatchState> dispatch_;  // outlives the workgroup's run
  Workgroup workgroup_;
};

constexpr uint32_t kOld = 0x10000;

}  // namespace

TEST_CASE("another compute unit loads the old value until its vector L1 is invalidated") {
  for (const char* load :
       {"global_load_dword v4, v[0:1], off", "flat_load_dword v4, v[0:1]",
        "global_load_dwordx2 v[4:5], v[0:1], off", "buffer_load_dword v4, off, s[8:11], 0",
        "buffer_load_dwordx4 v[4:7], off, s[8:11], 0"}) {
    for (const char* store :
         {"global_store_dword v[0:1], v2, off", "flat_store_dword v[0:1], v2",
          "buffer_store_dword v2, off, s[8:11], 0", "global_store_dwordx2 v[0:1], v[2:3], off",
          "global_atomic_swap v[0:1], v2, off", "buffer_atomic_swap v2, off, s[8:11], 0"}) {
      for (const char* invalidate : {"buffer_wbinvl1", "buffer_wbinvl1_vol"}) {
        CAPTURE(load, store, invalidate);
        Agent agent;
        CHECK(agent.run(1, load).vgpr[4].lane[0] == kOld);
        agent.run(0, store, 7);
        CHECK(agent.run(1, load).vgpr[4].lane[0] == kOld);
        agent.run(0, invalidate);
        CHECK(agent.run(1, load).vgpr[4].lane[0] == kOld);
        agent.run(1, invalidate);
        CHECK(agent.run(1, load).vgpr[4].lane[0] == 7);
      }
    }
  }
}

TEST_CASE("a load with GLC sees the stores of other compute units") {
  for (const char* load :
       {"global_load_dword v4, v[0:1], off glc", "flat_load_dword v4, v[0:1] glc",
        "buffer_load_dword v4, off, s[8:11], 0 glc"}) {
    CAPTURE(load);
    Agent agent;
    agent.load(1);
    agent.run(0, "global_store_dword v[0:1], v2, off", 7);
    CHECK(agent.run(1, load).vgpr[4].lane[0] == 7);
    CHECK(agent.load(1) == 7);
  }
}

TEST_CASE("narrow stores and loads keep their place and their sign") {
  Agent agent;
  agent.load(1);
  agent.run(0,
            "global_store_byte v[0:1], v2, off offset:1\nglobal_store_short_d16_hi v[0:1], v2, off "
            "offset:2",
            0xabcd0080);
  const Wave& wave = agent.run(0, R"(
    v_mov_b32 v5, 0x11112222
    v_mov_b32 v6, 0x11112222
    global_load_dword v4, v[0:1], off
    global_load_sbyte_d16 v5, v[0:1], off offset:1
    global_load_short_d16_hi v6, v[0:1], off offset:2
    global_load_sbyte v7, v[0:1], off offset:1
    global_load_ushort v8, v[0:1], off offset:1)");
  CHECK(wave.vgpr[4].lane[0] == 0xabcd8000);
  CHECK(wave.vgpr[5].lane[0] == 0xff80);
  CHECK(wave.vgpr[6].lane[0] == 0xabcd0000);
  CHECK(wave.vgpr[7].lane[0] == 0xffffff80);
  CHECK(wave.vgpr[8].lane[0] == 0xcd80);
  CHECK(agent.load(1) == kOld);
}

TEST_CASE(
    "scalar loads keep their own copy until s_dcache_inv, which does not affect vector copies") {
  for (const char* invalidate : {"s_dcache_inv", "s_dcache_inv_vol"}) {
    for (const char* load :
         {"s_load_dword s4, s[0:1], 0x0", "s_buffer_load_dword s4, s[8:11], 0x0"}) {
      CAPTURE(invalidate, load);
      Agent agent;
      CHECK(agent.run(0, load).scalar[4] == kOld);
      CHECK(agent.load(0) == kOld);
      agent.run(2, "global_store_dword v[0:1], v2, off", 7);
      agent.run(0, "buffer_wbinvl1");
      CHECK(agent.load(0) == 7);
      CHECK(agent.run(1, load).scalar[4] == kOld);
      CHECK(agent.run(2, load).scalar[4] == 7);
      agent.run(3, "global_store_dword v[0:1], v2, off", 8);
      agent.run(1, invalidate);
      CHECK(agent.run(0, load).scalar[4] == 8);
      CHECK(agent.load(0) == 7);
    }
  }
}

TEST_CASE("scalar stores reach L2 and their own scalar cache at once") {
  Agent agent;
  agent.scalar_load(0);
  agent.scalar_load(2);
  agent.load(0);
  agent.run(0, "s_store_dword s2, s[0:1], 0x0", 7);
  CHECK(agent.scalar_load(1) == 7);
  CHECK(agent.scalar_load(2) == kOld);
  CHECK(agent.load(0) == kOld);
  CHECK(agent.load(1) == 7);
}

TEST_CASE("the host sees in coarse-grained memory what buffer_wbl2 has written back") {
  for (const char* store : {"global_store_dword v[0:1], v2, off", "s_store_dword s2, s[0:1], 0x0",
                            "flat_atomic_swap v[0:1], v2"}) {
    CAPTURE(store);
    Agent agent;
    agent.run(0, store, 7);
    CHECK(agent.in_memory() == kOld);
    agent.run(3, "buffer_wbl2");
    CHECK(agent.in_memory() == 7);
  }
}

TEST_CASE("the host's stores are seen after buffer_invl2 and an invalidation of L1") {
  Agent agent;
  agent.load(0);
  agent.in_memory() = 7;
  agent.run(0, "buffer_wbinvl1");
  CHECK(agent.load(0) == kOld);
  agent.run(0, "buffer_invl2");
  CHECK(agent.load(0) == kOld);
  agent.run(0, "buffer_wbinvl1");
  CHECK(agent.load(0) == 7);
}

TEST_CASE("atomics of all compute units add up in L2, whichever caches hold copies") {
  for (const char* add :
       {"global_atomic_add v4, v[0:1], v2, off glc", "flat_atomic_add v4, v[0:1], v2 glc",
        "buffer_atomic_add v2, off, s[8:11], 0 glc\nv_mov_b32 v4, v2"}) {
    CAPTURE(add);
    Agent agent;
    for (uint32_t unit = 0; unit < 4; ++unit) {
      agent.load(unit);
      CHECK(agent.run(unit, add, 5).vgpr[4].lane[0] == kOld + 5 * unit);
    }
    CHECK(agent.in_memory() == kOld);
    agent.caches.release(FenceScope::system);
    CHECK(agent.in_memory() == kOld + 20);
  }
}

TEST_CASE("FLAT accesses to LDS and private memory bypass the caches") {
  Agent agent;
  const Buffer scratch = agent.machine.allocate(64 * 64);
  const auto low = static_cast<uint32_t>(scratch.address);
  const auto high = static_cast<uint32_t>(scratch.address >> 32);
  const std::string to_scratch = "s_mov_b32 flat_scratch_lo, " + std::to_string(low) +
                                 "\ns_mov_b32 flat_scratch_hi, " + std::to_string(high) + "\n";
  agent.run(0, to_scratch + R"(
    v_mov_b32 v4, 8
    v_mov_b32 v5, 0x20000
    flat_store_dword v[4:5], v2
    flat_atomic_add v[4:5], v2)",
            7);
  CHECK(scratch.as<uint32_t>()[2 * 64] == 14);
  const Wave& wave = agent.run(0, R"(
    v_mov_b32 v4, 8
    v_mov_b32 v5, 0x10000
    flat_store_dword v[4:5], v2
    flat_atomic_add v[4:5], v2
    flat_load_dword v6, v[4:5])",
                               9);
  CHECK(lds_dword(wave, 2) == 18);
  CHECK(wave.vgpr[6].lane[0] == 18);
}

TEST_CASE("a fault is also a fault with caches") {
  for (const char* text :
       {"global_load_dword v4, v[2:3], off", "global_store_dword v[2:3], v4, off",
        "global_atomic_add v[2:3], v4, off", "s_load_dword s4, s[2:3], 0x0"}) {
    CAPTURE(text);
    Fragment fragment(Target::gfx90a, MemoryPolicy::cached);
    Wave& wave = fragment.prepare(text);
    wave.set_pair(2, 0x123450000);
    set_address(wave, 2, 0, 0x123450000);
    wave.set_exec(1);
    const auto fault = fragment.run();
    REQUIRE(fault);
    REQUIRE(fault->memory);
    CHECK(fault->memory->address == 0x123450000);
  }
}

TEST_CASE("a misaligned atomic is also a memory fault with caches") {
  Fragment fragment(Target::gfx90a, MemoryPolicy::cached);
  const Buffer data = counted(fragment.machine, 64);
  Wave& wave = fragment.prepare("global_atomic_add v[0:1], v2, off");
  wave.set_exec(1);
  set_address(wave, 0, 0, data.address + 2);
  const auto fault = fragment.run();
  REQUIRE(fault);
  CHECK(fault->memory);
}

TEST_CASE("an observer sees accesses through caches like others") {
  struct Recorder : MemoryObserver {
    unsigned reads = 0, writes = 0, atomics = 0, scalars = 0;
    void access(const ObservedAccess& what) noexcept override {
      scalars += what.scalar;
      (what.access == Access::read ? reads : what.access == Access::write ? writes : atomics) += 1;
    }
  } recorder;
  Agent agent;
  agent.machine.observer = &recorder;
  agent.run(0, R"(
    s_load_dword s4, s[0:1], 0x0
    global_load_dword v4, v[0:1], off
    buffer_load_dword v4, off, s[8:11], 0
    global_store_dword v[0:1], v2, off
    global_atomic_add v[0:1], v2, off)");
  CHECK(recorder.reads == 3);
  CHECK(recorder.writes == 1);
  CHECK(recorder.atomics == 1);
  CHECK(recorder.scalars == 1);
}

}  // namespace uptempo::vgpu::gfx9::test
