// The findings of the race detector. report/race_text.hpp has their output formats.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "device/host/publisher.hpp"
#include "device/memory.hpp"
#include "device/races/shadow.hpp"

namespace uptempo::vgpu::races {

// Two accesses to the same bytes without order.
struct Finding {
  // What is missing.
  enum class Reason : uint8_t {
    barrier,           // both waves are of one workgroup
    order,             // of different workgroups
    release,           // the second wave knows of the first one, but not of this access
    release_of_other,  // it knows of other waves of the first one's workgroup only
    acquire,           // the second wave has not invalidated its caches since it was told
    scope,             // both are atomic, one of them only for its workgroup
  };

  struct Side {
    Access access = Access::read;
    Reach reach = Reach::plain;
    GpuAddress instruction = 0;
    std::array<uint32_t, 3> workgroup{};
    uint32_t wave = 0;

    bool operator<(const Side& right) const noexcept {
      if (workgroup != right.workgroup) return workgroup < right.workgroup;
      return wave < right.wave;
    }
  };

  Reason reason = Reason::barrier;
  Side writer;  // of two writes, that of the lower instruction
  Side other;
  bool lds = false;
  // Before gfx942: a store that may be a relaxed atomic one, of a place that atomics access.
  bool may_be_atomic = false;
  // Both are stores, and the second one stored what memory held.
  bool same_values = false;
  uint64_t address = 0;  // the first byte; in LDS its offset in the group segment
  uint32_t bytes = 0;    // number of bytes of one line, perhaps with gaps
  uint64_t times = 0;    // lines and pairs of waves of the dispatch with this pair of instructions
};

// A dispatch whose accesses are checked.
struct Checked {
  std::string kernel;  // "sum.kd"
  uint32_t queue = 0;  // as in traces
  uint64_t index = 0;  // of its packet
  uint32_t gpu = 0;
  Publisher published = {};
};

}  // namespace uptempo::vgpu::races
