// Floating-point atomics by the kind of memory that they access. Source: ROCm, "Hardware atomics
// operation support". MI200 and MI100: memory that is not coarse-grained stays unchanged, and the
// lane gets 0 ("NOP"). MI300: they work on any memory.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "device/ignored_atomics.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/fragment.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

using u64 = uint64_t;
using u32 = uint32_t;

u64 d(double value) { return std::bit_cast<u64>(value); }

struct Instruction {
  const char* name;  // after "global_atomic_"
  unsigned dwords;
  u64 before, data, after;
  bool on_gfx908;
};
const Instruction kInstructions[] = {
    {"add_f32", 1, 0x3f800000, 0x40000000, 0x40400000, true},
    {"pk_add_f16", 1, 0x3c004000, 0x3c003c00, 0x40004200, true},
    {"add_f64", 2, d(0.5), d(0.25), d(0.75), false},
    {"min_f64", 2, d(0.5), d(0.25), d(0.25), false},
    {"max_f64", 2, d(0.5), d(2.0), d(2.0), false},
};

struct Kind {
  MemoryKind kind;
  bool works;
};
constexpr Kind kKinds[] = {
    {MemoryKind::coarse_grained, true},        {MemoryKind::device_local, true},
    {MemoryKind::fine_grained, false},         {MemoryKind::uncached, false},
    {MemoryKind::device_local_fine, false},    {MemoryKind::device_local_extended, false},
    {MemoryKind::device_local_uncached, false}};

enum class Form { global, flat, buffer };

std::string range(unsigned first, unsigned count) {
  if (count == 1) return "v" + std::to_string(first);
  return "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

// Each lane has 8 bytes at v[0:1], or at offset v0 of the buffer in s[4:7]. Data is in v4, the
// result in v8.
std::string text_of(const std::string& name, Form form, unsigned dwords, bool returns,
                    const std::string& returns_bit = " glc") {
  const std::string data = range(4, dwords), glc = returns ? returns_bit : "";
  if (form == Form::buffer)
    return "buffer_atomic_" + name + " " + data + ", v0, s[4:7], 0 offen" + glc;
  const std::string result = returns ? range(8, dwords) + ", " : "";
  return (form == Form::flat ? "flat_atomic_" : "global_atomic_") + name + " " + result +
         "v[0:1], " + data + (form == Form::flat ? "" : ", off") + glc;
}

void set_lanes(Wave& wave, const Instruction& instruction, Form form, const Buffer& memory) {
  if (form == Form::buffer) {
    wave.scalar[4] = static_cast<u32>(memory.address);
    wave.scalar[5] = static_cast<u32>(memory.address >> 32) & 0xffff;
    wave.scalar[6] = static_cast<u32>(memory.bytes.size());
    wave.scalar[7] = 0x00027000;  // LLVM, SIDefines.h: 32-bit data
  }
  each_lane([&](unsigned lane) {
    memory.as<u64>()[lane] = instruction.before;
    set_address(wave, 0, lane, (form == Form::buffer ? 0 : memory.address) + 8 * lane);
    set_address(wave, 4, lane, instruction.data);
    set_address(wave, 8, lane, 0xabababababababab);
  });
}

u64 value_of(const Wave& wave, unsigned vgpr, unsigned lane, unsigned dwords) {
  return wave.vgpr[vgpr].lane[lane] | (dwords == 2 ? u64{wave.vgpr[vgpr + 1].lane[lane]} << 32 : 0);
}

void check(Target target, const Instruction& instruction, Form form, const Kind& kind, bool returns,
           const std::string& scope = "") {
  Fragment fragment(target);
  const Buffer memory = fragment.machine.allocate(64 * 8, true, kind.kind);
  const std::string text = text_of(instruction.name, form, instruction.dwords, returns,
                                   target == Target::gfx942 ? " sc0" : " glc") +
                           scope;
  Wave& wave = fragment.prepare(text);
  set_lanes(wave, instruction, form, memory);
  wave.set_exec(kStripes);
  fragment.finish();
  const unsigned result = form == Form::buffer ? 4 : 8;
  const u64 untouched = form == Form::buffer ? instruction.data : 0xabababababababab;
  const u64 mask = instruction.dwords == 1 ? 0xffffffff : ~u64{0};
  each_lane([&](unsigned lane) {
    const bool active = (kStripes >> lane & 1) != 0;
    CAPTURE(text, static_cast<int>(target), static_cast<int>(kind.kind), lane);
    CHECK(memory.as<u64>()[lane] ==
          (active && kind.works ? instruction.after : instruction.before));
    const u64 want = !active || !returns ? untouched : kind.works ? instruction.before : 0;
    CHECK(value_of(wave, result, lane, instruction.dwords) == (want & mask));
  });
}

}  // namespace

