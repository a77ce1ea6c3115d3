#include "device/fences/access_set.hpp"

#include <algorithm>
#include <new>

namespace uptempo::vgpu::fences {
namespace {

std::atomic<uint64_t> next_serial{1};

// Per worker: the pages that it accessed last.
struct Remembered {
  uint64_t serial = 0;
  GpuAddress address = 0;
  void* page = nullptr;  // an AccessSet::Page
};
constexpr size_t kRemembered = 256;
// initial-exec: the library is preloaded, never opened with dlopen().
[[gnu::tls_model("initial-exec")]] thread_local std::array<Remembered, kRemembered> remembered;

constexpr uint64_t kAllBits = ~uint64_t{0};

// relaxed throughout: the end of the dispatch orders these stores before all reads. Most accesses
// repeat others or fill whole words, so locked instructions are rare.
void set_bits(uint64_t& bits, uint64_t mask) noexcept {
  const std::atomic_ref word(bits);
  if (mask == kAllBits) {
    word.store(kAllBits, std::memory_order_relaxed);
  } else if ((word.load(std::memory_order_relaxed) & mask) != mask) {
    word.fetch_or(mask, std::memory_order_relaxed);
  }
}

bool has_bit(uint64_t& bits, uint32_t bit) noexcept {
  return (std::atomic_ref(bits).load(std::memory_order_relaxed) >> bit & 1) != 0;
}

// Splits [address, address + bytes) at pages and lines and calls in_line(page, line, mask).
template <typename Find, typename InLine>
void for_lines(GpuAddress address, uint64_t bytes, Find find, InLine in_line) {
  while (bytes != 0) {
    auto first = static_cast<uint32_t>(address % kPageBytes);
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(bytes, kPageBytes - first));
    auto* const page = find(page_of(address));
    address += count;
    bytes -= count;
    if (page == nullptr) continue;
    for (const uint32_t end = first + count; first != end;) {
      const uint32_t part = std::min(end - first, kLineBytes - first % kLineBytes);
      in_line(*page, first / kLineBytes, line_bits(first % kLineBytes, part));
      first += part;
    }
  }
}

}  // namespace

AccessSet::AccessSet(Listener* listener, L2Deal l2s, uint32_t l1_line_bytes)
    : listener_(listener),
      l2s_(l2s),
      l1_first_(~(l1_line_bytes / kLineBytes - 1)),
      l1_line_((uint64_t{1} << l1_line_bytes / kLineBytes) - 1),
      serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

AccessSet::~AccessSet() = default;

AccessSet::Page* AccessSet::find(GpuAddress address, bool writes) noexcept {
  const Remembered& hint = remembered[address / kPageBytes % kRemembered];
  Page* const page = hint.serial == serial_ && hint.address == address
                         ? static_cast<Page*>(hint.page)
                         : find_or_add(address, writes);
  if (writes && page != nullptr && !page->write_reported.load(std::memory_order_relaxed) &&
      !page->write_reported.exchange(true, std::memory_order_relaxed) && listener_ != nullptr)
    listener_->written(address);
  return page;
}

AccessSet::Page* AccessSet::find_or_add(GpuAddress address, bool writes) noexcept {
  bool is_new = false;
  Page* page = nullptr;
  try {
    const std::lock_guard lock(mutex_);
    const auto [entry, added] = pages_.try_emplace(address);
    is_new = added;
    page = &entry->second;
    if (is_new) page->write_reported.store(writes, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    incomplete_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  if (is_new && listener_ != nullptr) listener_->touched(address, writes);
  remembered[address / kPageBytes % kRemembered] = {serial_, address, page};
  return page;
}

inline void AccessSet::record_l2(uint8_t& l2s, uint32_t workgroup) const noexcept {
  if (l2s_.count <= 1) return;
  const auto bit = static_cast<uint8_t>(1u << (uint64_t{workgroup} + l2s_.first) % l2s_.count);
  const std::atomic_ref bits(l2s);
  if ((bits.load(std::memory_order_relaxed) & bit) == 0)
    bits.fetch_or(bit, std::memory_order_relaxed);
}

void AccessSet::touch(Page& page, uint32_t line, uint32_t workgroup) const noexcept {
  const std::atomic_ref owner(page.workgroup[line & l1_first_]);
  const uint32_t mine = workgroup + 1;
  uint32_t before = owner.load(std::memory_order_relaxed);
  if (before == mine || before == kSeveral) return;
  if (before == 0 && owner.compare_exchange_strong(before, mine, std::memory_order_relaxed)) return;
  if (before == mine) return;
  owner.store(kSeveral, std::memory_order_relaxed);
  set_bits(page.accesses.shared_lines, vector_line(line));
}

inline void AccessSet::read(Page& page, uint32_t line, uint64_t mask, Path path,
                            uint32_t workgroup) const noexcept {
  PageAccesses& accesses = page.accesses;
  if (path == Path::vector && !has_bit(accesses.vector_lines, line))
    set_bits(accesses.vector_lines, vector_line(line));
  if (path == Path::scalar) set_bits(accesses.scalar_lines, uint64_t{1} << line);
  if (path == Path::synchronising) set_bits(accesses.synchronising[line], mask);
  set_bits(accesses.read[line],
           mask & ~std::atomic_ref(accesses.written[line]).load(std::memory_order_relaxed));
  record_l2(accesses.read_l2s[line], workgroup);
  touch(page, line, workgroup);
}

inline void AccessSet::write(Page& page, uint32_t line, uint64_t mask, Path path,
                             uint32_t workgroup) const noexcept {
  if (path == Path::synchronising) set_bits(page.accesses.synchronising[line], mask);
  set_bits(page.accesses.written[line], mask);
  record_l2(page.accesses.written_l2s[line], workgroup);
  touch(page, line, workgroup);
}

void AccessSet::add_read(GpuAddress address, uint64_t bytes, Path path,
                         uint32_t workgroup) noexcept {
  for_lines(
      address, bytes, [this](GpuAddress page) { return find(page, false); },
      [&](Page& page, uint32_t line, uint64_t mask) { read(page, line, mask, path, workgroup); });
}

void AccessSet::add_write(GpuAddress address, uint64_t bytes, Path path,
                          uint32_t workgroup) noexcept {
  for_lines(
      address, bytes, [this](GpuAddress page) { return find(page, true); },
      [&](Page& page, uint32_t line, uint64_t mask) { write(page, line, mask, path, workgroup); });
}

bool AccessSet::has_written(GpuAddress address, uint32_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto page = pages_.find(page_of(address));
  if (page == pages_.end()) return false;
  const std::atomic_ref line(page->second.accesses.written[address % kPageBytes / kLineBytes]);
  return (line.load(std::memory_order_relaxed) & line_bits(address % kLineBytes, bytes)) != 0;
}

void AccessSet::add_read_mask(GpuAddress line, uint64_t bytes, Path path,
                              uint32_t workgroup) noexcept {
  if (Page* const page = find(page_of(line), false))
    read(*page, static_cast<uint32_t>(line % kPageBytes / kLineBytes), bytes, path, workgroup);
}

void AccessSet::add_write_mask(GpuAddress line, uint64_t bytes, Path path,
                               uint32_t workgroup) noexcept {
  if (Page* const page = find(page_of(line), true))
    write(*page, static_cast<uint32_t>(line % kPageBytes / kLineBytes), bytes, path, workgroup);
}

}  // namespace uptempo::vgpu::fences
