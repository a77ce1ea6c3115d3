// What the host did to watched pages, on its way from the threads that noticed it to the one that judges it.
//
// A bounded queue of many producers and one consumer. Producers are fault handlers and device threads, so push() neither allocates, waits nor
// calls the system; it says when there is no room. The changed bytes of a page travel as one entry and come out as runs.
//
// Order: entries come out in the order in which push() was called; those of one page are pushed under that page's lock. What was pushed before take() was called comes out of
// it: where a thread is held up inside an earlier push(), take() waits for it. Else a doorbell could be judged without the stores that the host made before it rang.
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

// The first byte from `from` on whose bit is `set`; 4096 when there is none.
uint32_t find_byte(const PageMask& mask, uint32_t from, bool set) noexcept;

struct HostEvent {
  enum class Kind : uint8_t {
    read,    // the first load from a page since it was closed to reads
    opened,  // the first store to a page since it was closed: more may follow, up to closed_ns of its `wrote` and `unknown`
    wrote,  // these bytes have other values than when the page was opened, and nobody but the host can have stored them
    unknown  // these bytes may have been stored by the host: they have changed, but a device may have done it, or nobody has looked
  };
  Kind kind = Kind::read;
  GpuAddress address = 0;
  uint32_t bytes = 1;  // never beyond the page; of `read` and `opened` the first byte of the access only
  uint64_t host_ns = 0;    // `read`, `opened`: when. The other two: opened_ns. host_clock_ns()
  uint64_t opened_ns = 0;  // `wrote`, `unknown`: stores came between these two
  uint64_t closed_ns = 0;
};

class HostEventRing {
 public:
  // Room for that many entries, a power of two; some 600 bytes each, taken from the system when first used.
  // Throws std::bad_alloc.
  explicit HostEventRing(size_t entries);
  ~HostEventRing();
  HostEventRing(const HostEventRing&) = delete;
  HostEventRing& operator=(const HostEventRing&) = delete;

  // False: full, nothing was added. `mask` says which bytes of the page at event.address, one at least; null: event.address and event.bytes as they are.
  bool push(const HostEvent& event, const PageMask* mask = nullptr) noexcept;

  // False: nothing there, and nobody inside push(). A mask is taken apart into its runs of set bits.
  bool take(HostEvent& event) noexcept;
  // The same, but a mask in one piece; without one, `mask` has the bits of event.bytes from event.address on. Not between two runs of an entry.
  bool take(HostEvent& event, PageMask& mask) noexcept;

 private:
  struct Entry;
  const Entry* next() const noexcept;  // null: nothing there
  void advance() noexcept;

  const size_t entries_;
  Entry* const ring_;
  alignas(64) std::atomic<uint64_t> tail_{0};  // next to be filled
  alignas(64) uint64_t head_ = 0;              // next to be taken
  uint32_t next_byte_ = 0;                     // of the page that take() is in
};

}  // namespace uptempo::vgpu
