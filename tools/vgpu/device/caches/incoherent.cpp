#include "device/caches/incoherent.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "device/caches/cache_lines.hpp"

namespace uptempo::vgpu {
namespace {

constexpr unsigned kL1Ways = 4;
constexpr unsigned kL2Ways = 16;

constexpr std::array<uint64_t, 4> kEvictionPeriods{0, 4096, 256, 16};

// A vector L1 with longer lines holds each as several.
using L1 = SetAssociative<kSectorBytes>;
using L2 = SetAssociative<kL2LineBytes>;
static_assert(kScalarL1LineBytes == kSectorBytes && kL2LineBytes % kSectorBytes == 0);

// The part of an access in one sector.
struct Piece {
  std::byte* host;
  size_t size_bytes;

  size_t offset() const noexcept { return reinterpret_cast<uintptr_t>(host) % kSectorBytes; }
  std::byte* sector() const noexcept { return host - offset(); }
  ByteMask mask() const noexcept { return mask_of(offset(), offset() + size_bytes); }
};

// Returns the part of the sector that `mapping` contains. Mappings need not begin or end at a line.
Piece whole_sector(const Mapping& mapping, std::byte* sector) noexcept {
  std::byte* const begin = std::max(sector, mapping.host);
  std::byte* const end =
      std::min(sector + kSectorBytes, mapping.host + (mapping.end - mapping.begin));
  return {begin, static_cast<size_t>(end - begin)};
}

// Calls function(piece, its offset in the access).
template <class Function>
void for_each_piece(std::byte* host, size_t size_bytes, Function&& function) {
  for (size_t done = 0; done < size_bytes;) {
    Piece piece{host + done, size_bytes - done};
    piece.size_bytes = std::min(piece.size_bytes, kSectorBytes - piece.offset());
    function(piece, done);
    done += piece.size_bytes;
  }
}

}  // namespace

struct Caches::Impl {
  Impl(const DeviceDescription& the_device, const CacheHabits& habits)
      : device(the_device),
        random(habits.seed),
        compute_units(habits.compute_units),
        l1_evictions(habits.l1_eviction_period, random),
        l2_evictions(habits.l2_eviction_period, random),
        vector_l1(device.compute_units, L1(device.l1_bytes, kL1Ways)),
        scalar_l1((device.compute_units + kComputeUnitsPerScalarL1 - 1) / kComputeUnitsPerScalarL1,
                  L1(kScalarL1Bytes, kL1Ways)),
        l2s(device.xcds, L2(device.l2_bytes, kL2Ways)) {
    for (size_t kind = 0; kind < type_of.size(); ++kind)
      type_of[kind] = memory_type(device.target, static_cast<MemoryKind>(kind));
  }

  bool is_in_l2(const Mapping& mapping) const noexcept {
    return l2_holds_dirty(type_of[static_cast<size_t>(mapping.kind)]);
  }
  // Whether L2 keeps clean copies.
  bool is_copied_to_l2(const Mapping& mapping) const noexcept {
    return l2_goes_stale(type_of[static_cast<size_t>(mapping.kind)]);
  }
  // Whether an access of that scope must reach the other L2s of the agent.
  bool meets_in_memory(AccessScope scope) const noexcept {
    return l2s.size() > 1 && scope >= AccessScope::agent;
  }

  L2& l2_of(uint32_t compute_unit) noexcept { return l2s[compute_unit / device.units_per_xcd()]; }

  // One of several equal things. Draws no number for the only one.
  size_t any_of(size_t count) noexcept { return count == 1 ? 0 : random.below(count); }

  // Call once per access, first. Answers peers' probes and evicts lines at random.
  void evict(L1& own) noexcept {
    answer_probes();
    if (l1_evictions.due(random)) {
      // A line of the accessing L1 or of any vector L1.
      const bool any = random.below(2) != 0;
      L1& cache =
          any ? vector_l1[any_of(l2s.size()) * device.units_per_xcd() + random.below(compute_units)]
              : own;
      if (L1::Entry* line = cache.any(random)) cache.drop(*line);
    }
    if (l2_evictions.due(random)) {
      L2& l2 = l2s[any_of(l2s.size())];
      if (L2::Entry* line = l2.any(random)) {
        write_back(*line);
        l2.drop(*line);
      }
    }
  }

