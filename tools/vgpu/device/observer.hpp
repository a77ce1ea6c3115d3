// The interface through which the checkers see what the waves of a dispatch do: their accesses to
// memory, and the instructions that order those.
//
// The gfx9 core takes its observer as a compile-time policy (gfx9/observe.hpp). Unobserved
// instructions contain no code for the hooks. Observed instructions call the dispatch's
// MemoryObserver before they take effect, unless a hook says otherwise.
//
// Thread safety: all workers call it concurrently, each for the waves that it runs. Only one worker
// at a time runs the waves of a workgroup.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/caches/caching.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

struct ObservedWorkgroup {
  uint64_t dispatch_id = 0;
  std::array<uint32_t, 3> workgroup{};
  uint32_t waves = 0;
  uint32_t lds_bytes = 0;  // of its group segment
};

// An instruction of a wave.
struct ObservedWave {
  uint64_t dispatch_id = 0;
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;  // in the workgroup
  GpuAddress instruction = 0;
};

// The lanes of a store whose value differs from what memory holds. They are found when an observer
// asks, which costs about as much as the store.
class ChangingLanes {
 public:
  ChangingLanes() = default;  // all of them
  // find() returns a bit for each lane. It outlives this.
  template <class Find>
  explicit ChangingLanes(const Find& find)
      : find_(
            [](const void* context) -> uint64_t { return (*static_cast<const Find*>(context))(); }),
        context_(&find) {}

  uint64_t operator()() const { return find_ == nullptr ? ~uint64_t{0} : find_(context_); }

 private:
  uint64_t (*find_)(const void*) = nullptr;
  const void* context_ = nullptr;
};

struct ObservedAccess {
  Access access = Access::read;  // read, write, atomic
  bool scalar = false;           // through the scalar cache: one address, lanes = 1
  // How far a vector access reaches (gfx9/access_scope.hpp). Atomics: at least the agent.
  AccessScope scope = AccessScope::wave;
  bool returns = false;     // of an atomic: the wave gets the old value
  bool compares = false;    // of an atomic: a compare-and-swap
  uint32_t size_bytes = 0;  // per lane
  uint64_t lanes = 0;       // bit i: lane i takes part
  ChangingLanes changing = {};
  // [64], valid during the call. Entries of lanes that take no part are undefined.
  const GpuAddress* address = nullptr;
  uint64_t dispatch_id = 0;
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;  // in the workgroup
  GpuAddress instruction = 0;
};

// An access to the group segment: by DS instructions, by FLAT instructions in the shared aperture,
// or by loads to LDS. An instruction with two offsets (ds_read2_b32) is two accesses.
struct ObservedLdsAccess {
  Access access = Access::read;
  bool returns = false;     // of an atomic: the wave gets the old value
  bool compares = false;    // of an atomic: a compare-and-swap
  uint32_t size_bytes = 0;  // per lane
  uint64_t lanes = 0;       // bit i: lane i takes part; not 0
  ChangingLanes changing = {};
  // [64], from the segment's begin, valid during the call. They may be out of the segment, or
  // misaligned. Entries of lanes that take no part are undefined.
  const uint32_t* offset = nullptr;
  uint32_t segment_bytes = 0;
  uint64_t dispatch_id = 0;
  std::array<uint32_t, 3> workgroup{};
  uint32_t wave = 0;
  GpuAddress instruction = 0;
};

// The calls that an observer wants besides access(), wrote_back() and invalidated().
struct ObserverInterests {
  bool lds = false;     // lds_access()
  bool ranges = false;  // out_of_range()
  bool order = false;   // the functions after lds_access()
};

class MemoryObserver {
 public:
  MemoryObserver() = default;
  explicit MemoryObserver(ObserverInterests interests) : interests_(interests) {}
  virtual ~MemoryObserver() = default;

  ObserverInterests interests() const noexcept { return interests_; }

  // Global and private memory. A multi-dword access to private memory, whose dwords are not
  // contiguous, is reported dword by dword.
  virtual void access(const ObservedAccess& access) noexcept = 0;

  // A wave wrote L2 back (buffer_wbl2), which compilers emit for a release of system scope: what it
  // stores next may tell the host of what it has stored. The scope is the named one on gfx942.
  virtual void wrote_back(const ObservedWave&, AccessScope) noexcept {}
  // buffer_wbinvl1*, buffer_inv (of the named scope), buffer_invl2.
  virtual void invalidated(const ObservedWave&, AccessScope) noexcept {}

