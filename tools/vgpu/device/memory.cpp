#include "device/memory.hpp"

#include <sched.h>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <string>

namespace uptempo::vgpu {
namespace {

// map() does not wait for readers. It keeps this many old snapshots, then waits once and frees all.
constexpr size_t kMaxRetiredSnapshots = 32;

std::string range_text(GpuAddress begin, GpuAddress end) {
  char text[64];
  std::snprintf(text, sizeof text, "[0x%llx, 0x%llx)", static_cast<unsigned long long>(begin),
                static_cast<unsigned long long>(end));
  return text;
}

bool begins_after(GpuAddress address, const Mapping& mapping) { return address < mapping.begin; }

}  // namespace

AddressSpace::AddressSpace() : current_(new Snapshot) {}

AddressSpace::~AddressSpace() { delete current_.load(std::memory_order_relaxed); }

void AddressSpace::map(const Mapping& mapping) {
  if (mapping.begin >= mapping.end)
    throw std::invalid_argument("the GPU mapping " + range_text(mapping.begin, mapping.end) +
                                " is empty");
  const std::lock_guard lock(writers_);
  const Snapshot& now = *current_.load(std::memory_order_relaxed);  // writers_ orders writers
  const auto after = std::upper_bound(now.begin(), now.end(), mapping.begin, begins_after);
  const Mapping* clash = nullptr;
  if (after != now.end() && after->begin < mapping.end) clash = &*after;
  if (after != now.begin() && std::prev(after)->end > mapping.begin) clash = &*std::prev(after);
  if (clash != nullptr)
    throw std::invalid_argument("the GPU mapping " + range_text(mapping.begin, mapping.end) +
                                " overlaps " + range_text(clash->begin, clash->end));
  auto next = std::make_unique<Snapshot>();
  next->reserve(now.size() + 1);
  next->insert(next->end(), now.begin(), after);
  next->push_back(mapping);
  next->insert(next->end(), after, now.end());
  publish(std::move(next));
  if (retired_.size() >= kMaxRetiredSnapshots) reclaim();
}

bool AddressSpace::unmap(GpuAddress begin) {
  const std::lock_guard lock(writers_);
  const Snapshot& now = *current_.load(std::memory_order_relaxed);  // writers_ orders writers
  const auto after = std::upper_bound(now.begin(), now.end(), begin, begins_after);
  if (after == now.begin() || std::prev(after)->begin != begin) return false;
  auto next = std::make_unique<Snapshot>();
  next->reserve(now.size() - 1);
  next->insert(next->end(), now.begin(), std::prev(after));
  next->insert(next->end(), after, now.end());
  publish(std::move(next));
  reclaim();
  return true;
}

void AddressSpace::publish(std::unique_ptr<const Snapshot> next) {
  retired_.reserve(retired_.size() + 1);
  // seq_cst: pairs with Reader::enter(). Either the reader sees the new snapshot, or reclaim() sees
  // the reader inside.
  const Snapshot* previous = current_.exchange(next.release(), std::memory_order_seq_cst);
  retired_.emplace_back(previous);
  // release, after the snapshot: a thread that reads this number also sees the new map.
  generation_.fetch_add(1, std::memory_order_release);
}

void AddressSpace::reclaim() {
  {
    const std::lock_guard lock(readers_mutex_);
    for (const Reader* reader : readers_) {
      const uint64_t seen = reader->inside_.load(std::memory_order_seq_cst);
      if (seen % 2 == 0) continue;
      // acquire: the reader's accesses in its section happen before the caller's munmap().
      for (int turn = 0; reader->inside_.load(std::memory_order_acquire) == seen; ++turn) {
        if (turn < 64) {
          sched_yield();
        } else {
          const timespec pause{0, 50'000};
          nanosleep(&pause, nullptr);
        }
      }
    }
  }
  retired_.clear();
}

AddressSpace::Reader::Reader(AddressSpace& space) : space_(space) {
  const std::lock_guard lock(space_.readers_mutex_);
  space_.readers_.push_back(this);
}

AddressSpace::Reader::~Reader() {
  const std::lock_guard lock(space_.readers_mutex_);
  std::erase(space_.readers_, this);
}

void AddressSpace::Reader::enter() noexcept {
  // seq_cst: the store must be visible before the snapshot is read (see publish()). Only this
  // thread writes inside_.
  inside_.store(inside_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  snapshot_ = space_.current_.load(std::memory_order_seq_cst);
  last_ = nullptr;
}

void AddressSpace::Reader::leave() noexcept {
  snapshot_ = nullptr;
  last_ = nullptr;
  // release: accesses of this section happen before reclaim() sees that it has ended.
  inside_.store(inside_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

const Mapping* AddressSpace::Reader::search(GpuAddress address) noexcept {
  for (;;) {
    const auto after =
        std::upper_bound(snapshot_->begin(), snapshot_->end(), address, begins_after);
    if (after != snapshot_->begin() && address < std::prev(after)->end)
      return last_ = &*std::prev(after);
    // A packet published during this section may use memory that was mapped during it. The older
    // snapshot lives until leave(), because every reclaim() waits for that.
    const Snapshot* latest = space_.current_.load(std::memory_order_seq_cst);
    if (latest == snapshot_) return nullptr;
    snapshot_ = latest;
  }
}

}  // namespace uptempo::vgpu
