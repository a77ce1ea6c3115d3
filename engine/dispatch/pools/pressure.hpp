// How full the finite things of a queue are, with two thresholds: for programs that slow down before they have to wait.
//
//   Queue queue{gpu, {.marks = {.kernarg_slabs = {.high_per_cent = 80, .low_per_cent = 40}}}};
//   ...
//   if (queue.pressure().high()) stop_accepting();          // until it is not high any more
//
// A level is high from the moment when its high mark was reached until it has fallen to its low mark: in between it is what it was, so that a program
// which stops and starts on it does so in long strokes. Every taking and giving back is seen, also between two looks. Only the ring,
// which the device empties by itself, is looked at when pressure() is asked and when a submission has found too little room.
//
// Giving back happens at submissions and at Queue::reclaim(): without those a level stays as it is.
//
// Thread safety: pressure() from any thread. It makes no call, no allocation and takes no lock; each number is recent, and they are not one moment's.
#pragma once

#include <atomic>
#include <cstdint>

namespace uptempo {

// In per cent of the capacity; low <= high <= 100, and high is not 0. A high mark of 100 is reached when nothing is left.
struct WaterMarks {
  uint32_t high_per_cent = 75;
  uint32_t low_per_cent = 50;
  friend bool operator==(const WaterMarks&, const WaterMarks&) = default;
};

struct QueueMarks {
  WaterMarks ring{}, publications{}, signals{}, timing_signals{}, kernarg_slabs{};
};

struct Level {
  uint32_t capacity = 0;  // 0: there is none of it
  uint32_t in_use = 0;
  uint32_t peak = 0;  // most in use at a time
  bool high = false;

  uint32_t free() const noexcept { return capacity - in_use; }
};

struct Pressure {
  Level ring;            // packets
  Level publications;    // unfinished, or not yet reclaimed
  Level signals;         // for completion; the event-less ones where there are no others
  Level timing_signals;  // event-less
  Level kernarg_slabs;

  // Any of them.
  bool high() const noexcept {
    return ring.high || publications.high || signals.high || timing_signals.high || kernarg_slabs.high;
  }
};

namespace detail {

// One level. One writer at a time; any thread may read.
class Gauge {
 public:
  // In set-up, before any other function. Rounded so that marks are never nearer to each other than was asked for.
  void start(uint32_t capacity, WaterMarks marks) noexcept {
    capacity_ = capacity;
    high_mark_ = static_cast<uint32_t>((uint64_t{capacity} * marks.high_per_cent + 99) / 100);
    low_mark_ = static_cast<uint32_t>(uint64_t{capacity} * marks.low_per_cent / 100);
  }

  // Stores, not atomic additions: there is one writer. Relaxed: readers want a number.
  void set(uint32_t in_use) noexcept {
    in_use_.store(in_use, std::memory_order_relaxed);
    if (in_use > peak_.load(std::memory_order_relaxed)) peak_.store(in_use, std::memory_order_relaxed);
    if (in_use >= high_mark_) {
      high_.store(capacity_ != 0, std::memory_order_relaxed);
    } else if (in_use <= low_mark_) {
      high_.store(false, std::memory_order_relaxed);
    }
  }
  uint32_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }
  Level level() const noexcept {
    return {.capacity = capacity_,
            .in_use = in_use(),
            .peak = peak_.load(std::memory_order_relaxed),
            .high = high_.load(std::memory_order_relaxed)};
  }

 private:
  uint32_t capacity_ = 0;
  uint32_t high_mark_ = 0;
  uint32_t low_mark_ = 0;
  std::atomic<uint32_t> in_use_{0}, peak_{0};
  std::atomic<bool> high_{false};
};

}  // namespace detail
}  // namespace uptempo
