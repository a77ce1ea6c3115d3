// Observes by page protection what the host does to memory that the device also uses. Exists only
// in check mode.
//
// A watched page has two mappings: the program's, whose protection changes here, and the device's,
// which is never protected. Its states:
//
//   open      the program may load and store
//   readable  a store faults
//   closed    every access faults
//
// Every page begins open. The device calls close() when a dispatch or copy first touches the page.
// After that, the host's first load produces a `read` event. The host's first store produces an
// `opened` event, copies the page to its twin and opens the page. The next close() compares page
// and twin: the bytes that differ were stored between the two (`wrote`). So stores are known by
// their changes and by a time interval, and only the first load is known: page faults show no more.
//
// Not observed, and reported as unknown:
// * Before the first close() of a page: no event.
// * Changes while another dispatch or copy used the page, or of bytes that device_wrote() reports
//   as stored while the page was open: `unknown`.
// * A page that can no longer be watched stays open, and close() returns false for it. lost()
//   counts it if take() did not keep up, unwatched() for all other reasons: it faults too often
//   (kFloodFaults within kFloodWindowNs, for example a signal to which the host keeps storing), the
//   kernel refuses to split mappings further (all pages of that buffer), or unwatch().
// * A store of the present value, loads after the first, and accesses to an open page before its
//   next close() leave no trace.
//
// Signals whose changes must be noticed (watch_signal(), waits/README.md) have a fourth state:
//
//   signals   every access faults and executes on the device's mapping, one instruction at a time,
//             while a completion of a signal in the page has not been looked at, or a queue waits
//             for one; else open
//
// The first load from a completed signal produces a `looked` event. A thread that stores to an
// awaited signal is held until the device rests. Data in the page is not observed.
//
// System calls fail on protected pages instead of faulting. HostAccess opens the pages of a buffer
// passed to the kernel and keeps them open during the call.
//
// Processes: a fork child may use the pages that it inherits. Its first access opens each page, and
// nothing is recorded.
// Restriction: the program must not change the protection or the mapping of watched pages itself.
// Thread safety: any thread, except take(), which one thread calls. Device threads call close() and
// device_wrote(); they must not use the program's mapping, since they would be mistaken for the
// host. The faulting thread handles its fault without allocation. A lock per page is held for one
// mprotect() and one comparison, and never while its holder could fault.
#pragma once

#include <ucontext.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/bar/lazy_bar.hpp"
#include "device/host/host_events.hpp"
#include "device/host/host_observer.hpp"
#include "device/memory.hpp"
#include "device/memory_check/host_stores.hpp"
#include "device/waits/host_holder.hpp"

namespace uptempo::vgpu {

struct SteppedAccess;

class HostPages {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kEvents = 16384;
  // 1,000 faults and closes, some 16 us each pair (vgpu_cp_bench), take a sixth of 100 ms for one
  // page.
  static constexpr uint32_t kFloodFaults = 1000;
  static constexpr uint64_t kFloodWindowNs = 100'000'000;

  // Installs the fault handler (fault_chain.hpp). One instance handles a process's faults; tests
  // may create several. `events`: how many may wait for take(), a power of two. Tests choose the
  // window. Throws std::bad_alloc, std::system_error.
  explicit HostPages(size_t events = kEvents, uint64_t flood_window_ns = kFloodWindowNs);
  // Opens every page. Requires that no other thread is in a call.
  ~HostPages();
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  // The newest instance of this process; null when check mode is off.
  static HostPages* of_process() noexcept { return newest.load(std::memory_order_acquire); }

  enum class Contents {
    unknown,
    zeros
  };  // zeros: the pages contained only zeros when the program first received them

  // Watches [begin, begin + bytes), which the program accesses at `program` and the device at
  // `device`: two mappings of the same pages. All three addresses are page-aligned and the range
  // overlaps no watched one. With `program` null the host cannot access the memory, so nothing is
  // observed. Throws std::bad_alloc; the buffer is then not watched.
  void add(GpuAddress begin, std::byte* program, std::byte* device, size_t bytes);
  // Opens and forgets the buffer's pages; call it before they are unmapped. When it returns, no
  // thread uses them in the handler. No effect for an unknown address.
  void remove(GpuAddress begin);

  // A dispatch or copy is about to touch the page of `address` for the first time. Returns false
  // when the page is not watched: host accesses to it are unknown. Returns true when every later
  // host store is noticed, with `hide_from_reads` every later load too. The caller must then end
  // this use with device_wrote().
  bool close(GpuAddress address, bool hide_from_reads) noexcept;

  // A dispatch for which close() returned true without hiding the page from reads is about to store
  // to the page for the first time. Later host loads are noticed too, unless the host has opened
  // the page in the meantime.
  void hide(GpuAddress address) noexcept;

  // A dispatch or copy for which close() returned true has ended. It has stored `bytes` (null:
  // none) of the page.
  void device_wrote(GpuAddress address, const PageMask* bytes) noexcept;

  // Stops observing the host's accesses to these pages of the program.
  void unwatch(const std::byte* program, size_t bytes) noexcept;

  // A completion is about to change the signal at this address. The next load of it by the host
  // produces a `looked` event, after which the host is not observed until the next call. Returns
  // false when that load cannot be noticed. Not for signals that cross a line of 64 bytes.
  bool watch_signal(GpuAddress address) noexcept;
  // A queue begins or ceases to wait for the signal at this address. In between, a thread of the
  // program that stores to it is held afterwards. No effect where stores cannot be noticed.
  void await_signal(GpuAddress address, bool awaited) noexcept;
  // Null: no thread is held. The holder lives until the next call, and longer if a thread that
  // stores to signals may still use it.
  void hold_by(HostHolder* holder) noexcept { holder_.store(holder, std::memory_order_release); }
  // Whether a `looked` event was lost. From then on watch_signal() returns false.
  bool misses_looks() const noexcept { return misses_looks_.load(std::memory_order_acquire); }

