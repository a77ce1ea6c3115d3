// What the host does to memory that the device uses too, observed by page protection. Exists only in check mode.
//
// A watched page has two mappings: the program's, whose protection is changed here, and the device's, which is never protected. Its states:
//
//   open      the program may load and store
//   readable  a store faults
//   closed    every access faults
//
// Every page begins open. close() is called when a dispatch or a copy first touches a page; from then on the host's first load is an event
// (`read`), and its first store is one (`opened`), which takes a copy of the page, its twin, and opens it. The next close() compares the page with its
// twin: the bytes that differ were stored between the two (`wrote`). So stores are known by what they changed and by an interval of time, loads by the first
// one only: that is what a page fault can tell.
//
// What is not known is said to be unknown and never guessed:
// * Before the first close() of a page nobody looks: no event.
// * Changes while another dispatch or copy was using the page, or of bytes that device_wrote() says one has stored while it was open: `unknown`.
// * A page that cannot be watched any longer is open for good, and close() returns false for it from then on. It is counted by unwatched() or,
//   where the reason is that take() did not keep up, by lost(). The other reasons: it faults too often (kFloodFaults within kFloodWindowNs, say a signal
//   that the host stores to all the time), the kernel refuses to split mappings further (then all pages of that buffer), or unwatch().
// * A store of the value that was there, loads after the first, and any access to an open page before its next close(), leave no trace.
//
// System calls do not fault on protected pages, they fail. HostAccess opens the pages of a buffer that is handed to the kernel and keeps them
// so during the call.
//
// Processes. A fork child may use the pages that it inherits: its first access opens each, and nothing is recorded.
// The program must not change the protection or the mapping of watched pages itself.
//
// Thread safety: any thread, except take(), which belongs to one. close() and device_wrote() belong to device threads, which must not use the
// program's mapping: they would be taken for the host. Faults are handled on the thread that faults, without allocation; a lock is held
// per page for the time of one mprotect() and one comparison, and never while its holder could fault.
#pragma once

#include <ucontext.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/host_events.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu {

class HostPages {
 public:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kEvents = 16384;
  // 1,000 times a fault and a close, some 16 us together (vgpu_cp_bench), are a sixth of 100 ms for one page.
  static constexpr uint32_t kFloodFaults = 1000;
  static constexpr uint64_t kFloodWindowNs = 100'000'000;

  // Puts the fault handler in place (fault_chain.hpp). One in a process handles its events; tests may have several.
  // `events`: how many may wait for take(), a power of two. Throws std::bad_alloc, std::system_error.
  explicit HostPages(size_t events = kEvents);
  // Opens every page. No other thread may be in a call.
  ~HostPages();
  HostPages(const HostPages&) = delete;
  HostPages& operator=(const HostPages&) = delete;

  // The newest of this process, null when there is none: check mode is off.
  static HostPages* of_process() noexcept { return newest.load(std::memory_order_acquire); }

  enum class Contents {
    unknown,
    zeros
  };  // zeros: the pages held nothing but zeros when the program first got them

  // Watches [begin, begin + bytes), which the program reaches at `program` and the device at `device`: two mappings of the same pages, all three aligned
  // to pages, not overlapping what is watched. `program` null: the host cannot reach it, so there is nothing to observe.
  // Throws std::bad_alloc; then the buffer is not watched.
  void add(GpuAddress begin, std::byte* program, std::byte* device, size_t bytes);
  // Before the pages are unmapped: opens and forgets them. Afterwards no thread is in the handler on their account. Unknown: no effect.
  void remove(GpuAddress begin);

  // A dispatch or a copy is about to touch the page of `address` for the first time. False: not watched, what the host does to it is unknown. True: no store
  // of the host goes unnoticed from here on, and none of its loads if `hide_from_reads`; and the caller has to end this use with device_wrote().
  bool close(GpuAddress address, bool hide_from_reads) noexcept;

  // A dispatch for which close() returned true, without hiding the page from reads, is about to store to it for the first time: from here on no load of the
  // host goes unnoticed either, unless the host has opened the page meanwhile.
  void hide(GpuAddress address) noexcept;

  // A dispatch or a copy has ended, for which close() returned true: it has stored these bytes (null: none) of the page.
  void device_wrote(GpuAddress address, const PageMask* bytes) noexcept;

  // From now on the host's accesses to these pages of the program are not observed.
  void unwatch(const std::byte* program, size_t bytes) noexcept;

  // See HostAccess. Opens the watched pages of the range as far as the access needs and keeps them so until release() of the same range. False: there are
  // none, so nothing to release. errno is kept.
  bool hold(uintptr_t address, size_t bytes, bool write) noexcept;
  void release(uintptr_t address, size_t bytes) noexcept;

  // The next event, if there is one; with `mask`, all changes of a page at once (see HostEventRing).
  bool take(HostEvent& event) noexcept { return events_.take(event); }
  bool take(HostEvent& event, PageMask& mask) noexcept { return events_.take(event, mask); }

  // Pages that are not watched any longer because take() was too slow, and for other reasons.
  uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  uint64_t unwatched() const noexcept { return unwatched_.load(std::memory_order_relaxed); }

  // A client of fault_chain.hpp.
  static bool settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept;

 private:
  struct Page;
  struct Buffer;
  struct Table;
  class PageLock;

  // While one exists, buffers that it can find stay. Async-signal-safe.
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
  bool fault(uintptr_t address, bool write) noexcept;
  // All four: the page's lock is held.
  bool record_access(Buffer& buffer, size_t index, uintptr_t address, bool write) noexcept;
  bool report_changes(Buffer& buffer, size_t index) noexcept;
  bool give_up(Buffer& buffer, size_t index, std::atomic<uint64_t>& counter) noexcept;
  bool set_protection(Buffer& buffer, size_t index, int protection) noexcept;

  void publish(std::unique_ptr<const Table> next);
  void wait_for_sections() noexcept;

  static std::atomic<HostPages*> newest;
  HostPages* older_ = nullptr;

  HostEventRing events_;
  // A page that the kernel empties in a fork child, but not in a vfork child, which shares the protection of all others, too.
  volatile bool* const made_here_;
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> unwatched_{0};

  std::mutex writers_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::atomic<const Table*> table_;
  std::atomic<uint32_t> epoch_{0};
  std::array<std::atomic<uint32_t>, 2> inside_{};
};

// The program hands [address, address + bytes) to a system call, which reads (or, if `write`, may fill) it: like an access to the first byte in each
// watched page. Until the end of its life the kernel may use the pages; stores to them are found by the next close() all the same. Costs one load
// when nothing is watched. errno is kept.
class HostAccess {
 public:
  HostAccess(const void* address, size_t bytes, bool write) noexcept
      : pages_(HostPages::of_process()), address_(reinterpret_cast<uintptr_t>(address)), bytes_(bytes) {
    if (pages_ != nullptr && !pages_->hold(address_, bytes, write)) pages_ = nullptr;
  }
  ~HostAccess() {
    if (pages_ != nullptr) pages_->release(address_, bytes_);
  }
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;

 private:
  HostPages* pages_;  // null: nothing to release
  const uintptr_t address_;
  const size_t bytes_;
};

}  // namespace uptempo::vgpu
