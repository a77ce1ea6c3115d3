// Carries the host's accesses to watched pages from the threads that noticed them to the thread
// that judges them.
//
// A bounded queue with many producers and one consumer. Producers are fault handlers and device
// threads, so push() neither allocates, waits nor makes system calls; it returns false when the
// queue is full. The changed bytes of a page travel as one entry and come out as runs.
//
// Ordering: entries come out in the order in which push() was called. Entries of one page are
// pushed under that page's lock. take() returns everything pushed before it was called: it waits
// for a thread that is delayed inside an earlier push(). Otherwise a doorbell could be judged
// without the stores that the host made before it rang.
// Thread safety: push() from any thread and any handler, take() from one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/memory.hpp"

namespace uptempo::vgpu {

// One bit for each byte of a page, lowest first.
using PageMask = std::array<uint64_t, 64>;

// Returns the first byte at or after `from` whose bit equals `set`; 4096 when there is none.
uint32_t find_byte(const PageMask& mask, uint32_t from, bool set) noexcept;

struct HostEvent {
  enum class Kind : uint8_t {
    read,  // the first load from a page since it was closed to reads
    // The first store to a page since it was closed. More may follow, up to closed_ns of its
    // `wrote` and `unknown`.
    opened,
    // The host loaded a signal that completions had changed. `address`: the signal.
    looked,
    // These bytes differ from when the page was opened, and only the host can have stored them.
    wrote,
    // The host may have stored these bytes: they have changed, but a device may have done it, or
    // the page was not observed.
    unknown
  };
  Kind kind = Kind::read;
  GpuAddress address = 0;
  // Never crosses the page. For `read` and `opened`, only the first byte of the access.
  uint32_t bytes = 1;
  // `read`, `opened`, `looked`: time of the access; else opened_ns. host_clock_ns()
  uint64_t host_ns = 0;
  uint64_t opened_ns = 0;  // `wrote`, `unknown`: the stores happened between these two
  uint64_t closed_ns = 0;
  // `read`, `opened`: the instruction that accessed it, with the thread's Python call
  // (support::code_site()); 0: a system call
  uint64_t site = 0;
  uint64_t thread = 0;  // `read`, `opened`: any number that tells the host's threads apart
};

class HostEventRing {
 public:
  // `entries`: capacity, a power of two. Each takes some 600 bytes, obtained from the system when
  // first used. Throws std::bad_alloc.
  explicit HostEventRing(size_t entries);
  ~HostEventRing();
  HostEventRing(const HostEventRing&) = delete;
  HostEventRing& operator=(const HostEventRing&) = delete;

  // Returns false, without effect, when the queue is full. `mask`: the bytes of the page at
  // event.address, at least one. Null: event.address and event.bytes are complete.
  bool push(const HostEvent& event, const PageMask* mask = nullptr) noexcept;

  // Returns false when the queue is empty and no thread is inside push(). Splits a mask into its
  // runs of set bits.
  bool take(HostEvent& event) noexcept;
  // Like take(event), but returns a mask in one piece. For an event without a mask, `mask` has the
  // bits of event.bytes bytes from event.address on. Must not be called between two runs of an
  // entry.
  bool take(HostEvent& event, PageMask& mask) noexcept;

 private:
  struct Entry;
  const Entry* next() const noexcept;  // null: none
  void advance() noexcept;

  const size_t entries_;
  Entry* const ring_;
  alignas(64) std::atomic<uint64_t> tail_{0};  // next to fill
  alignas(64) uint64_t head_ = 0;              // next to take
  uint32_t next_byte_ = 0;                     // of the page whose runs take() returns
};

}  // namespace uptempo::vgpu
