// Which bytes one dispatch reads and writes, collected while it runs.
//
// Only what fences between dispatches are about: of accesses of the same dispatch to the same byte, which come in no defined order, it is
// known that there were some. A byte that the dispatch wrote before it read it is not counted as read: that was its own value.
//
// Thread safety: the add functions may be called by all workers at once, for_each() when none is adding any more. An add takes no lock
// but the first time that a worker meets a page. A page costs 1.8 KB.
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
  vector,        // loads may be served by the compute unit's L1
  scalar,        // by the scalar L1
  synchronising  // atomics and loads that bypass L1 (GLC): never stale there, and programs order themselves by them
};

class AccessSet {
 public:
  // Told of each page on the worker's thread, ahead of the access.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The dispatch touches the page for the first time.
    virtual void touched(GpuAddress page, bool writes) noexcept = 0;
    // It has read from the page and writes to it for the first time.
    virtual void written(GpuAddress page) noexcept = 0;
  };

  explicit AccessSet(Listener* listener = nullptr);
  ~AccessSet();
  AccessSet(const AccessSet&) = delete;
  AccessSet& operator=(const AccessSet&) = delete;

  // `workgroup`: any number below 2^32 - 1 that tells workgroups apart. The range may cross pages.
  void add_read(GpuAddress address, uint64_t bytes, Path path, uint32_t workgroup) noexcept;
  void add_write(GpuAddress address, uint64_t bytes, Path path, uint32_t workgroup) noexcept;

  // The same for some bytes of one line, which begins at `line`: bit i stands for byte i.
  void add_read_mask(GpuAddress line, uint64_t bytes, Path path, uint32_t workgroup) noexcept;
  void add_write_mask(GpuAddress line, uint64_t bytes, Path path, uint32_t workgroup) noexcept;

  // Memory for a page was refused: something was not recorded.
  bool incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }

  template <typename Visit>  // visit(GpuAddress page, const PageAccesses&)
  void for_each(Visit visit) const {
    for (const auto& [address, page] : pages_) visit(address, page.accesses);
  }
  bool empty() const noexcept { return pages_.empty(); }

 private:
  struct Page {
    PageAccesses accesses;
    std::array<uint32_t, kLinesPerPage> workgroup{};  // that touched the line: +1, or kSeveral
    std::atomic<bool> told_of_write{false};                // the listener
  };
  static constexpr uint32_t kSeveral = ~0u;

  Page* find(GpuAddress page, bool writes) noexcept;
  Page* find_or_add(GpuAddress page, bool writes) noexcept;
  static void touch(Page& page, uint32_t line, uint32_t workgroup) noexcept;
  static void read(Page& page, uint32_t line, uint64_t bytes, Path path,
                   uint32_t workgroup) noexcept;
  static void write(Page& page, uint32_t line, uint64_t bytes, Path path,
                    uint32_t workgroup) noexcept;

  Listener* const listener_;
  const uint64_t serial_;  // tells this set from one that had its address before
  std::mutex mutex_;
  std::unordered_map<GpuAddress, Page> pages_;  // none ever moves
  std::atomic<bool> incomplete_{false};
};

}  // namespace uptempo::vgpu::fences
