// The memory that --check memory knows: the program's allocations, with one bit for each byte that
// something has stored to, and the driver's buffers, which hold them.
//
// An access must lie in one allocation, so find() answers by page: ROCr rounds every allocation to
// pages of 4 KiB, and hsa_tool.cpp asks it for a redzone behind each.
//
// Thread safety: find(), check() and mark() from any thread, without a lock. Everything else under
// the Checker's lock. Records and bits are reused, but never returned to the system: a thread that
// still uses an old one reads valid memory.
// Cost: two loads for find(). 8 bytes for each page of address space, and an eighth of the bytes of
// device memory that is used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/host/host_stacks.hpp"
#include "device/memory.hpp"

namespace uptempo::vgpu::memory_check {

inline constexpr uint64_t kPageBytes = 4096;

// The judgement of an access to a range of bytes.
enum class Verdict : uint8_t { fine, outside, freed, uninitialised };

// A buffer of the driver.
struct BufferKind {
  uint32_t flags = 0;         // KFD_IOC_ALLOC_MEM_FLAGS_*, for texts
  bool is_undefined = false;  // device memory, whose contents are undefined when it is allocated
  bool host_stores = false;   // the host can store to it
};

struct Allocation {
  enum class Kind : uint8_t { program, driver };
  enum class State : uint8_t {
    live,
    kept,    // freed by the program; HIP still has the memory
    held,    // freed by the program; the memory is in quarantine
    gone,    // freed; the memory may have another use
    divided  // a buffer of the driver in which the program's allocations lie
  };

  // relaxed: find() acquires the record.
  std::atomic<GpuAddress> begin{0};
  std::atomic<uint64_t> bytes{0};                            // as the program asked for them
  std::atomic<uint64_t> accessible{0};                       // `bytes` or, unless live, 0
  std::atomic<std::atomic<uint64_t>*> initialised{nullptr};  // null: all bytes are
  std::atomic<State> state{State::live};
  std::atomic<bool> watched{false};    // the host's stores are observed (host_stores.hpp)
  std::atomic<bool> open{false};       // all its pages are, so nothing is observed any more
  std::atomic<uint64_t> last_user{0};  // the dispatch that accessed it last; 0: none

  Kind kind = Kind::program;
  uint64_t reserved_bytes = 0;  // with the redzone, in whole pages
  uint64_t number = 0;          // in order of allocation, from 1
  std::atomic<HostStackId> allocated{0}, freed{0};
  BufferKind kind_of_memory;
  bool quarantined = true;
  bool given_up = false;  // freed with HIP, or by a reset of its device: no leak

  uint64_t end() const noexcept {
    return begin.load(std::memory_order_relaxed) + bytes.load(std::memory_order_relaxed);
  }
};

// The bits of `bytes` bytes from byte `offset` on.
bool all_initialised(const std::atomic<uint64_t>* words, uint64_t offset, uint64_t bytes) noexcept;
bool any_initialised(const std::atomic<uint64_t>* words, uint64_t offset, uint64_t bytes) noexcept;
void mark_initialised(std::atomic<uint64_t>* words, uint64_t offset, uint64_t bytes) noexcept;
// Gives each byte of the destination the bit of its source. Null `from`: all are set.
void copy_initialised(std::atomic<uint64_t>* to, uint64_t to_offset,
                      const std::atomic<uint64_t>* from, uint64_t from_offset,
                      uint64_t bytes) noexcept;

// Judges an access of one lane, or of several whose bytes are adjacent, in an allocation that
// find() returned.
inline Verdict check(const Allocation& allocation, GpuAddress address, uint64_t bytes,
                     bool reads) noexcept {
  const uint64_t accessible = allocation.accessible.load(std::memory_order_relaxed);
  const uint64_t offset = address - allocation.begin.load(std::memory_order_relaxed);
  if (offset > accessible || bytes > accessible - offset) [[unlikely]]
    return allocation.state.load(std::memory_order_relaxed) == Allocation::State::live ||
                   allocation.state.load(std::memory_order_relaxed) == Allocation::State::divided
               ? Verdict::outside
               : Verdict::freed;
  if (!reads) return Verdict::fine;
  const std::atomic<uint64_t>* const words = allocation.initialised.load(std::memory_order_relaxed);
  return words == nullptr || all_initialised(words, offset, bytes) ? Verdict::fine
                                                                   : Verdict::uninitialised;
}

// Call it for a write that check() found fine.
inline void mark(Allocation& allocation, GpuAddress address, uint64_t bytes) noexcept {
  std::atomic<uint64_t>* const words = allocation.initialised.load(std::memory_order_relaxed);
  if (words != nullptr)
    mark_initialised(words, address - allocation.begin.load(std::memory_order_relaxed), bytes);
}

class AllocationMap {
 public:
  AllocationMap();
  ~AllocationMap();
  AllocationMap(const AllocationMap&) = delete;
  AllocationMap& operator=(const AllocationMap&) = delete;

  // The allocation or the driver's buffer whose pages hold the address; null: none ever had it.
  Allocation* find(GpuAddress address) const noexcept {
    const uint64_t page = address / kPageBytes;
    if (page >= kPages) return nullptr;
    const Leaf* const leaf = root_[page / kLeafPages].load(std::memory_order_acquire);
    // acquire: the record's contents
    return leaf == nullptr ? nullptr : (*leaf)[page % kLeafPages].load(std::memory_order_acquire);
  }

  // Requires whole pages. Throws std::bad_alloc, without effect.
  void assign(GpuAddress begin, uint64_t bytes, Allocation* allocation);
  // Replaces `before` by `after`, where the pages have it.
  void exchange(GpuAddress begin, uint64_t bytes, const Allocation* before,
                Allocation* after) noexcept;

  // A record whose bits are clear. `tracked_bytes` 0: all bytes count as initialised. Throws
  // std::bad_alloc.
  Allocation& make(uint64_t tracked_bytes);
  // All bytes count as initialised from now on. Call it before `bytes` changes.
  void drop_bits(Allocation& allocation) noexcept;
  // Nothing finds the record any more.
  void recycle(Allocation& allocation) noexcept;

 private:
  static constexpr uint64_t kPages = uint64_t{1} << 35;      // 47 bits of address
  static constexpr uint64_t kLeafPages = uint64_t{1} << 18;  // 1 GiB of address space, 2 MiB
  using Leaf = std::array<std::atomic<Allocation*>, kLeafPages>;

  template <typename Visit>
  void for_slots(GpuAddress begin, uint64_t bytes, Visit visit) noexcept;
  std::atomic<uint64_t>* take_words(size_t size_class);

  std::atomic<Leaf*>* const root_;
  std::vector<std::unique_ptr<Allocation>> records_;
  std::vector<Allocation*> unused_;
  // Bits in blocks of 64 << size class bytes, so that a block serves again as the same.
  static constexpr size_t kSizeClasses = 48;
  std::array<std::vector<std::atomic<uint64_t>*>, kSizeClasses> free_words_;
  std::vector<std::pair<void*, size_t>> mapped_;
  std::byte* chunk_ = nullptr;
  size_t chunk_left_ = 0;
};

}  // namespace uptempo::vgpu::memory_check
