// The race detector for one dispatch: it sees every access of its waves, and what orders them.
//
// README.md has the rules. A wave is a thread. Its clock counts the points at which what it has
// done may become known to others. A wave knows clocks of the waves of its own workgroup (`seen`)
// and of other ones (`far`). Clocks of other workgroups that it has learned, without an
// invalidation of its caches since, are `pending`.
//
// Thread safety: as MemoryObserver. take_findings() when all workgroups have ended.
// Cost: 7 KiB for each 4 KiB of global memory that the dispatch accesses, or more where the waves
// access it in small parts; 0.6 KiB for each line of it that atomics access, and 8 to 16 bytes for
// each release there; 100 bytes for each line of LDS of a running workgroup.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "device/observer.hpp"
#include "device/races/expected_loads.hpp"
#include "device/races/far_clock.hpp"
#include "device/races/finding.hpp"
#include "device/races/meter.hpp"
#include "device/races/shadow.hpp"
#include "device/races/sync.hpp"

namespace uptempo::vgpu::races {

struct DispatchShape {
  std::array<uint32_t, 3> workgroups{1, 1, 1};
  GpuAddress entry = 0;  // of the kernel's code
  // The scratch, whose accesses are private.
  GpuAddress scratch_begin = 0, scratch_end = 0;
  // gfx942: loads and stores name their scope. Before, an atomic store is the same instruction as
  // a plain one.
  bool stores_name_scope = false;
};

class DispatchRaces final : public MemoryObserver {
 public:
  DispatchRaces(const DispatchShape& shape, Budget& budget);
  ~DispatchRaces() override;
  DispatchRaces(const DispatchRaces&) = delete;
  DispatchRaces& operator=(const DispatchRaces&) = delete;

  void access(const ObservedAccess& access) noexcept override;
  void accessed(const ObservedAccess& access) noexcept override;
  void lds_access(const ObservedLdsAccess& access) noexcept override;
  void wrote_back(const ObservedWave& wave, AccessScope scope) noexcept override;
  void workgroup_started(const ObservedWorkgroup& group) noexcept override;
  void workgroup_ended(const ObservedWorkgroup& group) noexcept override;
  void barrier(const ObservedWorkgroup& group) noexcept override;
  void waited(const ObservedWave& wave, bool vector, bool lds) noexcept override;
  void invalidated(const ObservedWave& wave, AccessScope scope) noexcept override;
  void arrived(const ObservedWave& wave, unsigned resource) noexcept override;
  void passed(const ObservedWave& wave, unsigned resource) noexcept override;

  // One for each pair of instructions, in the order of their addresses.
  std::vector<Finding> take_findings();
  // Whether memory did not suffice to record all accesses.
  bool is_incomplete() const noexcept {
    return incomplete_.load(std::memory_order_relaxed);  // a flag that orders nothing
  }

 private:
  struct Group;
  struct Wave;
  struct Stored;
  struct Shard;
  struct Page;
  struct At;  // a wave, and its workgroup
  class Lines;
  struct Race {
    Stamp earlier;
    uint64_t line = 0, bytes = 0;
    bool may_be_atomic = false, same_values = false;  // as in Finding
  };

  uint32_t number_of(const std::array<uint32_t, 3>& id) const noexcept;
  std::array<uint32_t, 3> id_of(uint32_t group) const noexcept;
  // Null: it has not started, or memory did not suffice.
  Group* group_of(uint32_t number) const noexcept;
  At at(const std::array<uint32_t, 3>& group, uint32_t wave);
  void drop(Group* group) noexcept;
  void drop_shadow() noexcept;

  void record(const ObservedAccess& access);
  void record(const ObservedLdsAccess& access);
  void synchronise_in_lds(const At& at, const ObservedLdsAccess& access);
  // Calls visit(lines, address) once for each place that an access may synchronise on.
  template <class Visit>
  void for_places(const ObservedAccess& access, Visit visit);
  bool is_scratch(GpuAddress address) const noexcept {
    return address >= shape_.scratch_begin && address < shape_.scratch_end;
  }
  void lose() noexcept {
    incomplete_.store(true, std::memory_order_relaxed);  // a flag that orders nothing
  }

  const Ref<const Known>& known_by(const At& at);
  Ref<const Release> release_of(const At& at, bool to_agent);
  void note_store(const At& at);
  Ref<const Release> release_of(const Stamp& store);
  void acquire(const At& at, Lines& lines, GpuAddress address);
  void acquire_store(const At& at, const Stamp& store);
  void join_places(Pending& pending);
  void learn(const At& at, const FarClock& told);
  void learn_pending(const At& at);

  bool is_any_store(const Stamp& stamp) const noexcept;
  bool compatible(const Stamp& one, const Stamp& other) const noexcept;
  Finding::Reason reason_of(const At& at, const Stamp& earlier, const Stamp& stamp) const noexcept;
  Finding::Side side(const Stamp& stamp) const noexcept;
  void add(const At& at, const Race& race, const Stamp& stamp, bool lds) noexcept;

  static constexpr size_t kShards = 64;

  const DispatchShape shape_;
  const uint64_t count_;  // of workgroups
  Meter meter_;           // outlives all that follows
  std::atomic<bool> incomplete_{false};
  std::atomic<Group*>* const groups_;  // [count_]; null: there are too many
  // Guard the stores of workgroups, and the life of those that have ended.
  std::array<std::mutex, kShards> group_mutexes_;
  std::unique_ptr<Shard[]> shards_;
  std::mutex gws_mutex_;
  std::map<unsigned, FarClock> gws_;  // what has arrived at a global barrier
  ExpectedLoads expected_loads_;
  std::mutex findings_mutex_;
  // By LDS, the two instructions and same_values.
  std::map<std::tuple<bool, GpuAddress, GpuAddress, bool>, Finding> findings_;
};

}  // namespace uptempo::vgpu::races