TEST_CASE("floating-point atomics of gfx90a update coarse-grained memory and no other",
          "[float-atomics]") {
  for (const Instruction& instruction : kInstructions)
    for (const Kind& kind : kKinds)
      for (const bool returns : {false, true}) {
        check(Target::gfx90a, instruction, Form::global, kind, returns);
        check(Target::gfx90a, instruction, Form::buffer, kind, returns);
        if (instruction.dwords == 2) check(Target::gfx90a, instruction, Form::flat, kind, returns);
      }
}

TEST_CASE("floating-point atomics of gfx908 update coarse-grained memory and no other",
          "[float-atomics]") {
  for (const Instruction& instruction : kInstructions) {
    if (!instruction.on_gfx908) continue;
    for (const Kind& kind : kKinds) {
      check(Target::gfx908, instruction, Form::global, kind, false);
      check(Target::gfx908, instruction, Form::buffer, kind, false);
    }
  }
}

#if defined(UPTEMPO_ASSEMBLES_GFX942)  // the oracle is LLVM 19 or newer
TEST_CASE("floating-point atomics of gfx942 update memory of any kind, at any scope",
          "[float-atomics]") {
  for (const Instruction& instruction : kInstructions)
    for (Kind kind : kKinds)
      for (const bool returns : {false, true})
        for (const char* scope : {"", " sc1"}) {
          kind.works = true;
          check(Target::gfx942, instruction, Form::global, kind, returns, scope);
          check(Target::gfx942, instruction, Form::buffer, kind, returns, scope);
          check(Target::gfx942, instruction, Form::flat, kind, returns, scope);
        }
}
#endif

TEST_CASE("integer atomics and compare-and-swap work on memory of every kind", "[float-atomics]") {
  for (const Kind& kind : kKinds) {
    Fragment fragment;
    const Buffer memory = fragment.machine.allocate(64 * 8, true, kind.kind);
    Wave& wave = fragment.prepare(R"(
      global_atomic_add v8, v0, v4, s[0:1] glc
      global_atomic_smax v9, v0, v5, s[0:1] glc
      global_atomic_cmpswap v10, v0, v[6:7], s[0:1] glc
      global_atomic_add_x2 v[12:13], v0, v[4:5], s[0:1] offset:8 glc)");
    wave.set_pair(0, memory.address);
    wave.set_exec(1);
    memory.as<u64>()[0] = 40;
    memory.as<u64>()[1] = 7;
    wave.vgpr[4].lane[0] = 2;   // 42
    wave.vgpr[5].lane[0] = 50;  // 50
    wave.vgpr[6].lane[0] = 60;  // 60, because 50 is there
    wave.vgpr[7].lane[0] = 50;
    fragment.finish();
    CAPTURE(static_cast<int>(kind.kind));
    CHECK(memory.as<u64>()[0] == 60);
    CHECK(wave.vgpr[8].lane[0] == 40);
    CHECK(wave.vgpr[9].lane[0] == 42);
    CHECK(wave.vgpr[10].lane[0] == 50);
    CHECK(memory.as<u64>()[1] == 7 + (u64{50} << 32 | 2));
  }
}

TEST_CASE(
    "the memory that a lane accesses decides for that lane, and atomics on LDS always take effect",
    "[float-atomics]") {
  Fragment fragment;
  const Buffer coarse = fragment.machine.allocate(64 * 8);
  const Buffer fine = fragment.machine.allocate(64 * 8, true, MemoryKind::fine_grained);
  Wave& wave = fragment.prepare("flat_atomic_add_f64 v[8:9], v[0:1], v[4:5] glc", 64 * 8);
  each_lane([&](unsigned lane) {
    coarse.as<double>()[lane] = fine.as<double>()[lane] = 1.5;
    const double lds = 1.5;
    std::memcpy(wave.lds + 8 * lane, &lds, 8);
    const GpuAddress base = lane % 3 == 0   ? coarse.address
                            : lane % 3 == 1 ? fine.address
                                            : aperture_base(kSharedAperture);
    set_address(wave, 0, lane, base + 8 * lane);
    set_address(wave, 4, lane, d(0.25));
  });
  fragment.finish();
  each_lane([&](unsigned lane) {
    CAPTURE(lane);
    double lds = 0;
    std::memcpy(&lds, wave.lds + 8 * lane, 8);
    CHECK(coarse.as<double>()[lane] == (lane % 3 == 0 ? 1.75 : 1.5));
    CHECK(fine.as<double>()[lane] == 1.5);
    CHECK(lds == (lane % 3 == 2 ? 1.75 : 1.5));
    CHECK(value_of(wave, 8, lane, 2) == (lane % 3 == 1 ? 0 : d(1.5)));
  });
}

