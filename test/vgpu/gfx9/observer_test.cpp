// The events that an observer of a dispatch sees, besides accesses to global memory
// (core_test.cpp).
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "device/observer.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

// Everything as one line of text per event.
struct Recorder : MemoryObserver {
  explicit Recorder(ObserverInterests interests = {.lds = true, .order = true})
      : MemoryObserver(interests) {}
  std::vector<std::string> seen;

  void add(const std::string& event) { seen.push_back(event); }
  static std::string kind(Access access) {
    return access == Access::read ? "read" : access == Access::write ? "write" : "atomic";
  }
  static std::string scope(AccessScope scope) {
    return std::to_string(static_cast<unsigned>(scope));
  }
  static std::string at(const std::array<uint32_t, 3>& group) { return std::to_string(group[0]); }

  void access(const ObservedAccess& what) noexcept override {
    add("global " + kind(what.access) + (what.returns ? " returns" : ""));
  }
  void accessed(const ObservedAccess& what) noexcept override {
    add("accessed " + kind(what.access) + " scope " + scope(what.scope));
  }
  void wrote_back(const ObservedWave&, AccessScope reach) noexcept override {
    add("wrote back " + scope(reach));
  }
  // The offsets of lanes 0 and 2, where they take part.
  void lds_access(const ObservedLdsAccess& what) noexcept override {
    std::string text = kind(what.access) + (what.returns ? " returns " : " ") +
                       std::to_string(what.size_bytes) + " at";
    for (const unsigned lane : {0u, 2u})
      if ((what.lanes >> lane & 1) != 0) text += ' ' + std::to_string(what.offset[lane]);
    add(text + " of " + std::to_string(what.segment_bytes));
  }
  void out_of_range(const ObservedAccess& what) noexcept override {
    add("out of range " + kind(what.access) + ' ' + std::to_string(what.size_bytes) + " of lanes " +
        std::to_string(what.lanes) + " at " + std::to_string(what.address[1] % 4096));
  }
  void workgroup_started(const ObservedWorkgroup& group) noexcept override {
    add("start " + at(group.workgroup) + " of " + std::to_string(group.waves));
  }
  void workgroup_ended(const ObservedWorkgroup& group) noexcept override {
    add("end " + at(group.workgroup));
  }
  void barrier(const ObservedWorkgroup& group) noexcept override {
    add("barrier " + at(group.workgroup));
  }
  void waited(const ObservedWave& wave, bool vector, bool lds) noexcept override {
    add("wait wave " + std::to_string(wave.wave) + (vector ? " vector" : "") + (lds ? " lds" : ""));
  }
  void invalidated(const ObservedWave&, AccessScope reach) noexcept override {
    add("invalidate " + scope(reach));
  }
  void invalidated_scalar(const ObservedWave&) noexcept override { add("invalidate scalar"); }
  void arrived(const ObservedWave& wave, unsigned resource) noexcept override {
    add("arrive " + at(wave.workgroup) + " at " + std::to_string(resource));
  }
  void passed(const ObservedWave& wave, unsigned resource) noexcept override {
    add("pass " + at(wave.workgroup) + " at " + std::to_string(resource));
  }
};

using Events = std::vector<std::string>;

// The events of one wave that executes `text` with 1024 bytes of LDS: v0 has 8 * lane, v1 is 0,
// v[2:3] is 8 * lane in the shared aperture, EXEC is lanes 0 to 2.
Events events_of(std::string_view text, Target target = Target::gfx90a,
                 ObserverInterests interests = {.lds = true, .order = true}) {
  Recorder recorder(interests);
  Fragment fragment(target, MemoryPolicy::observed);
  fragment.machine.observer = &recorder;
  const Buffer data = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare(text, 1024);
  wave.set_pair(0, data.address);
  wave.set_exec(7);
  each_lane([&](unsigned lane) {
    wave.vgpr[0].lane[lane] = 8 * lane;
    set_address(wave, 2, lane, (GpuAddress{1} << 48) + 8 * lane);
  });
  recorder.seen.clear();  // the workgroup's start
  fragment.finish();
  REQUIRE((recorder.seen.empty() || interests.order == (recorder.seen.back() == "end 0")));
  if (interests.order) recorder.seen.pop_back();
  return recorder.seen;
}

}  // namespace

