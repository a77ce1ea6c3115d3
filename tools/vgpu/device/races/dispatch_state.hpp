// The state of DispatchRaces (dispatch_races.hpp), for its sources.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/races/dispatch_races.hpp"
#include "device/races/meter.hpp"
#include "device/races/sync.hpp"

namespace uptempo::vgpu::races {

inline constexpr GpuAddress kShadowPageBytes = 4096;

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
  explicit Wave(Meter& meter) : pending(meter), loads(meter) {}

  Local seen;                   // of the own workgroup; own entries are not used
  FarClock far;                 // of other workgroups
  Pending pending;              // becomes known with an invalidation of L1
  bool shares_pending = false;  // so does what its workgroup shares
  // `seen` and `far`, if it has told others of them.
  Ref<const Known> known;
  bool is_known_valid = true;  // at first, it knows nothing
  bool knows_barrier = false;  // and nothing else since
  FollowedLoads loads;
  // Clocks of accesses from now on, and whether there was one.
  uint32_t now_global = 1, now_lds = 1;
  bool accessed_global = false, accessed_lds = false;
  // Clocks up to which accesses have completed: s_waitcnt; on gfx942 also a write back for the
  // agent.
  uint32_t done_global = 0, done_agent = 0, done_lds = 0;
  uint32_t written_back = 0;  // gfx942
  uint32_t returned = 0;      // of the last atomic update that returns a value
  // It has loaded nothing into L1 since it last invalidated that, or only `loaded_line`.
  bool is_clean = false;
  static constexpr GpuAddress kNoLine = ~GpuAddress{0};
  GpuAddress loaded_line = kNoLine;

  // It loads from this line into L1.
  void load(GpuAddress line) noexcept {
    if (loaded_line == kNoLine) loaded_line = line;
    is_clean = is_clean && loaded_line == line;
  }
  void invalidate() noexcept {
    is_clean = true;
    loaded_line = kNoLine;
  }
  // No other line than that of this address may be stale in L1.
  bool is_clean_but_for(GpuAddress address) const noexcept {
    return is_clean && (loaded_line == kNoLine || loaded_line == address / kLineBytes * kLineBytes);
  }

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
  // It knows more than before. Stores until now do not tell of that.
  void learned() noexcept {
    is_known_valid = false;
    knows_barrier = false;
    end_global();
  }
};

// Before gfx942: stores may be atomic ones, and release. What those of a wave tell that have this
// clock, or a later one up to the next entry.
struct DispatchRaces::Stored {
  uint32_t clock = 0;
  uint32_t done = 0;  // of its own accesses; of later clocks: all before
  Ref<const Known> known;
};

struct DispatchRaces::Group {
  struct LdsSync {
    Local local;
    FarClock far;
  };
  using LdsSyncs = std::unordered_map<uint32_t, LdsSync, std::hash<uint32_t>, std::equal_to<>,
                                      MeterAllocator<std::pair<const uint32_t, LdsSync>>>;
  using StoresOfWave = std::vector<Stored, MeterAllocator<Stored>>;

  Group(uint32_t of, uint32_t count, Meter& meter)
      : number(of),
        waves(count, Wave(meter), MeterAllocator<Wave>(meter)),
        lds(MeterAllocator<Line>(meter)),
        lds_syncs(MeterAllocator<LdsSyncs::value_type>(meter)),
        shared(meter),
        stores(MeterAllocator<StoresOfWave>(meter)) {}

  const uint32_t number;
  std::vector<Wave, MeterAllocator<Wave>> waves;  // empty once it has ended
  std::vector<Line, MeterAllocator<Line>> lds;
  uint64_t lds_parts = 0;    // bytes that these lines have allocated
  bool is_lds_lost = false;  // memory did not suffice
  LdsSyncs lds_syncs;
  Pending shared;               // since the last barrier
  Ref<const Known> at_barrier;  // what its waves knew after the last barrier
  std::vector<StoresOfWave, MeterAllocator<StoresOfWave>> stores;  // empty, or for each wave