TEST_CASE("an ignored atomic still requires writable memory and alignment", "[float-atomics]") {
  const auto fault_at = [](bool writable, u64 offset) {
    Fragment fragment;
    const Buffer memory = fragment.machine.allocate(4096, writable, MemoryKind::fine_grained);
    Wave& wave = fragment.prepare("global_atomic_add_f32 v[0:1], v4, off");
    each_lane([&](unsigned lane) { set_address(wave, 0, lane, memory.address + offset); });
    return fragment.run().has_value();
  };
  CHECK_FALSE(fault_at(true, 0));
  CHECK_FALSE(fault_at(true, 4092));
  CHECK(fault_at(false, 0));
  CHECK(fault_at(true, 2));
  CHECK(fault_at(true, 4096));  // not mapped
}

TEST_CASE("each instruction that ignores lanes is reported once per kind of memory, and counted",
          "[float-atomics]") {
  Fragment fragment;
  std::vector<std::string> lines, json;
  IgnoredAtomics ignored([&](const IgnoredAtomic& atomic) {
    lines.push_back(to_sentence(atomic, "gfx90a"));
    json.push_back(to_json(atomic, "gfx90a"));
  });
  fragment.machine.executor.ignored_atomics = &ignored;
  const Buffer fine = fragment.machine.allocate(4096, true, MemoryKind::fine_grained);
  const Buffer coarse = fragment.machine.allocate(4096);
  for (int round = 0; round < 2; ++round) {
    Wave& wave = fragment.prepare(
        "global_atomic_add_f32 v[0:1], v4, off\n global_atomic_add_f32 v[2:3], v4, off\n"
        "global_atomic_max_f64 v[0:1], v[4:5], off");
    wave.set_exec(0xf0);
    each_lane([&](unsigned lane) {
      set_address(wave, 0, lane, fine.address + 8 * lane);
      set_address(wave, 2, lane, coarse.address + 8 * lane);
    });
    fragment.finish();
  }
  CHECK(ignored.counts().lanes == 2 * 4 * 2);
  CHECK(ignored.counts().places == 2);
  REQUIRE(lines.size() == 2);
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx",
                static_cast<unsigned long long>(fine.address + 32));
  CAPTURE(lines[0], lines[1]);
  CHECK(lines[0].find("global_atomic_add_f32 of 4 lanes at address " + std::string(address)) !=
        std::string::npos);
  CHECK(lines[0].find("fine-grained host memory") != std::string::npos);
  CHECK(lines[0].find("+ 0x0 ") != std::string::npos);
  CHECK(lines[1].find("global_atomic_max_f64") != std::string::npos);
  CHECK(lines[1].find("+ 0x10 ") != std::string::npos);
  CHECK(lines[1].find("use coarse-grained memory") != std::string::npos);
  CHECK(json[1].starts_with(R"({"class":"ignored-atomic","kernel":")"));
  CHECK(
      json[1].find(
          R"("instruction":"global_atomic_max_f64","offset":16,"workgroup":[0,0,0],"wave":0,"lanes":4,"address":)" +
          std::to_string(fine.address + 32) +
          R"(,"memory":"fine-grained host memory","reason":")") != std::string::npos);
  CHECK(json[1].ends_with(R"("device":"gfx90a"})"));
}

TEST_CASE("an observer does not see lanes whose atomic is ignored", "[float-atomics]") {
  struct Seen : MemoryObserver {
    void access(const ObservedAccess& access) noexcept override { lanes |= access.lanes; }
    u64 lanes = 0;
  } seen;
  Fragment fragment(Target::gfx90a, MemoryPolicy::observed);
  fragment.machine.observer = &seen;
  const Buffer fine = fragment.machine.allocate(4096, true, MemoryKind::fine_grained);
  const Buffer coarse = fragment.machine.allocate(4096);
  Wave& wave = fragment.prepare("global_atomic_add_f32 v[0:1], v4, off");
  each_lane([&](unsigned lane) {
    set_address(wave, 0, lane, (lane < 32 ? fine.address : coarse.address) + 4 * lane);
  });
  fragment.finish();
  CHECK(seen.lanes == 0xffffffff00000000);
}

}  // namespace uptempo::vgpu::gfx9::test
