// Which bytes one dispatch reads and writes, collected while it runs.
//
// Only what fences between dispatches are about: of accesses of the same dispatch to the same byte, which come in no defined order, it is
// known that there were some. A byte that the dispatch wrote before it read it is not counted as read: that was its own value.
//
// Thread safety: the add functions may be called by all workers at once, page() and for_each() when none is adding any more. An add takes no lock
// but the first time that a worker meets a page. A page costs 2.4 KB.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/memory.hpp"

namespace uptempo::vgpu::fences {

inline constexpr std::uint32_t kPageBytes = 4096;
inline constexpr std::uint32_t kLineBytes = 64;  // of both kinds of L1
inline constexpr std::uint32_t kLinesPerPage = kPageBytes / kLineBytes;

constexpr GpuAddress page_of(GpuAddress address) noexcept { return address & ~GpuAddress{kPageBytes - 1}; }

// How a read or write was made.
enum class Path : std::uint8_t {
  vector,        // loads may be served by the compute unit's L1
  scalar,        // by the scalar L1
  synchronising  // atomics and loads that bypass L1 (GLC): never stale there, and programs order themselves by them
};

class AccessSet {
 public:
  struct Page {
    std::array<std::atomic<std::uint64_t>, 64> read{}, written{}, synchronising{};
    std::array<std::atomic<std::uint32_t>, kLinesPerPage>
        workgroup{};                             // that touched the line: +1, or kSeveral
    std::atomic<std::uint64_t> vector_lines{0};  // bit per line that a vector L1 may hold
    std::atomic<std::uint64_t> scalar_lines{0};  // and a scalar L1
  };
  static constexpr std::uint32_t kSeveral = ~0u;

  // Told of each page that the dispatch touches, the first time, on the worker's thread and ahead of the access.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void touched(GpuAddress page) noexcept = 0;
  };

  explicit AccessSet(Listener* listener = nullptr);
  ~AccessSet();
  AccessSet(const AccessSet&) = delete;
  AccessSet& operator=(const AccessSet&) = delete;

  // `workgroup`: any number below 2^32 - 1 that tells workgroups apart. The range may cross pages.
  void add_read(GpuAddress address, std::uint64_t bytes, Path path, std::uint32_t workgroup) noexcept;
  void add_write(GpuAddress address, std::uint64_t bytes, Path path, std::uint32_t workgroup) noexcept;

  // The same for some bytes of one line, which begins at `line`: bit i stands for byte i.
  void add_read_mask(GpuAddress line, std::uint64_t bytes, Path path, std::uint32_t workgroup) noexcept;
  void add_write_mask(GpuAddress line, std::uint64_t bytes, Path path, std::uint32_t workgroup) noexcept;

  // Memory for a page was refused: something was not recorded.
  bool incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }

  template <typename Visit>  // Visit(GpuAddress page, Page&)
  void for_each(Visit visit) {
    for (auto& [address, page] : pages_) visit(address, *page);
  }
  bool empty() const noexcept { return pages_.empty(); }

 private:
  Page* find(GpuAddress page) noexcept;
  static void touch(Page& page, std::uint32_t line, std::uint32_t workgroup) noexcept;
  static void read(Page& page, std::uint32_t line, std::uint64_t bytes, Path path,
                   std::uint32_t workgroup) noexcept;
  static void write(Page& page, std::uint32_t line, std::uint64_t bytes, Path path,
                    std::uint32_t workgroup) noexcept;

  Listener* const listener_;
  const std::uint64_t serial_;  // tells this set from one that had its address before
  std::mutex mutex_;
  std::unordered_map<GpuAddress, std::unique_ptr<Page>> pages_;
  std::atomic<bool> incomplete_{false};
};

}  // namespace uptempo::vgpu::fences