  // For HostAccess. Opens the watched pages of the range as far as the access needs, and keeps them
  // open until release() of the same range. Returns false when the range has no watched pages, so
  // there is nothing to release. Preserves errno.
  bool hold(uintptr_t address, size_t bytes, bool write) noexcept;
  void release(uintptr_t address, size_t bytes) noexcept;

  // Null: nothing takes the events. The observer lives until the next call, and longer while a
  // thread is in catch_up().
  void observe_by(HostObserver* observer) noexcept {
    observer_.store(observer, std::memory_order_release);
  }
  // Returns when the observer has judged all accesses of the host before this call, or after its
  // limit. Call it before the program ends, and before memory is unmapped, since accesses are else
  // judged with the next packet. Async-signal-safe.
  void catch_up() noexcept {
    if (HostObserver* const observer = observer_.load(std::memory_order_acquire))
      observer->catch_up();
  }

  // Takes the next event, if any. With `mask`, takes all changes of a page at once (HostEventRing).
  bool take(HostEvent& event) noexcept { return events_.take(event); }
  bool take(HostEvent& event, PageMask& mask) noexcept { return events_.take(event, mask); }

  // Pages no longer watched: because take() was too slow, and for other reasons.
  uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  uint64_t unwatched() const noexcept { return unwatched_.load(std::memory_order_relaxed); }

  // What the check of host waits could not observe.
  struct Waits {
    std::atomic<uint64_t> completions{0};  // of signals that are not watched
    std::atomic<uint64_t> pages{0};        // of signals, opened for an unknown instruction
    std::atomic<uint64_t> doorbells{0};    // after which the host continued while packets ran
  };
  Waits waits;
  // The same as sentences for the report; none for a count of 0.
  std::vector<std::string> unobserved_waits() const;

  // The client of fault_chain.hpp.
  static bool settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept;

 private:
  struct Page;
  struct Buffer;
  struct Table;
  class PageLock;

  // Keeps alive the buffers in the table that it holds. Async-signal-safe.
  class Section {
   public:
    explicit Section(HostPages& pages) noexcept;
    ~Section();
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    std::atomic<uint32_t>& inside_;

   public:
    const Table& table;
  };

  static bool is_inherited(const HostPages& pages) noexcept;
  bool open_inherited(uintptr_t address, size_t bytes) noexcept;
  bool fault(uintptr_t address, bool write, ucontext_t& context) noexcept;
  // These nine require the page's lock. A `site` of 0 is a system call.
  bool record_access(Buffer& buffer, size_t index, uintptr_t address, bool write,
                     uint64_t site) noexcept;
  bool step_over_signal(Buffer& buffer, size_t index, uintptr_t address, bool write,
                        ucontext_t& context) noexcept;
  void look_at(Page& page, GpuAddress signal) noexcept;
  bool shut_signals(Buffer& buffer, size_t index) noexcept;
  bool open_signals(Buffer& buffer, size_t index) noexcept;
  void report_look(GpuAddress signal) noexcept;
  // Returns whether the thread must be held.
  bool ended_step(const SteppedAccess& stepped) noexcept;
  template <class Use>
  bool with_signal_page(GpuAddress address, Use use) noexcept;
  static void hold_host() noexcept;
  bool report_changes(Buffer& buffer, size_t index) noexcept;
  bool give_up(Buffer& buffer, size_t index, std::atomic<uint64_t>& counter) noexcept;
  bool set_protection(Buffer& buffer, size_t index, int protection) noexcept;

  void publish(std::unique_ptr<const Table> next);
  void wait_for_sections() noexcept;

  static std::atomic<HostPages*> newest;
  HostPages* older_ = nullptr;

  HostEventRing events_;
  const uint64_t flood_window_ns_;
  // A page that the kernel empties in a fork child, but not in a vfork child, which also shares the
  // protection of all other pages.
  volatile bool* const made_here_;
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> unwatched_{0};
  std::atomic<bool> misses_looks_{false};
  std::atomic<bool> steps_{false};  // the handler receives traps
  std::atomic<HostHolder*> holder_{nullptr};
  std::atomic<HostObserver*> observer_{nullptr};

  std::mutex writers_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::atomic<const Table*> table_;
  std::atomic<uint32_t> epoch_{0};
  std::array<std::atomic<uint32_t>, 2> inside_{};
};

// Opens [address, address + bytes) for a system call that reads it or, with `write`, may fill it.
// Counts as an access to the first byte in each watched page. The kernel may use the pages for the
// lifetime of this object; the next close() still finds stores to them. Cost: one load when nothing
// is watched. Preserves errno.
class HostAccess {
 public:
  HostAccess(const void* address, size_t bytes, bool write) noexcept
      : pages_(HostPages::of_process()),
        bar_(LazyBar::of_process()),
        address_(reinterpret_cast<uintptr_t>(address)),
        bytes_(bytes) {
    if (bar_ != nullptr && !bar_->hold(address_, bytes)) bar_ = nullptr;
    if (pages_ != nullptr && !pages_->hold(address_, bytes, write)) pages_ = nullptr;
    if (auto* const stores = memory_check::HostStores::of_process(); stores != nullptr && write)
      stores->stored(address_, bytes);
  }
  ~HostAccess() {
    if (bar_ != nullptr) bar_->release(address_, bytes_);
    if (pages_ != nullptr) pages_->release(address_, bytes_);
  }
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;

 private:
  HostPages* pages_;  // null: nothing to release
  LazyBar* bar_;      // likewise
  const uintptr_t address_;
  const size_t bytes_;
};

}  // namespace uptempo::vgpu
