#include "device/fences/access_set.hpp"

#include <algorithm>
#include <new>

namespace uptempo::vgpu::fences {
namespace {

std::atomic<std::uint64_t> next_serial{1};

// Each worker's way to the pages that it met last.
struct Remembered {
  std::uint64_t serial = 0;
  GpuAddress address = 0;
  AccessSet::Page* page = nullptr;
};
constexpr std::size_t kRemembered = 256;
thread_local std::array<Remembered, kRemembered> remembered;

// Visits the words of a page's mask that [first, first + bytes) covers: visit(word, mask).
template <typename Visit>
void for_words(std::uint32_t first, std::uint32_t bytes, Visit visit) {
  while (bytes != 0) {
    const std::uint32_t bit = first % 64;
    const std::uint32_t count = std::min(bytes, 64 - bit);
    const std::uint64_t mask = (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << bit;
    visit(first / 64, mask);
    first += count;
    bytes -= count;
  }
}

// relaxed: read after the dispatch has ended, which orders everything. Most accesses repeat others, so look before locking the line.
void set_bits(std::atomic<std::uint64_t>& word, std::uint64_t mask) noexcept {
  if ((word.load(std::memory_order_relaxed) & mask) != mask) word.fetch_or(mask, std::memory_order_relaxed);
}

}  // namespace

AccessSet::AccessSet(Listener* listener)
    : listener_(listener), serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

AccessSet::~AccessSet() = default;

AccessSet::Page* AccessSet::find(GpuAddress address) noexcept {
  Remembered& hint = remembered[address / kPageBytes % kRemembered];
  if (hint.serial == serial_ && hint.address == address) return hint.page;
  bool is_new = false;
  Page* page = nullptr;
  try {
    const std::lock_guard lock(mutex_);
    auto& entry = pages_[address];
    if (entry == nullptr) {
      is_new = true;
      entry = std::make_unique<Page>();
    }
    page = entry.get();
  } catch (const std::bad_alloc&) {
    incomplete_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  if (is_new && listener_ != nullptr) listener_->touched(address);
  hint = {serial_, address, page};
  return page;
}

void AccessSet::touch(Page& page, std::uint32_t first, std::uint32_t bytes,
                      std::uint32_t workgroup) noexcept {
  const std::uint32_t mine = workgroup + 1;
  for (std::uint32_t line = first / kLineBytes; line <= (first + bytes - 1) / kLineBytes; ++line) {
    std::uint32_t before = page.workgroup[line].load(std::memory_order_relaxed);
    if (before == mine || before == kSeveral) continue;
    if (before == 0 && page.workgroup[line].compare_exchange_strong(before, mine, std::memory_order_relaxed))
      continue;
    if (before != mine) page.workgroup[line].store(kSeveral, std::memory_order_relaxed);
  }
}

void AccessSet::add_read(GpuAddress address, std::uint64_t bytes, Path path,
                         std::uint32_t workgroup) noexcept {
  while (bytes != 0) {
    const auto first = static_cast<std::uint32_t>(address % kPageBytes);
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kPageBytes - first));
    if (Page* const page = find(page_of(address))) {
      for_words(first, count, [&](std::uint32_t word, std::uint64_t mask) {
        if (path == Path::synchronising) set_bits(page->synchronising[word], mask);
        set_bits(page->read[word], mask & ~page->written[word].load(std::memory_order_relaxed));
        // A line is a word: 64 bytes.
        static_assert(kLineBytes == 64);
        const std::uint64_t line = std::uint64_t{1} << word;
        if (path == Path::vector) set_bits(page->vector_lines, line);
        if (path == Path::scalar) set_bits(page->scalar_lines, line);
      });
      touch(*page, first, count, workgroup);
    }
    address += count;
    bytes -= count;
  }
}

void AccessSet::add_write(GpuAddress address, std::uint64_t bytes, Path path,
                          std::uint32_t workgroup) noexcept {
  while (bytes != 0) {
    const auto first = static_cast<std::uint32_t>(address % kPageBytes);
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kPageBytes - first));
    if (Page* const page = find(page_of(address))) {
      for_words(first, count, [&](std::uint32_t word, std::uint64_t mask) {
        if (path == Path::synchronising) set_bits(page->synchronising[word], mask);
        set_bits(page->written[word], mask);
      });
      touch(*page, first, count, workgroup);
    }
    address += count;
    bytes -= count;
  }
}

}  // namespace uptempo::vgpu::fences
