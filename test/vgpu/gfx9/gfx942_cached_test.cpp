// Cache bits of gfx942 with stale caches: waves on compute units of two XCDs, each with an L2.
#include "device/caches/incoherent.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

// Nothing is evicted. Compute unit 0 is on XCD 0, `other_xcd()` on XCD 1.
class TwoXcds {
 public:
  TwoXcds() { machine.executor.caches = &caches; }

  static uint32_t other_xcd() { return find_device_description("gfx942")->units_per_xcd(); }

  // Runs `text` in one lane on that compute unit, without fences before and after. v[0:1] hold the
  // address of the buffer, v2 `value`.
  Wave& run(uint32_t compute_unit, const std::string& text, uint32_t value = 0) {
    const auto words = assembler_.assemble(text + "\ns_endpgm\n");
    dispatch_ = machine.prepare(machine.assemble_kernel(words), {}, {});
    workgroup_.start(*dispatch_, {0, 0, 0}, 0);
    workgroup_.compute_unit = compute_unit;
    Wave& wave = workgroup_.wave(0);
    wave.set_exec(1);
    set_address(wave, 0, 0, buffer.address);
    wave.vgpr[2].lane[0] = value;
    machine.executor.enter();
    const auto result = workgroup_.run(machine.executor, 1000);
    machine.executor.leave();
    INFO((machine.executor.fault ? machine.executor.fault->message : std::string()));
    REQUIRE(result == Workgroup::Result::ended);
    return wave;
  }
  uint32_t load(uint32_t compute_unit, const std::string& bits = "") {
    return run(compute_unit, "global_load_dword v4, v[0:1], off " + bits).vgpr[4].lane[0];
  }
  void store(uint32_t compute_unit, uint32_t value, const std::string& bits = "") {
    run(compute_unit, "global_store_dword v[0:1], v2, off " + bits, value);
  }
  uint32_t& in_memory() { return buffer.as<uint32_t>()[0]; }

  Machine machine{Target::gfx942, MemoryPolicy::cached};
  Caches caches{*find_device_description("gfx942"), {.compute_units = 4}};
  const Buffer buffer = machine.allocate(4096, true, MemoryKind::device_local);

 private:
  LlvmMc assembler_{Target::gfx942};
  std::shared_ptr<const DispatchState> dispatch_;  // outlives the workgroup's run
  Workgroup workgroup_;
};

}  // namespace

TEST_CASE("gfx942: sc1 makes a store reach memory, and a load look there") {
  TwoXcds agent;
  const uint32_t other = TwoXcds::other_xcd();
  agent.in_memory() = 1;
  CHECK(agent.load(0) == 1);
  CHECK(agent.load(other) == 1);
  agent.store(0, 2);
  CHECK(agent.in_memory() == 1);  // dirty in the L2 of XCD 0
  agent.store(0, 3, "sc1");
  CHECK(agent.in_memory() == 3);
  CHECK(agent.load(other) == 1);         // from L1
  CHECK(agent.load(other, "sc0") == 1);  // the same: a workgroup runs on one compute unit
  CHECK(agent.load(other, "sc1") == 3);
}

TEST_CASE("gfx942: loads of workgroup scope hit L1, those of agent scope find the stores in L2") {
  TwoXcds agent;
  agent.in_memory() = 1;
  CHECK(agent.load(1) == 1);
  agent.store(0, 2);
  CHECK(agent.load(1) == 1);
  CHECK(agent.load(1, "sc0") == 1);
  CHECK(agent.load(1, "sc1") == 2);
  CHECK(agent.in_memory() == 1);
}

TEST_CASE("gfx942: buffer_wbl2 and buffer_inv of agent scope hand data from one XCD to another") {
  TwoXcds agent;
  const uint32_t other = TwoXcds::other_xcd();
  agent.in_memory() = 1;
  CHECK(agent.load(other) == 1);
  agent.store(0, 2);
  agent.run(0, "buffer_wbl2 sc0");  // workgroup: nothing to do
  CHECK(agent.in_memory() == 1);
  agent.run(0, "buffer_wbl2 sc1");
  CHECK(agent.in_memory() == 2);
  CHECK(agent.load(other) == 1);
  agent.run(other, "buffer_inv sc1");
  CHECK(agent.load(other) == 2);
  agent.store(0, 3);
  agent.run(0, "buffer_wbl2 sc1");
  CHECK(agent.load(other) == 2);
  agent.run(other, "buffer_inv");  // wave: nothing to do
  CHECK(agent.load(other) == 2);
  agent.run(other, "buffer_inv sc0");  // workgroup: the same
  CHECK(agent.load(other) == 2);
  agent.run(other, "buffer_inv sc1");
  CHECK(agent.load(other) == 3);
}

TEST_CASE("gfx942: sc0 and sc1 together are system scope") {
  TwoXcds agent;
  const uint32_t other = TwoXcds::other_xcd();
  agent.in_memory() = 1;
  CHECK(agent.load(other) == 1);
  agent.store(0, 2);
  agent.run(0, "buffer_wbl2 sc0 sc1");
  CHECK(agent.in_memory() == 2);
  agent.run(other, "buffer_inv sc0 sc1");
  CHECK(agent.load(other) == 2);
  agent.store(0, 3, "sc0 sc1");
  CHECK(agent.in_memory() == 3);
  CHECK(agent.load(other, "sc0 sc1") == 3);
}

TEST_CASE("gfx942: atomics of waves on different XCDs meet") {
  TwoXcds agent;
  agent.in_memory() = 1;
  CHECK(agent.run(0, "global_atomic_add v4, v[0:1], v2, off sc0", 10).vgpr[4].lane[0] == 1);
  CHECK(agent.run(TwoXcds::other_xcd(), "global_atomic_add v4, v[0:1], v2, off sc0", 100)
            .vgpr[4]
            .lane[0] == 11);
  CHECK(agent.load(0, "sc1") == 111);
}

}  // namespace uptempo::vgpu::gfx9::test