  static void write_back(L2::Entry& line) noexcept {
    const bool was_dirty = line.is_dirty();
    for (size_t sector = 0; sector < L2::Entry::kSectors; ++sector) {
      const size_t at = sector * kSectorBytes;
      transfer_masked(line.home + at, line.data.data() + at, std::exchange(line.dirty[sector], 0));
    }
    if (was_dirty && line.probes != nullptr) line.probes->announce({line.home, kL2LineBytes});
  }

  // Call it before each access: clean copies of what peers have written since the last call are
  // dropped.
  void answer_probes() noexcept {
    if (!probes.pending()) return;
    probes.take([&](std::span<std::byte> written) {
      for (L2& l2 : l2s) {
        if (written.empty()) {
          invalidate_clean(l2);
          continue;
        }
        std::byte* const end = written.data() + written.size();
        for (std::byte* home = L2::home_of(written.data()); home < end; home += kL2LineBytes)
          if (L2::Entry* line = l2.find(home)) drop_clean(l2, *line);
      }
    });
  }
  static void drop_clean(L2& l2, L2::Entry& line) noexcept {
    line.valid = line.dirty;
    if (!line.is_dirty()) l2.drop(line);
  }
  static void invalidate_clean(L2& l2) noexcept {
    l2.for_each([&](L2::Entry& line) { drop_clean(l2, line); });
  }

  struct L2Sector {
    L2::Entry& line;
    size_t index;
    std::byte* data() const noexcept { return line.data.data() + index * kSectorBytes; }
  };
  L2Sector l2_sector(L2& l2, const Mapping& mapping, const Piece& piece) {
    std::byte* const home = L2::home_of(piece.host);
    L2::Entry* line = l2.find(home);
    if (line == nullptr) line = &l2.add(home, random, [](L2::Entry& old) { write_back(old); });
    line->invalidated = false;
    line->probes = mapping.probes;
    return {*line, static_cast<size_t>(piece.host - home) / kSectorBytes};
  }

  // Fetches the whole line, so that bytes beside the requested ones go stale, too.
  static void fetch(L2::Entry& line, const Mapping& mapping) noexcept {
    for (size_t sector = 0; sector < L2::Entry::kSectors; ++sector) {
      std::byte* const home = line.home + sector * kSectorBytes;
      if (home + kSectorBytes <= mapping.host ||
          home >= mapping.host + (mapping.end - mapping.begin))
        continue;
      const ByteMask missing = whole_sector(mapping, home).mask() & ~line.valid[sector];
      transfer_masked(line.data.data() + sector * kSectorBytes, home, missing);
      line.valid[sector] |= missing;
    }
  }

  void read_l2(L2& l2, const Mapping& mapping, const Piece& piece, std::byte* to) {
    if (!is_in_l2(mapping)) return copy_in_pieces(to, piece.host, piece.size_bytes);
    if (!is_copied_to_l2(mapping)) return read_over_memory(l2, piece, to);
    const L2Sector sector = l2_sector(l2, mapping, piece);
    if ((piece.mask() & ~sector.line.valid[sector.index]) != 0) fetch(sector.line, mapping);
    copy_in_pieces(to, sector.data() + piece.offset(), piece.size_bytes);
  }

  // Memory, except for bytes that this L2 has changed.
  static void read_over_memory(L2& l2, const Piece& piece, std::byte* to) noexcept {
    copy_in_pieces(to, piece.host, piece.size_bytes);
    std::byte* const home = L2::home_of(piece.host);
    const L2::Entry* line = l2.find(home);
    if (line == nullptr) return;
    const auto at = static_cast<size_t>(piece.host - home);
    const ByteMask dirty = line->dirty[at / kSectorBytes] & piece.mask();
    if (dirty == piece.mask()) return copy_in_pieces(to, line->data.data() + at, piece.size_bytes);
    for (size_t i = 0; i < piece.size_bytes; ++i)
      if ((dirty >> (piece.offset() + i) & 1) != 0) to[i] = line->data[at + i];
  }

  void write_l2(L2& l2, const Mapping& mapping, const Piece& piece, const std::byte* from,
                AccessScope scope) {
    if (!is_in_l2(mapping)) return copy_in_pieces(piece.host, from, piece.size_bytes);
    if (meets_in_memory(scope)) {
      give_up(l2, piece);
      return copy_in_pieces(piece.host, from, piece.size_bytes);
    }
    const L2Sector sector = l2_sector(l2, mapping, piece);
    copy_in_pieces(sector.data() + piece.offset(), from, piece.size_bytes);
    sector.line.valid[sector.index] |= piece.mask();
    sector.line.dirty[sector.index] |= piece.mask();
  }

