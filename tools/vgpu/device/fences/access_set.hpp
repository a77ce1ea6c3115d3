// The bytes that one dispatch reads and writes, collected while it runs.
//
// Only what fences between dispatches concern: accesses of one dispatch to the same byte have no
// defined order, so the set records only that they occurred. A byte that the dispatch wrote before
// it read it does not count as read, since it read its own value.
//
// Thread safety: all workers may call the add functions concurrently; for_each() requires that none
// is adding.
// Cost: an add takes a lock only when a worker first accesses a page. A page takes 2 KB.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "device/fences/page_accesses.hpp"

namespace uptempo::vgpu::fences {

// How a read or write was made.
enum class Path : uint8_t {
  vector,  // the compute unit's L1 may serve loads
  scalar,  // the scalar L1 may serve loads
  // atomics, and loads and stores of agent scope or wider. Programs use them for ordering. Loads
  // bypass L1. Stores of gfx942 are written through its L2s; older targets name no scope in stores
  synchronising
};

// The L2s of the workgroups of a dispatch: workgroup n uses L2 (n + first) % count.
struct L2Deal {
  uint32_t count = 1;  // at most 8; 1: not recorded
  uint32_t first = 0;
};

class AccessSet {
 public:
  // Called for each page on the worker's thread, before the access.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The dispatch's first access to the page.
    virtual void touched(GpuAddress page, bool writes) noexcept = 0;
    // The dispatch's first write to a page from which it has read.
    virtual void written(GpuAddress page) noexcept = 0;
  };

  // `l1_line_bytes`: of the vector L1, 64 or 128.
  explicit AccessSet(Listener* listener = nullptr, L2Deal l2s = {},
                     uint32_t l1_line_bytes = kLineBytes);
  ~AccessSet();
  AccessSet(const AccessSet&) = delete;
  AccessSet& operator=(const AccessSet&) = delete;

  // `workgroup`: any number below 2^32 - 1 that identifies the workgroup. The range may cross
  // pages.
  void add_read(GpuAddress address, uint64_t bytes, Path path, uint32_t workgroup) noexcept;
  void add_write(GpuAddress address, uint64_t bytes, Path path, uint32_t workgroup) noexcept;

  // The same for some bytes of the line that begins at `line`: bit i is byte i.
  void add_read_mask(GpuAddress line, uint64_t bytes, Path path, uint32_t workgroup) noexcept;
  void add_write_mask(GpuAddress line, uint64_t bytes, Path path, uint32_t workgroup) noexcept;

  // True if the dispatch has written one of the bytes, which one line holds.
  bool has_written(GpuAddress address, uint32_t bytes) noexcept;
  // True when memory for a page was refused, so some accesses were not recorded.
  bool incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }

  template <typename Visit>  // visit(GpuAddress page, const PageAccesses&)
  void for_each(Visit visit) const {
    for (const auto& [address, page] : pages_) visit(address, page.accesses);
  }
  bool empty() const noexcept { return pages_.empty(); }
  // The writes to pages for which `chosen(page)` holds count as synchronising. Requires that no
  // worker is adding.
  template <typename Chosen>
  void synchronise_writes(Chosen chosen) {
    for (auto& [address, page] : pages_)
      for (uint32_t line = 0; chosen(address) && line < kLinesPerPage; ++line)
        page.accesses.synchronising[line] |= page.accesses.written[line];
  }

 private:
  struct Page {
    PageAccesses accesses;
    // the one that touched the line of the vector L1, + 1; or kSeveral. By the first of its lines
    std::array<uint32_t, kLinesPerPage> workgroup{};
    std::atomic<bool> write_reported{false};  // by the listener
  };
  static constexpr uint32_t kSeveral = ~0u;

  Page* find(GpuAddress page, bool writes) noexcept;
  Page* find_or_add(GpuAddress page, bool writes) noexcept;
  // Returns the bits of the lines that make up a line of the vector L1.
  uint64_t vector_line(uint32_t line) const noexcept { return l1_line_ << (line & l1_first_); }
  void record_l2(uint8_t& l2s, uint32_t workgroup) const noexcept;
  void touch(Page& page, uint32_t line, uint32_t workgroup) const noexcept;
  void read(Page& page, uint32_t line, uint64_t bytes, Path path,
            uint32_t workgroup) const noexcept;
  void write(Page& page, uint32_t line, uint64_t bytes, Path path,
             uint32_t workgroup) const noexcept;

  Listener* const listener_;
  const L2Deal l2s_;
  // A line of the vector L1: a mask that gives the number of its first line, and a bit for each of
  // its lines.
  const uint32_t l1_first_;
  const uint64_t l1_line_;
  const uint64_t serial_;  // distinguishes this set from an earlier one at the same address
  std::mutex mutex_;
  std::unordered_map<GpuAddress, Page> pages_;  // node-based: pages never move
  std::atomic<bool> incomplete_{false};
};

}  // namespace uptempo::vgpu::fences