  // Lanes of a buffer access that the buffer's range check excludes: they read 0 or store nothing.
  // Each lane's address is that of its first byte out of range.
  virtual void out_of_range(const ObservedAccess&) noexcept {}
  virtual void lds_access(const ObservedLdsAccess&) noexcept {}

  virtual void workgroup_started(const ObservedWorkgroup&) noexcept {}
  virtual void workgroup_ended(const ObservedWorkgroup&) noexcept {}
  // All waves of the workgroup that have not ended are at s_barrier. Not called for a workgroup of
  // one wave.
  virtual void barrier(const ObservedWorkgroup&) noexcept {}

  // A load or an atomic that was observed and reaches further than the wave has taken effect:
  // what it has read was stored before.
  virtual void accessed(const ObservedAccess&) noexcept {}
  // s_waitcnt until all vector memory instructions, or all LDS and scalar ones, have completed.
  virtual void waited(const ObservedWave&, bool /*vector*/, bool /*lds*/) noexcept {}
  // s_dcache_inv.
  virtual void invalidated_scalar(const ObservedWave&) noexcept {}
  // ds_gws_barrier: the wave arrives; later, all waves of this phase have arrived.
  virtual void arrived(const ObservedWave&, unsigned /*resource*/) noexcept {}
  virtual void passed(const ObservedWave&, unsigned /*resource*/) noexcept {}

 private:
  const ObserverInterests interests_{};
};

// Several observers of one dispatch, called in order.
class Observers final : public MemoryObserver {
 public:
  explicit Observers(std::vector<MemoryObserver*> all)
      : MemoryObserver(interests_of(all)), all_(std::move(all)) {}

  const std::vector<MemoryObserver*>& list() const noexcept { return all_; }

  void access(const ObservedAccess& access) noexcept override {
    for (MemoryObserver* each : all_) each->access(access);
  }
  void wrote_back(const ObservedWave& wave, AccessScope scope) noexcept override {
    for (MemoryObserver* each : all_) each->wrote_back(wave, scope);
  }
  void invalidated(const ObservedWave& wave, AccessScope scope) noexcept override {
    for (MemoryObserver* each : all_) each->invalidated(wave, scope);
  }
  void out_of_range(const ObservedAccess& access) noexcept override {
    for (MemoryObserver* each : all_)
      if (each->interests().ranges) each->out_of_range(access);
  }
  void lds_access(const ObservedLdsAccess& access) noexcept override {
    for (MemoryObserver* each : all_)
      if (each->interests().lds) each->lds_access(access);
  }
  void workgroup_started(const ObservedWorkgroup& group) noexcept override {
    of_order([&](MemoryObserver& each) { each.workgroup_started(group); });
  }
  void workgroup_ended(const ObservedWorkgroup& group) noexcept override {
    of_order([&](MemoryObserver& each) { each.workgroup_ended(group); });
  }
  void barrier(const ObservedWorkgroup& group) noexcept override {
    of_order([&](MemoryObserver& each) { each.barrier(group); });
  }
  void accessed(const ObservedAccess& access) noexcept override {
    of_order([&](MemoryObserver& each) { each.accessed(access); });
  }
  void waited(const ObservedWave& wave, bool vector, bool lds) noexcept override {
    of_order([&](MemoryObserver& each) { each.waited(wave, vector, lds); });
  }
  void invalidated_scalar(const ObservedWave& wave) noexcept override {
    of_order([&](MemoryObserver& each) { each.invalidated_scalar(wave); });
  }
  void arrived(const ObservedWave& wave, unsigned resource) noexcept override {
    of_order([&](MemoryObserver& each) { each.arrived(wave, resource); });
  }
  void passed(const ObservedWave& wave, unsigned resource) noexcept override {
    of_order([&](MemoryObserver& each) { each.passed(wave, resource); });
  }

 private:
  static ObserverInterests interests_of(const std::vector<MemoryObserver*>& all) noexcept {
    ObserverInterests sum;
    for (const MemoryObserver* each : all) {
      sum.lds |= each->interests().lds;
      sum.ranges |= each->interests().ranges;
      sum.order |= each->interests().order;
    }
    return sum;
  }
  template <class Call>
  void of_order(Call call) noexcept {
    for (MemoryObserver* each : all_)
      if (each->interests().order) call(*each);
  }

  const std::vector<MemoryObserver*> all_;
};

}  // namespace uptempo::vgpu