  // Writes the bytes back that this L2 has changed, and keeps no copy of them.
  static void give_up(L2& l2, const Piece& piece) noexcept {
    std::byte* const home = L2::home_of(piece.host);
    L2::Entry* line = l2.find(home);
    if (line == nullptr) return;
    const size_t index = static_cast<size_t>(piece.host - home) / kSectorBytes;
    const ByteMask dirty = line->dirty[index] & piece.mask();
    transfer_masked(home + index * kSectorBytes, line->data.data() + index * kSectorBytes, dirty);
    line->dirty[index] &= ~piece.mask();
    line->valid[index] &= ~piece.mask();
  }

  // The part of a line that L1 copies at once: its sector, or two for lines of two sectors.
  void fill(L1& cache, L2& l2, const Mapping& mapping, const Piece& piece, size_t line_bytes) {
    std::byte* const begin = piece.host - reinterpret_cast<uintptr_t>(piece.host) % line_bytes;
    for (std::byte* home = begin; home < begin + line_bytes; home += kSectorBytes) {
      if (home + kSectorBytes <= mapping.host ||
          home >= mapping.host + (mapping.end - mapping.begin))
        continue;
      L1::Entry* line = cache.find(home);
      if (line == nullptr) line = &cache.add(home, random, [](L1::Entry&) {});
      const Piece whole = whole_sector(mapping, home);
      read_l2(l2, mapping, whole, line->data.data() + whole.offset());
      line->valid[0] |= whole.mask();
    }
  }

  void load(L1& cache, L2& l2, const Mapping& mapping, GpuAddress address, std::span<std::byte> to,
            size_t line_bytes) {
    evict(cache);
    for_each_piece(mapping.at(address), to.size(), [&](const Piece& piece, size_t done) {
      const L1::Entry* line = cache.find(piece.sector());
      if (line == nullptr || (piece.mask() & ~line->valid[0]) != 0) {
        fill(cache, l2, mapping, piece, line_bytes);
        line = cache.find(piece.sector());
      }
      copy_in_pieces(to.data() + done, line->data.data() + piece.offset(), piece.size_bytes);
    });
  }

  void load_past(L1& cache, L2& l2, const Mapping& mapping, GpuAddress address,
                 std::span<std::byte> to, AccessScope scope) {
    evict(cache);
    for_each_piece(mapping.at(address), to.size(), [&](const Piece& piece, size_t done) {
      if (L1::Entry* line = cache.find(piece.sector())) cache.drop(*line);
      if (meets_in_memory(scope))
        if (L2::Entry* line = l2.find(L2::home_of(piece.host))) drop_clean(l2, *line);
      read_l2(l2, mapping, piece, to.data() + done);
    });
  }

  void store(L1& cache, L2& l2, const Mapping& mapping, GpuAddress address,
             std::span<const std::byte> from, AccessScope scope) {
    evict(cache);
    for_each_piece(mapping.at(address), from.size(), [&](const Piece& piece, size_t done) {
      write_l2(l2, mapping, piece, from.data() + done, scope);
      if (L1::Entry* line = cache.find(piece.sector());
          line != nullptr && (line->valid[0] & piece.mask()) != 0)
        copy_in_pieces(line->data.data() + piece.offset(), from.data() + done, piece.size_bytes);
    });
  }

  std::byte* atomic(L1& cache, L2& l2, const Mapping& mapping, GpuAddress address,
                    size_t size_bytes) {
    evict(cache);
    const Piece piece{mapping.at(address), size_bytes};
    if (L1::Entry* line = cache.find(piece.sector())) cache.drop(*line);
    if (!is_in_l2(mapping)) return piece.host;
    if (meets_in_memory(AccessScope::agent)) {
      give_up(l2, piece);
      return piece.host;
    }
    const L2Sector sector = l2_sector(l2, mapping, piece);
    if ((piece.mask() & ~sector.line.valid[sector.index]) != 0) fetch(sector.line, mapping);
    sector.line.dirty[sector.index] |= piece.mask();
    return sector.data() + piece.offset();
  }