TEST_CASE("an observer sees the LDS accesses of DS instructions", "[observer]") {
  CHECK(events_of("ds_read_b32 v4, v0 offset:16") == Events{"read 4 at 16 32 of 1024"});
  CHECK(events_of("ds_read_u8 v4, v0") == Events{"read 1 at 0 16 of 1024"});
  CHECK(events_of("ds_read_u16_d16 v4, v0") == Events{"read 2 at 0 16 of 1024"});
  CHECK(events_of("ds_write_b128 v0, v[4:7] offset:32") == Events{"write 16 at 32 48 of 1024"});
  CHECK(events_of("ds_read2_b32 v[4:5], v0 offset0:1 offset1:3") ==
        Events{"read 4 at 4 20 of 1024", "read 4 at 12 28 of 1024"});
  CHECK(events_of("ds_write2st64_b64 v0, v[4:5], v[6:7] offset1:1") ==
        Events{"write 8 at 0 16 of 1024", "write 8 at 512 528 of 1024"});
  CHECK(events_of("ds_add_u32 v0, v1 offset:4") == Events{"atomic 4 at 4 20 of 1024"});
  CHECK(events_of("ds_add_rtn_u64 v[4:5], v0, v[6:7]") ==
        Events{"atomic returns 8 at 0 16 of 1024"});
  CHECK(events_of("ds_wrxchg2_rtn_b32 v[4:5], v0, v1, v1 offset0:2 offset1:3") ==
        Events{"atomic returns 4 at 8 24 of 1024", "atomic returns 4 at 12 28 of 1024"});
  CHECK(events_of("s_mov_b32 m0, 64\nds_write_addtid_b32 v0 offset:4") ==
        Events{"write 4 at 68 76 of 1024"});
  CHECK(events_of("s_mov_b32 m0, 64\nds_append v4 offset:4") ==
        Events{"atomic returns 4 at 68 of 1024"});
}

// A buffer of 8 bytes at the data: of three lanes, 8 bytes apart, one is in range.
TEST_CASE("an observer sees the lanes that a buffer's range check excludes", "[observer]") {
  const auto of = [](const std::string& instruction) {
    return events_of("s_mov_b64 s[4:5], s[0:1]\ns_mov_b32 s6, 8\ns_mov_b32 s7, 0\n" + instruction,
                     Target::gfx90a, {.ranges = true});
  };
  CHECK(of("buffer_load_dwordx2 v[4:5], v0, s[4:7], 0 offen") ==
        Events{"global read", "out of range read 8 of lanes 6 at 8"});
  CHECK(of("buffer_store_dword v4, v0, s[4:7], 0 offen offset:4") ==
        Events{"global write", "out of range write 4 of lanes 6 at 12"});
  CHECK(of("buffer_atomic_add v4, v0, s[4:7], 0 offen") ==
        Events{"out of range atomic 4 of lanes 6 at 8", "global atomic"});
  // The second dword of lane 0 is out of range, too.
  CHECK(of("buffer_load_dwordx2 v[4:5], v0, s[4:7], 0 offen offset:4") ==
        Events{"global read", "out of range read 8 of lanes 7 at 12"});
}

TEST_CASE("an observer sees LDS accesses out of the segment", "[observer]") {
  CHECK(events_of("ds_write_b32 v0, v1 offset:1020") == Events{"write 4 at 1020 1036 of 1024"});
}

TEST_CASE("moves between lanes are no LDS accesses", "[observer]") {
  CHECK(events_of("ds_bpermute_b32 v4, v0, v1\nds_permute_b32 v4, v0, v1\n"
                  "ds_swizzle_b32 v4, v0 offset:0x1f\nds_nop")
            .empty());
  CHECK(events_of("s_mov_b64 exec, 0\nds_write_b32 v0, v1\nds_add_u32 v0, v1").empty());
}

TEST_CASE("an observer sees LDS accesses of FLAT instructions and of loads to LDS", "[observer]") {
  CHECK(events_of("flat_store_dwordx2 v[2:3], v[4:5]") == Events{"write 8 at 0 16 of 1024"});
  CHECK(events_of("flat_load_ubyte v4, v[2:3]") == Events{"read 1 at 0 16 of 1024"});
  CHECK(events_of("flat_atomic_add v4, v[2:3], v1 glc") ==
        Events{"atomic returns 4 at 0 16 of 1024"});
  const Events loaded =
      events_of("s_mov_b32 m0, 256\nglobal_load_dword v0, s[0:1] offset:4 lds", Target::gfx908);
  REQUIRE(loaded.size() == 4);
  CHECK(loaded[0] == "write 4 at 260 268 of 1024");
  CHECK(loaded[1] == "global read");
}

