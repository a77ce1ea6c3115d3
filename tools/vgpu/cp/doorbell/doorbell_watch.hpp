// Blocks until a doorbell is rung.
//
// A doorbell is a plain store into shared memory that does not notify the device. While it has
// work, the command processor polls. When it has none, it write-protects the doorbell pages in the
// program's mapping and sleeps. The first store wakes it, in one of two ways:
//
// - The kernel stops the thread that stores and tells the sleeper (userfaults.hpp), which opens the
//   pages. The thread may run much later, for example when the sleeper gives up its core. So the
//   pages stay open, and the sleeper polls, until the store was seen or kStoreLimitNs have passed
//   (awaits_store()). Otherwise the thread could find them protected again, time after time.
// - The store faults. The handler of SIGSEGV performs it through the device's own mapping and wakes
//   the sleeper, which makes the pages writable again. The store precedes the wake-up, because the
//   sleeper may wake on the core of the thread that rings and must find the doorbell rung. A store
//   that the handler cannot decode (store_instruction.hpp) executes again on a page that has been
//   made writable.
//
// The second way is for recording, and for kernels that refuse the first one. It depends on the
// program: on the action of SIGSEGV that the program sets by a system call, and on the signal mask
// of the thread. DESIGN.md compares their costs.
//
// Cost: an idle device costs nothing. The first doorbell afterwards costs its producer a fault and
// a wake-up.
//
// The handler belongs to device/fault_chain.hpp, which preserves the program's own SIGSEGV action.
// arm() installs it again as the first handler, also for the other clients of that handler.
//
// Recording: a trace needs every doorbell, also one that is overwritten before the processor reads
// it. With record_all() the pages stay protected and the handler notes the value of each store. A
// store that it cannot decode ends the recording.
//
// Holding producers: with hold_producers(), a thread that rings continues only when the device has
// done all that it can do without the host. rested() says so. A thread waits at most until the
// device has made passes without progress for kHoldLimit, or for a minute none at all; then no
// thread waits until the device rests again. All signals of a thread that waits are blocked.
//
// Thread safety: attach(), detach() and wake() from any thread; wake() is async-signal-safe. arm(),
// sleep(), disarm(), awaits_store() and stored() from one thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "cp/doorbell/userfaults.hpp"
#include "device/host/publisher.hpp"
#include "device/waits/host_holder.hpp"

namespace uptempo::vgpu {

class DoorbellWatch final : public HostHolder {
 public:
  // mappings, not 4 KiB pages; ROCT makes one per process and device.
  static constexpr size_t kMaxPages = 16;

  DoorbellWatch();
  ~DoorbellWatch();
  DoorbellWatch(const DoorbellWatch&) = delete;
  DoorbellWatch& operator=(const DoorbellWatch&) = delete;

  // `alias` is the device's own mapping, or equals `program_address`; in the latter case every
  // store executes again. Throws std::runtime_error if the process already has kMaxPages attached
  // mappings.
  void attach(std::byte* program_address, std::byte* alias, size_t size_bytes);

  // detach() makes the mapping writable and removes it. Returns its alias range, or an empty range.
  struct Range {
    const std::byte* begin = nullptr;
    size_t size_bytes = 0;
    bool contains(const void* address) const noexcept {
      const auto* byte = static_cast<const std::byte*>(address);
      return byte >= begin && byte < begin + size_bytes;
    }
  };
  Range detach(std::byte* program_address);

  // Whether a store to the program's view of this slot of the alias would wake sleep().
  bool watches(const void* alias_address) const noexcept;

  // After this call a store to an attached page, or wake(), ends sleep(). While awaits_store(),
  // only wake() does. The caller must check afterwards for doorbells that were rung before.
  void arm();

  // Returns at once if something happened since arm(). A zero timeout means no timeout.
  void sleep(std::chrono::nanoseconds timeout);

  // Makes the pages writable. Cheap if that has already been done.
  void disarm();

