// The report of --check on floating-point atomics that had no effect, because they accessed memory
// that L2 does not hold for writing (caching.hpp, float_atomics_work).
//
// Each instruction of a kernel is reported once per kind of memory that it accesses; all are
// counted.
//
// Thread safety: any thread.
// Cost: a lock and a search for each ignored instruction of a wave, otherwise nothing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "device/memory.hpp"

namespace uptempo::vgpu {

// One instruction of one wave.
struct IgnoredAtomic {
  std::string_view kernel;       // "sum.kd"
  std::string_view instruction;  // "global_atomic_add_f32"
  int64_t offset = 0;            // of the instruction, from the kernel's entry
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;       // in the workgroup
  uint32_t lanes = 0;      // without effect
  GpuAddress address = 0;  // address of the first of these lanes
  MemoryKind kind = MemoryKind::fine_grained;
};

// {"class":"ignored-atomic","kernel":"sum.kd","instruction":"global_atomic_add_f32","offset":40,
//  "workgroup":[0,0,0],"wave":0,"lanes":64,"address":140737,"memory":"fine-grained host memory",
//  "reason":"...","remedy":"...","rule":"...","device":"gfx90a"}
std::string to_json(const IgnoredAtomic& atomic, std::string_view target);
// The same as a sentence.
std::string to_sentence(const IgnoredAtomic& atomic, std::string_view target);

class IgnoredAtomics {
 public:
  using Report = std::function<void(const IgnoredAtomic& first)>;

  explicit IgnoredAtomics(Report report) : report_(std::move(report)) {}

  void add(const IgnoredAtomic& atomic) noexcept;

  struct Counts {
    uint64_t lanes = 0;   // atomics, counted per lane
    uint64_t places = 0;  // pairs of an instruction of a kernel and a kind of memory
  };
  Counts counts() const;

 private:
  const Report report_;
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, int64_t, MemoryKind>, uint64_t> lanes_by_place_;
};

}  // namespace uptempo::vgpu