  // Returns the number of dirty lines.
  static size_t write_back(L2& l2) noexcept {
    size_t lines = 0;
    l2.for_each([&](L2::Entry& line) {
      if (!line.is_dirty()) return;
      ++lines;
      write_back(line);
      if (line.invalidated) l2.drop(line);
    });
    return lines;
  }

  // Returns the number of lines with clean bytes. Dirty bytes stay until they are written back. If
  // nothing accesses their line meanwhile, it is dropped then: an invalidation leaves no copy that
  // could be old later.
  static size_t invalidate(L2& l2) noexcept {
    size_t lines = 0;
    l2.for_each([&](L2::Entry& line) {
      if (line.valid != line.dirty) ++lines;
      line.valid = line.dirty;
      line.invalidated = true;
      if (!line.is_dirty()) l2.drop(line);
    });
    return lines;
  }

  size_t write_back_l2s() noexcept {
    size_t lines = 0;
    for (L2& l2 : l2s) lines += write_back(l2);
    return lines;
  }
  size_t invalidate_l2s() noexcept {
    size_t lines = 0;
    for (L2& l2 : l2s) lines += invalidate(l2);
    return lines;
  }

  static size_t clear(std::vector<L1>& caches) noexcept {
    size_t lines = 0;
    for (L1& cache : caches) lines += cache.clear();
    return lines;
  }

  // Only the owner's thread adds. relaxed: the packet's completion signal orders it for a thread
  // that has waited for it.
  static void add(std::atomic<uint64_t>& sum, size_t lines) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + lines, std::memory_order_relaxed);
  }

  void forget(const Mapping& mapping) noexcept {
    std::byte* const begin = mapping.host;
    std::byte* const end = begin + (mapping.end - mapping.begin);
    for (L2& l2 : l2s)
      l2.for_each([&](L2::Entry& line) {
        if (line.home + kL2LineBytes <= begin || line.home >= end) return;
        write_back(line);
        l2.drop(line);
      });
    const auto drop_copies = [&](std::vector<L1>& caches) {
      for (L1& cache : caches)
        cache.for_each([&](L1::Entry& line) {
          if (line.home + kSectorBytes > begin && line.home < end) cache.drop(line);
        });
    };
    drop_copies(vector_l1);
    drop_copies(scalar_l1);
  }

  L1& scalar(uint32_t compute_unit) noexcept {
    return scalar_l1[compute_unit / kComputeUnitsPerScalarL1];
  }

  const DeviceDescription& device;
  Random random;
  const uint32_t compute_units;  // of each XCD on which workgroups run
  Evictions l1_evictions, l2_evictions;
  std::array<MemoryType, static_cast<size_t>(MemoryKind::hdp_registers) + 1> type_of{};
  std::vector<L1> vector_l1, scalar_l1;
  std::vector<L2> l2s;
  Probes probes;
  std::atomic<uint64_t> vector_l1_invalidated{0}, scalar_l1_invalidated{0}, l2_invalidated{0},
      l2_written_back{0};
};

CacheHabits CacheHabits::of(const DeviceDescription& device, uint64_t seed) noexcept {
  Random random(seed);
  CacheHabits habits;
  habits.seed = random.next();
  habits.compute_units = std::min<uint32_t>(device.units_per_xcd(), 1u << random.below(8));
  habits.l1_eviction_period = kEvictionPeriods[random.below(kEvictionPeriods.size())];
  habits.l2_eviction_period = kEvictionPeriods[random.below(kEvictionPeriods.size())];
  return habits;
}

Caches::Caches(const DeviceDescription& device, const CacheHabits& habits)
    : impl_(std::make_unique<Impl>(device, habits)) {}
Caches::~Caches() = default;

uint32_t Caches::any_compute_unit() noexcept {
  return static_cast<uint32_t>(impl_->random.below(impl_->compute_units));
}

void Caches::load(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                  std::span<std::byte> to, AccessScope scope) {
  L1& cache = impl_->vector_l1[compute_unit];
  L2& l2 = impl_->l2_of(compute_unit);
  if (scope >= AccessScope::agent) return impl_->load_past(cache, l2, mapping, address, to, scope);
  impl_->load(cache, l2, mapping, address, to, impl_->device.l1_line_bytes);
}

void Caches::store(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                   std::span<const std::byte> from, AccessScope scope) {
  impl_->store(impl_->vector_l1[compute_unit], impl_->l2_of(compute_unit), mapping, address, from,
               scope);
}