TEST_CASE("an observer sees when loads and atomics that reach the agent have taken effect",
          "[observer]") {
  CHECK(events_of("global_load_dword v4, v0, s[0:1]\nglobal_load_dword v4, v0, s[0:1] glc\n"
                  "global_atomic_add v0, v1, s[0:1]\nglobal_atomic_add v4, v0, v1, s[0:1] glc\n"
                  "global_store_dword v0, v1, s[0:1]") ==
        Events{"global read", "global read", "accessed read scope 2", "global atomic",
               "accessed atomic scope 2", "global atomic returns", "accessed atomic scope 2",
               "global write"});
}

TEST_CASE("an observer sees what orders a wave's accesses", "[observer]") {
  CHECK(events_of("s_waitcnt vmcnt(0)\ns_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0) lgkmcnt(0)\n"
                  "s_waitcnt vmcnt(16)\ns_waitcnt lgkmcnt(1)\nbuffer_wbinvl1_vol\nbuffer_wbl2\n"
                  "buffer_invl2\ns_dcache_inv") ==
        Events{"wait wave 0 vector", "wait wave 0 lds", "wait wave 0 vector lds", "invalidate 2",
               "wrote back 3", "invalidate 3", "invalidate scalar"});
}

#ifdef UPTEMPO_ASSEMBLES_GFX942
TEST_CASE("gfx942: an observer sees the scope of cache operations", "[observer]") {
  CHECK(events_of("buffer_inv sc0\nbuffer_inv sc1\nbuffer_wbl2 sc1\nbuffer_wbl2 sc0 sc1",
                  Target::gfx942) ==
        Events{"invalidate 1", "invalidate 2", "wrote back 2", "wrote back 3"});
}
#endif

TEST_CASE("an observer sees only what it is interested in", "[observer]") {
  constexpr std::string_view kText =
      "ds_write_b32 v0, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v0, v1, s[0:1]\nbuffer_wbl2";
  CHECK(events_of(kText, Target::gfx90a, {}) == Events{"global write", "wrote back 3"});
  CHECK(events_of(kText, Target::gfx90a, {.lds = true}) ==
        Events{"write 4 at 0 16 of 1024", "global write", "wrote back 3"});
}

TEST_CASE("several observers see the events that each is interested in", "[observer]") {
  Recorder all, none(ObserverInterests{}), lds({.lds = true});
  DispatchState state;
  for (Recorder* each : {&all, &none, &lds}) state.add_observer(*each);
  MemoryObserver& observer = *state.observer;
  CHECK(observer.interests().lds);
  CHECK(observer.interests().order);
  observer.access({.access = Access::write});
  observer.lds_access({.lanes = 1, .offset = std::array<uint32_t, 64>{}.data()});
  observer.barrier({});
  CHECK(all.seen == Events{"global write", "read 0 at 0 of 0", "barrier 0"});
  CHECK(none.seen == Events{"global write"});
  CHECK(lds.seen == Events{"global write", "read 0 at 0 of 0"});
}

TEST_CASE("an observer sees workgroups and their barriers", "[observer]") {
  Recorder recorder;
  Machine machine(Target::gfx90a, MemoryPolicy::observed);
  machine.observer = &recorder;
  LlvmMc mc(Target::gfx90a);
  const std::vector<uint32_t> code = mc.assemble("s_barrier\ns_barrier\ns_endpgm");
  const auto state = machine.prepare(machine.assemble_kernel(code),
                                     {.grid = {192, 1, 1}, .workgroup = {128, 1, 1}}, {});
  REQUIRE_FALSE(machine.run(state));
  Events of_first;
  for (const std::string& event : recorder.seen)
    if (event.find(" 0") != std::string::npos) of_first.push_back(event);
  CHECK(of_first == Events{"start 0 of 2", "barrier 0", "barrier 0", "end 0"});
  // The second workgroup has one wave, whose barriers order nothing.
  CHECK(recorder.seen.size() == 6);
}

TEST_CASE("an observer sees arrivals at a global barrier before any wave passes", "[observer]") {
  Recorder recorder;
  Machine machine(Target::gfx90a, MemoryPolicy::observed);
  machine.observer = &recorder;
  LlvmMc mc(Target::gfx90a);
  const std::vector<uint32_t> code = mc.assemble(
      "s_mov_b32 m0, 0x50000\nv_mov_b32 v2, 1\nds_gws_init v2 gds\nds_gws_barrier v2 gds\n"
      "s_endpgm");
  const auto state = machine.prepare(machine.assemble_kernel(code), {.grid = {128, 1, 1}}, {});
  REQUIRE_FALSE(machine.run(state, 3));
  Events order;
  for (const std::string& event : recorder.seen)
    if (event.find(" at 5") != std::string::npos) order.push_back(event.substr(0, 4));
  CHECK(order == Events{"arri", "arri", "pass", "pass"});
}

}  // namespace uptempo::vgpu::gfx9::test
