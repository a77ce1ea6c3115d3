// The state of observed pages, private to the sources of HostPages (host_pages.cpp and
// waits/watched_signals.cpp).
//
// Thread safety: a Page belongs to the holder of its PageLock, except `locked`.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "device/host/host_pages.hpp"

namespace uptempo::vgpu {
namespace host_pages {

inline constexpr size_t kPage = HostPages::kPageBytes;
inline constexpr int kOpen = PROT_READ | PROT_WRITE;

inline void* reserve(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

}  // namespace host_pages

// All zeros is the state of a new page.
struct HostPages::Page {
  enum class State : uint8_t { open, readable, closed, signals, unwatched };

  std::atomic<bool> locked;
  State state;
  bool has_twin;      // open pages: false until the page has been closed once
  bool device_wrote;  // while the page was open; see Buffer::stored
  uint16_t holders;   // system calls that use it
  uint32_t users;     // dispatches and copies that use it
  uint32_t faults;    // since window_ns
  uint64_t opened_ns;
  uint64_t window_ns;
  // State::signals. A bit per line: a signal that the host has not looked at since it was
  // completed, and one that a queue waits for.
  uint64_t changed, awaited;
  uint32_t awaits;  // how often a bit of `awaited` was set
  bool shut;        // protected
};

struct HostPages::Buffer {
  const GpuAddress begin;
  std::byte* const program;
  std::byte* const device;
  const size_t bytes;

  // Zeroed memory that the system provides page by page on first use.
  const size_t pages = bytes / host_pages::kPage;
  const size_t reserved =
      program == nullptr ? 0 : pages * (sizeof(Page) + sizeof(PageMask) + host_pages::kPage);
  std::byte* const twins =
      reserved == 0 ? nullptr : static_cast<std::byte*>(host_pages::reserve(reserved));
  PageMask* const stored = reinterpret_cast<PageMask*>(twins + pages * host_pages::kPage);
  Page* const page = reinterpret_cast<Page*>(stored + pages);

  std::atomic<bool> open_for_good{false};
  std::atomic<size_t> first_closed{~size_t{0}};  // among all pages ever protected
  std::atomic<size_t> last_closed{0};

  Buffer(GpuAddress at, std::byte* program_view, std::byte* device_view, size_t size)
      : begin(at), program(program_view), device(device_view), bytes(size) {}
  ~Buffer() {
    if (twins != nullptr) munmap(twins, reserved);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uintptr_t program_begin() const noexcept { return reinterpret_cast<uintptr_t>(program); }
  bool holds(uintptr_t address) const noexcept {
    return address >= program_begin() && address - program_begin() < bytes;
  }

  bool overlaps(uintptr_t address, size_t size) const noexcept {
    return holds(address) || (address < program_begin() && program_begin() - address < size);
  }

  bool protect(size_t index, size_t count, int protection) const noexcept {
    return mprotect(program + index * host_pages::kPage, count * host_pages::kPage, protection) ==
           0;
  }

  // Call before protecting the page, so that open_all() finds it. relaxed: remove() waits for the
  // caller's section.
  void note_closed(size_t index) noexcept {
    size_t first = first_closed.load(std::memory_order_relaxed);
    while (index < first &&
           !first_closed.compare_exchange_weak(first, index, std::memory_order_relaxed)) {
    }
    size_t last = last_closed.load(std::memory_order_relaxed);
    while (index > last &&
           !last_closed.compare_exchange_weak(last, index, std::memory_order_relaxed)) {
    }
  }

  // Leaves pages that were never protected as they are: the program may have replaced them.
  void open_all() const noexcept {
    const size_t last = last_closed.load(std::memory_order_relaxed);
    const auto is_open = [this](size_t index) {
      return page[index].state == Page::State::open || page[index].state == Page::State::unwatched;
    };
    for (size_t first = first_closed.load(std::memory_order_relaxed);
         first <= last && first < pages;) {
      size_t end = first;
      while (end <= last && !is_open(end)) page[end++].state = Page::State::unwatched;
      if (end > first) protect(first, end - first, host_pages::kOpen);
      first = end + 1;
    }
  }
};

struct HostPages::Table {
  std::vector<Buffer*> by_gpu;
  std::vector<Buffer*> by_program;  // only buffers that the host can access

  Buffer* at_gpu(GpuAddress address) const noexcept {
    const auto after =
        std::upper_bound(by_gpu.begin(), by_gpu.end(), address,
                         [](GpuAddress at, const Buffer* buffer) { return at < buffer->begin; });
    if (after == by_gpu.begin()) return nullptr;
    Buffer* const buffer = *std::prev(after);
    return address - buffer->begin < buffer->bytes ? buffer : nullptr;
  }

  // Returns the first buffer that ends after `address`, or nullptr.
  Buffer* from_program(uintptr_t address) const noexcept {
    const auto found = std::upper_bound(by_program.begin(), by_program.end(), address,
                                        [](uintptr_t at, const Buffer* buffer) {
                                          return at < buffer->program_begin() + buffer->bytes;
                                        });
    return found == by_program.end() ? nullptr : *found;
  }

  // Calls each(buffer, index of the page in it, the range's first byte in the page) for each
  // watched page of a range of the program.
  template <typename Visit>
  void visit(uintptr_t at, size_t bytes, Visit&& each) const noexcept {
    const uintptr_t end = bytes > ~at ? ~uintptr_t{0} : at + bytes;
    while (at < end) {
      Buffer* const buffer = from_program(at);
      if (buffer == nullptr || buffer->program_begin() >= end) return;
      at = std::max(at, buffer->program_begin());
      for (; at < end && buffer->holds(at); at = (at / host_pages::kPage + 1) * host_pages::kPage)
        each(*buffer, (at - buffer->program_begin()) / host_pages::kPage, at);
    }
  }
};

class HostPages::PageLock {
 public:
  explicit PageLock(Page& page) noexcept : page_(page) {
    while (page_.locked.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  ~PageLock() { page_.locked.store(false, std::memory_order_release); }
  PageLock(const PageLock&) = delete;
  PageLock& operator=(const PageLock&) = delete;

 private:
  Page& page_;
};

}  // namespace uptempo::vgpu