void Caches::scalar_load(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                         std::span<std::byte> to, AccessScope scope) {
  L1& cache = impl_->scalar(compute_unit);
  L2& l2 = impl_->l2_of(compute_unit);
  if (scope >= AccessScope::agent) return impl_->load_past(cache, l2, mapping, address, to, scope);
  impl_->load(cache, l2, mapping, address, to, kScalarL1LineBytes);
}

void Caches::scalar_store(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                          std::span<const std::byte> from) {
  impl_->store(impl_->scalar(compute_unit), impl_->l2_of(compute_unit), mapping, address, from,
               AccessScope::wave);
}

std::byte* Caches::atomic(uint32_t compute_unit, const Mapping& mapping, GpuAddress address,
                          size_t size_bytes) {
  return impl_->atomic(impl_->vector_l1[compute_unit], impl_->l2_of(compute_unit), mapping, address,
                       size_bytes);
}

void Caches::peek(const Mapping& mapping, GpuAddress address, std::span<std::byte> to) const {
  for_each_piece(mapping.at(address), to.size(), [&](const Piece& piece, size_t done) {
    copy_in_pieces(to.data() + done, piece.host, piece.size_bytes);
    std::byte* const home = L2::home_of(piece.host);
    const auto at = static_cast<size_t>(piece.host - home);
    for (L2& l2 : impl_->l2s) {
      const L2::Entry* line = l2.find(home);
      if (line == nullptr) continue;
      for (size_t i = 0; i < piece.size_bytes; ++i)
        if ((line->valid[at / kSectorBytes] >> (at % kSectorBytes + i) & 1) != 0)
          to[done + i] = line->data[at + i];
    }
  });
}

void Caches::invalidate(uint32_t compute_unit, AccessScope scope) noexcept {
  if (scope < AccessScope::agent) return;
  invalidate_vector_l1(compute_unit);
  Impl::invalidate(impl_->l2_of(compute_unit));
}

void Caches::write_back(uint32_t compute_unit, AccessScope scope) noexcept {
  if (scope >= AccessScope::agent) Impl::write_back(impl_->l2_of(compute_unit));
}

void Caches::invalidate_vector_l1(uint32_t compute_unit) noexcept {
  impl_->vector_l1[compute_unit].clear();
}

void Caches::invalidate_scalar_l1(uint32_t compute_unit) noexcept {
  impl_->scalar(compute_unit).clear();
}

void Caches::write_back_l2() noexcept { impl_->write_back_l2s(); }

void Caches::invalidate_l2() noexcept { impl_->invalidate_l2s(); }

void Caches::carry_out(const CacheActions& actions) noexcept {
  if (actions.invalidate_vector_l1)
    Impl::add(impl_->vector_l1_invalidated, Impl::clear(impl_->vector_l1));
  if (actions.invalidate_scalar_l1)
    Impl::add(impl_->scalar_l1_invalidated, Impl::clear(impl_->scalar_l1));
  if (actions.write_back_l2) Impl::add(impl_->l2_written_back, impl_->write_back_l2s());
  if (actions.invalidate_l2) Impl::add(impl_->l2_invalidated, impl_->invalidate_l2s());
}

void Caches::acquire(FenceScope scope) noexcept {
  if (scope == FenceScope::none) return;
  carry_out({.invalidate_vector_l1 = true,
             .invalidate_scalar_l1 = true,
             .invalidate_l2 = scope == FenceScope::system || impl_->l2s.size() > 1});
}

void Caches::release(FenceScope scope) noexcept {
  carry_out({.write_back_l2 = scope == FenceScope::system ||
                              (scope == FenceScope::agent && impl_->l2s.size() > 1)});
}

Probes& Caches::probes() noexcept { return impl_->probes; }

void Caches::forget(const Mapping& mapping) noexcept { impl_->forget(mapping); }

MovedLines Caches::moved_lines() const noexcept {
  const auto sum = [](const std::atomic<uint64_t>& lines) {
    return lines.load(std::memory_order_relaxed);
  };
  return {sum(impl_->vector_l1_invalidated), sum(impl_->scalar_l1_invalidated),
          sum(impl_->l2_invalidated), sum(impl_->l2_written_back)};
}

}  // namespace uptempo::vgpu
