// The state of DispatchRaces (dispatch_races.hpp), for its sources.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/races/dispatch_races.hpp"

namespace uptempo::vgpu::races {

inline constexpr GpuAddress kShadowPageBytes = 4096;

// Clocks of the waves of one workgroup, for accesses to global memory and to LDS.
struct Local {
  FarClock::Leaf global{}, lds{};

  void join(const Local& other) noexcept {
    for (unsigned i = 0; i < FarClock::kWaves; ++i) {
      global[i] = std::max(global[i], other.global[i]);
      lds[i] = std::max(lds[i], other.lds[i]);
    }
  }
};

// Runs `action`. Returns false if memory ran out.
template <class Action>
bool with_memory(Action&& action) noexcept {
  try {
    action();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

struct DispatchRaces::Wave {
  Local seen;        // of the own workgroup; own entries are not used
  FarClock far;      // of other workgroups
  FarClock pending;  // becomes known with an invalidation of L1
  // Clocks of accesses from now on, and whether there was one.
  uint32_t now_global = 1, now_lds = 1;
  bool accessed_global = false, accessed_lds = false;
  // Clocks up to which accesses have completed: s_waitcnt; on gfx942 also a write back for the
  // agent.
  uint32_t done_global = 0, done_agent = 0, done_lds = 0;
  uint32_t written_back = 0;  // gfx942
  // It has loaded nothing into L1 since it last invalidated that.
  bool is_clean = false;
  FarClock published;  // what a release to the agent tells
  bool is_published_valid = false;

  // Ends the present interval. Returns the clock of the accesses until now.
  uint32_t end_global() noexcept {
    now_global += accessed_global ? 1 : 0;
    accessed_global = false;
    return now_global - 1;
  }
  uint32_t end_lds() noexcept {
    now_lds += accessed_lds ? 1 : 0;
    accessed_lds = false;
    return now_lds - 1;
  }
};

struct DispatchRaces::Group {
  struct LdsSync {
    Local local;
    FarClock far;
  };

  uint32_t number = 0;
  std::vector<Wave> waves;  // empty once it has ended
  std::vector<Line> lds;
  std::unordered_map<uint32_t, LdsSync> lds_syncs;
  // Guards `seen` and `far` of its waves where other workgroups may look at them, and `last`.
  std::mutex mutex;
  std::pair<FarClock::Leaf, FarClock> last;  // what its waves knew when it ended
};

struct DispatchRaces::At {
  Group& group;
  Wave& wave;
  uint32_t index;  // in the workgroup

  uint32_t number() const noexcept { return group.number << Stamp::kWaveBits | index; }
  bool knows(const Stamp& earlier) const noexcept {
    if (earlier.group() == group.number)
      return earlier.wave() == index || wave.seen.global[earlier.wave()] >= earlier.clock;
    return wave.far.of(earlier.group(), earlier.wave()) >= earlier.clock;
  }
};

// A release by a wave: clocks up to which its accesses are known by it, to other workgroups and to
// its own one.
struct DispatchRaces::Release {
  uint32_t number = 0;  // of the wave, as in Stamp
  uint32_t agent = 0, global = 0, lds = 0;
};

// What a release tells. Of other waves, it tells what the wave knows now.
struct DispatchRaces::Told {
  Local local;  // for waves of the same workgroup
  FarClock::Leaf leaf{};
  FarClock far, far_to_agent;
};

// A place in global memory through which waves synchronise.
struct DispatchRaces::Sync {
  std::vector<Release> noted;  // to the agent, since the last acquire
  FarClock released;           // to the agent
  // What the last workgroup that released here has told its own waves.
  uint32_t group = ~0u;
  Local local;
  FarClock far;
};

struct DispatchRaces::Page {
  std::array<Line, kShadowPageBytes / kLineBytes> lines;
};

struct DispatchRaces::Shard {
  std::mutex mutex;
  std::unordered_map<GpuAddress, std::unique_ptr<Page>> pages;
  std::unordered_map<GpuAddress, Sync> syncs;
};

// Access to the lines of global memory. Holds the lock of one shard at a time.
class DispatchRaces::Lines {
 public:
  explicit Lines(DispatchRaces& of) : of_(of) {}
  ~Lines() {
    if (shard_ != nullptr) shard_->mutex.unlock();
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Null: memory does not suffice.
  Line* line(GpuAddress address) {
    const GpuAddress base = address & ~(kShadowPageBytes - 1);
    lock(base);
    if (page_ == nullptr) {
      std::unique_ptr<Page>& page = shard_->pages[base];
      if (page == nullptr) {
        if (!take(sizeof(Page))) return nullptr;
        page = std::make_unique<Page>();
      }
      page_ = page.get();
    }
    return &page_->lines[address % kShadowPageBytes / kLineBytes];
  }
  // Null: there is none, or memory does not suffice.
  Sync* sync(GpuAddress address, bool make) {
    lock(address & ~(kShadowPageBytes - 1));
    const auto found = shard_->syncs.find(address);
    if (found != shard_->syncs.end()) return &found->second;
    if (!make || !take(sizeof(Sync))) return nullptr;
    return &shard_->syncs[address];
  }
  Stamp last_write(GpuAddress address) {
    const Line* const found = line(address);
    return found == nullptr ? Stamp{} : found->last_write(address % kLineBytes);
  }
  // Counts what has been allocated for a line.
  bool take(uint64_t bytes) noexcept {
    if (of_.budget_.take(bytes)) {
      of_.taken_.fetch_add(bytes, std::memory_order_relaxed);  // a count that orders nothing
      return true;
    }
    of_.incomplete_.store(true, std::memory_order_relaxed);
    return false;
  }

 private:
  void lock(GpuAddress base) {
    if (shard_ != nullptr && base == base_) return;
    Shard& wanted = of_.shards_[base / kShadowPageBytes % kShards];
    if (&wanted != shard_) {
      if (shard_ != nullptr) shard_->mutex.unlock();
      shard_ = nullptr;
      wanted.mutex.lock();
      shard_ = &wanted;
    }
    base_ = base;
    page_ = nullptr;
  }

  DispatchRaces& of_;
  Shard* shard_ = nullptr;
  GpuAddress base_ = 0;
  Page* page_ = nullptr;
};

}  // namespace uptempo::vgpu::races