  // It has ended: only its stores are of use.
  void end() noexcept {
    free(waves);
    free(lds);
    free(lds_syncs);
    free(shared.places);
    shared.far = {};
    at_barrier = {};
  }

 private:
  template <class Container>
  static void free(Container& container) noexcept {
    Container(container.get_allocator()).swap(container);
  }
};

struct DispatchRaces::At {
  Group& group;
  Wave& wave;
  uint32_t index;  // in the workgroup

  uint32_t number() const noexcept { return group.number << Stamp::kWaveBits | index; }
  // Whether the wave follows that update by its workgroup, which has returned a value: what the
  // updates before it have left.
  bool follows(const Stamp& update) const noexcept {
    if (update.clock == 0 || group.waves[update.wave()].returned != update.clock) return false;
    return update.wave() == index ? update.clock <= wave.done_global : knows(update);
  }
  bool knows(const Stamp& earlier) const noexcept {
    if (earlier.group() == group.number)
      return earlier.wave() == index || wave.seen.global[earlier.wave()] >= earlier.clock;
    return wave.far.of(earlier.group(), earlier.wave()) >= earlier.clock;
  }
};

struct DispatchRaces::Page {
  using LineSyncs = std::array<Sync, kLineBytes / 4>;

  std::array<Line, kShadowPageBytes / kLineBytes> lines;
  std::array<std::unique_ptr<LineSyncs>, kShadowPageBytes / kLineBytes> syncs;
};

struct DispatchRaces::Shard {
  std::mutex mutex;
  std::unordered_map<GpuAddress, std::unique_ptr<Page>> pages;
  uint64_t taken = 0;  // bytes, for the pages and what they contain
};

// Access to the lines of global memory. Holds the lock of one shard at a time.
class DispatchRaces::Lines {
 public:
  explicit Lines(DispatchRaces& of) : of_(of) {}
  ~Lines() { unlock(); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Null: memory does not suffice.
  Line* line(GpuAddress address) {
    const GpuAddress base = address & ~(kShadowPageBytes - 1);
    lock(base);
    if (page_ == nullptr) {
      std::unique_ptr<Page>& page = shard_->pages[base];
      if (page == nullptr) {
        if (!take(sizeof(Page) + kHeapBytes)) return nullptr;
        page = std::make_unique<Page>();
      }
      page_ = page.get();
    }
    return &page_->lines[address % kShadowPageBytes / kLineBytes];
  }
  // The place of a dword in a page that has been accessed. Null: there is none, or memory does not
  // suffice.
  Sync* sync(GpuAddress address, bool make) {
    if (line(address) == nullptr) return nullptr;
    auto& syncs = page_->syncs[address % kShadowPageBytes / kLineBytes];
    if (syncs == nullptr) {
      if (!make || !take(sizeof(Page::LineSyncs) + kHeapBytes)) return nullptr;
      syncs = std::make_unique<Page::LineSyncs>();
    }
    return &(*syncs)[address % kLineBytes / 4];
  }
  Stamp last_write(GpuAddress address) {
    const Line* const found = line(address);
    return found == nullptr ? Stamp{} : found->last_write(address % kLineBytes);
  }
  void unlock() noexcept {
    if (shard_ != nullptr) shard_->mutex.unlock();
    shard_ = nullptr;
  }
  // Counts what has been allocated for a line or a place.
  bool take(uint64_t bytes) noexcept {
    if (!of_.meter_.take(bytes)) {
      of_.lose();
      return false;
    }
    shard_->taken += bytes;
    return true;
  }
  // Counts what `place` has allocated besides `before`.
  template <class Place>
  void take_more(const Place& place, size_t before) noexcept {
    if (place.allocated_bytes() > before) take(place.allocated_bytes() - before);
  }

 private:
  void lock(GpuAddress base) {
    if (shard_ != nullptr && base == base_) return;
    Shard& wanted = of_.shards_[base / kShadowPageBytes % kShards];
    if (&wanted != shard_) {
      unlock();
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