  // Whether a thread that was stopped at a page may not have stored yet. The caller must poll.
  bool awaits_store() const noexcept;
  // The caller has found a doorbell rung.
  void stored() noexcept { awaited_until_ns_ = 0; }
  static constexpr uint64_t kStoreLimitNs = 10'000'000;

  void wake() noexcept;
  // Wakes every watch that has an attached page. Async-signal-safe. Call it on a device thread,
  // since no watch outlives those.
  static void wake_all() noexcept;

  // Notes every doorbell from now on, and its caller's stack in `stacks` unless that is null; drain
  // the records with take_record(). Call it before the first attach().
  void record_all(HostStacks* stacks = nullptr) noexcept {
    stacks_ = stacks;
    recording_.store(true, std::memory_order_release);  // release: stacks_ is set
  }
  bool recording() const noexcept { return recording_.load(std::memory_order_acquire); }

  // From now on threads that ring wait for rested(). `unheld` counts the doorbells after which a
  // thread continued too early; it lives at least as long as the watch. Call it after record_all().
  void hold_producers(std::atomic<uint64_t>& unheld) noexcept;
  static constexpr std::chrono::seconds kHoldLimit{2};
  // For a thread that has changed something else that a queue waits for.
  void hold_until_rest() noexcept override;
  // The number of doorbells of held threads so far.
  uint32_t rings() const noexcept { return rings_.load(std::memory_order_seq_cst); }
  // The device has done all that it can do for the first `rings` doorbells.
  void rested(uint32_t rings) noexcept;
  // The device has looked at all queues. Call it from the thread of rested().
  void passed(bool with_progress) noexcept {
    if (unheld_.load(std::memory_order_relaxed) == nullptr) return;
    const auto count = [](std::atomic<uint32_t>& passes) {
      passes.store(passes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    };
    count(passes_);
    if (with_progress) count(beats_);
  }
  // Threads that wait continue, and none waits any more.
  void release_producers() noexcept;

  // The next doorbell in ringing order. A doorbell is noted before its value is stored.
  struct Record {
    const uint64_t* doorbell;  // in the alias
    uint64_t value;
    uint64_t host_ns;
    Publisher publisher;
  };
  std::optional<Record> take_record() noexcept;
  // The records that wait. A thread that rings while kRecords wait yields until one is taken.
  static constexpr uint64_t kRecords = 1024;
  uint64_t records_waiting() const noexcept {
    return std::min(noted_.load(std::memory_order_acquire) -
                        taken_.load(std::memory_order_relaxed),  // by the calling thread
                    kRecords);
  }

 private:
  friend struct DoorbellFault;

  // These require pages_mutex_.
  void protect_pages();
  void open_pages();
  void let_through();  // the threads that are stopped

  struct Slot {
    std::atomic<uint64_t> filled{0};  // index of the record in it, plus 1
    Record record{};
  };
  void note(const Record& record) noexcept;
  uint32_t count_ring() noexcept;
  void hold(uint32_t ring) noexcept;

  Userfaults userfaults_;
  uint64_t awaited_until_ns_ = 0;                        // 0: no thread has been let through
  std::atomic<uint32_t> armed_{0};                       // futex word
  std::atomic<std::atomic<uint64_t>*> unheld_{nullptr};  // null: producers are not held
  std::atomic<uint32_t> rings_{0};
  std::atomic<uint32_t> passes_{0}, beats_{0};  // of the device: all, and those with progress
  std::atomic<uint32_t> rested_{0};  // futex word: doorbells after which the device has rested
  std::atomic<bool> restless_{false};
  HostStacks* stacks_ = nullptr;
  std::atomic<bool> recording_{false};
  std::atomic<uint64_t> noted_{0}, taken_{0};
  std::array<Slot, kRecords> records_;
  // orders attach, detach with arm, disarm; the handler never takes it
  mutable std::mutex pages_mutex_;
};

}  // namespace uptempo::vgpu
