// Sleeping until a doorbell is rung.
//
// A doorbell is a plain store into shared memory: nothing tells the device about it. While there is work the command processor polls. When there is
// none it takes write permission from the doorbell pages in the program's mapping and sleeps; the first store faults, the fault handler carries
// it out through the device's own mapping and wakes the sleeper, which gives permission back. The store comes before the wake-up because the
// sleeper may be woken on the very core of the thread that rings, and must find the doorbell rung. A store that the handler cannot decode
// (store_instruction.hpp) is executed again on a page that has been made writable. An idle device costs nothing; the first doorbell
// afterwards costs its producer a fault and a futex wake-up.
//
// The handler is device/fault_chain.hpp's, which looks after the program's own SIGSEGV action; arm() puts it back in front.
//
// Recording. For a trace every doorbell counts, also one that is overwritten before anybody has looked. With record_all() the pages stay protected,
// and the handler notes each store's value. A store that it cannot decode ends the recording.
//
// Thread safety: attach(), detach() and wake() from any thread; wake() is async-signal-safe. arm(), sleep() and disarm() belong to one thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace uptempo::vgpu {

class DoorbellWatch {
 public:
  static constexpr size_t kMaxPages =
      16;  // mappings, not 4 KiB pages; ROCT makes one per process and device

  DoorbellWatch();
  ~DoorbellWatch();
  DoorbellWatch(const DoorbellWatch&) = delete;
  DoorbellWatch& operator=(const DoorbellWatch&) = delete;

  // The alias is the device's own mapping, or the program's address again: then every store is executed again instead of being carried out.
  // Throws std::runtime_error when kMaxPages are attached already in the process.
  void attach(std::byte* program_address, std::byte* alias, size_t size_bytes);

  // The mapping is writable again and forgotten when this returns. Returns its alias range, or an empty one.
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

  // From here on a store to an attached page, or wake(), ends sleep(). Doorbells rung before this call must be looked for after it.
  void arm();

  // Returns at once if something happened since arm(). A timeout of zero means: none.
  void sleep(std::chrono::nanoseconds timeout);

  // Gives write permission back. Cheap when the handler has done so.
  void disarm();

  void wake() noexcept;
  // Every watch that has an attached page. Async-signal-safe; on a device thread, which no watch outlives.
  static void wake_all() noexcept;

  // From now on every doorbell is noted; drain with take_record(). Before the first attach().
  void record_all() noexcept { recording_.store(true, std::memory_order_relaxed); }
  bool recording() const noexcept { return recording_.load(std::memory_order_acquire); }

  // The next doorbell in the order in which they were rung. A doorbell is noted before its value is stored.
  struct Record {
    const uint64_t* doorbell;  // in the alias
    uint64_t value;
    uint64_t host_ns;
  };
  std::optional<Record> take_record() noexcept;

 private:
  friend struct DoorbellFault;

  void protect_pages();  // pages_mutex_ held

  static constexpr uint64_t kRecords = 1024;
  struct Slot {
    std::atomic<uint64_t> filled{0};  // index of the record in it, plus 1
    Record record{};
  };
  void note(const Record& record) noexcept;

  std::atomic<uint32_t> armed_{0};  // futex word
  std::atomic<bool> recording_{false};
  std::atomic<uint64_t> noted_{0}, taken_{0};
  std::array<Slot, kRecords> records_;
  mutable std::mutex pages_mutex_;  // attach, detach against arm, disarm; never taken by the handler
};

}  // namespace uptempo::vgpu
