// A dispatch whose waves do what a test says, for tests of the race detector (device/races).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "device/observer.hpp"
#include "device/races/dispatch_races.hpp"
#include "device/races/meter.hpp"

namespace uptempo::vgpu::races {

inline constexpr GpuAddress kCode = 0x7f0000001000, kData = 0x7f1000000000, kFlag = 0x7f1000010000;

// A dispatch whose waves do what a test says, in the order in which it says it.
class Program {
 public:
  explicit Program(uint32_t groups = 2, uint32_t waves = 2, bool stores_name_scope = false,
                   uint64_t bytes = Budget::kDefaultBytes, bool starts = true)
      : budget(bytes),
        races({.workgroups = {groups, 1, 1},
               .entry = kCode,
               .scratch_begin = 0x1000,
               .scratch_end = 0x2000,
               .stores_name_scope = stores_name_scope},
              budget),
        waves_(waves) {
    for (uint32_t group = 0; starts && group < groups; ++group) start(group);
  }

  // Whether stores from now on change memory.
  void changes(bool memory) { changes_.lanes = memory ? ~uint64_t{0} : 0; }

  // How often the detector has compared a store with memory.
  unsigned compared() const { return changes_.asked; }

  // One dword of one lane. `line` is the instruction's number.
  void access(uint32_t group, uint32_t wave, Access kind, GpuAddress address, unsigned line,
              AccessScope scope = AccessScope::wave, bool returns = true, uint32_t bytes = 4) {
    std::array<GpuAddress, 64> addresses{address};
    const ObservedAccess access{.access = kind,
                                .scope = kind == Access::atomic ? AccessScope::agent : scope,
                                .returns = kind == Access::atomic && returns,
                                .compares = compares_,
                                .size_bytes = bytes,
                                .lanes = 1,
                                .changing = ChangingLanes(changes_),
                                .address = addresses.data(),
                                .workgroup = {group, 0, 0},
                                .wave = wave,
                                .instruction = kCode + 8 * line};
    races.access(access);
    if (kind != Access::write && access.scope != AccessScope::wave) races.accessed(access);
  }
  void read(uint32_t group, uint32_t wave, GpuAddress address, unsigned line) {
    access(group, wave, Access::read, address, line);
  }
  void write(uint32_t group, uint32_t wave, GpuAddress address, unsigned line) {
    access(group, wave, Access::write, address, line);
  }
  void update(uint32_t group, uint32_t wave, GpuAddress address, unsigned line,
              bool returns = true) {
    access(group, wave, Access::atomic, address, line, AccessScope::agent, returns);
  }
  // A compare-and-swap of one dword.
  void compare(uint32_t group, uint32_t wave, GpuAddress address, unsigned line) {
    compares_ = true;
    update(group, wave, address, line);
    compares_ = false;
  }
  void poll(uint32_t group, uint32_t wave, GpuAddress address, unsigned line) {
    access(group, wave, Access::read, address, line, AccessScope::agent);
  }
  void lds(uint32_t group, uint32_t wave, Access kind, uint32_t offset, unsigned line,
           uint32_t bytes = 4) {
    std::array<uint32_t, 64> offsets{offset};
    races.lds_access({.access = kind,
                      .returns = kind == Access::atomic,
                      .size_bytes = bytes,
                      .lanes = 1,
                      .changing = ChangingLanes(changes_),
                      .offset = offsets.data(),
                      .segment_bytes = 1024,
                      .workgroup = {group, 0, 0},
                      .wave = wave,
                      .instruction = kCode + 8 * line});
  }
  void wait(uint32_t group, uint32_t wave) { races.waited(at(group, wave), true, false); }
  void wait_lds(uint32_t group, uint32_t wave) { races.waited(at(group, wave), false, true); }
  void invalidate(uint32_t group, uint32_t wave, AccessScope scope = AccessScope::agent) {
    races.invalidated(at(group, wave), scope);
  }
  void write_back(uint32_t group, uint32_t wave) {
    races.wrote_back(at(group, wave), AccessScope::agent);
  }
  void barrier(uint32_t group) { races.barrier(of(group)); }
  void start(uint32_t group) { races.workgroup_started(of(group)); }
  void end(uint32_t group) { races.workgroup_ended(of(group)); }

  static ObservedWave at(uint32_t group, uint32_t wave) {
    return {.workgroup = {group, 0, 0}, .wave = wave};
  }
  ObservedWorkgroup of(uint32_t group) const {
    return {.workgroup = {group, 0, 0}, .waves = waves_, .lds_bytes = 1024};
  }

  // "barrier 1 2": what is missing between lines 1 and 2.
  std::vector<std::string> findings() {
    std::vector<std::string> texts;
    for (const Finding& finding : races.take_findings()) {
      constexpr std::array<const char*, 6> kNames{"barrier",          "order",   "release",
                                                  "release-of-other", "acquire", "scope"};
      const auto line = [](const Finding::Side& side) {
        return ' ' + std::to_string((side.instruction - kCode) / 8);
      };
      texts.push_back((finding.same_values ? "same-values " : "") +
                      std::string(kNames[static_cast<size_t>(finding.reason)]) +
                      line(finding.writer) + line(finding.other));
    }
    return texts;
  }

  Budget budget;
  DispatchRaces races;

 private:
  const uint32_t waves_;
  bool compares_ = false;
  struct {
    uint64_t lanes = ~uint64_t{0};
    mutable unsigned asked = 0;
    uint64_t operator()() const {
      ++asked;
      return lanes;
    }
  } changes_;
};

using Texts = std::vector<std::string>;
inline constexpr Access kRead = Access::read, kWrite = Access::write, kAtomic = Access::atomic;

}  // namespace uptempo::vgpu::races
