// Memory accesses of all lanes at once, for each SIMD target.
#if defined(UPTEMPO_VGPU_GFX9_MEMORY_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_MEMORY_LANES_INL_HPP
#undef UPTEMPO_VGPU_GFX9_MEMORY_LANES_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_MEMORY_LANES_INL_HPP
#endif

#include <hwy/highway.h>

#include "gfx9/memory/memory.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::ScalableTag<uint32_t>;
using D64 = hn::ScalableTag<uint64_t>;
inline constexpr size_t kN32 = hn::MaxLanes(D32{});
inline constexpr size_t kN64 = hn::MaxLanes(D64{});
inline constexpr uint64_t kAll = ~uint64_t{0};

// Whether masked loads and stores leave the memory of inactive lanes untouched. Other workers may
// be using it.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
inline constexpr bool kMaskedMemory = true;
#else
inline constexpr bool kMaskedMemory = false;
#endif

// Whether vector accesses keep the aligned 16 bytes of a lane whole (device/whole_access.hpp).
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
inline constexpr bool kWholeVectors = true;
#else
inline const bool kWholeVectors = kVectorsAreWhole;
#endif

template <class D>
HWY_INLINE auto mask_at(D d, uint64_t bits, size_t lane) {
  uint8_t bytes[8];
  const uint64_t shifted = bits >> lane;
  std::memcpy(bytes, &shifted, sizeof bytes);
  return hn::LoadMaskBits(d, bytes);
}

// Whether v[lane] == origin + lane * step (mod 2^32) for each active lane.
template <bool Full>
HWY_INLINE bool is_arithmetic(const Vgpr& v, uint64_t exec, uint32_t origin, uint32_t step) {
  const D32 d;
  auto difference = hn::Zero(d);
  const auto steps = hn::Mul(hn::Iota(d, 0u), hn::Set(d, step));
  for (size_t lane = 0; lane < kLanes; lane += kN32) {
    const auto expected = hn::Add(steps, hn::Set(d, origin + static_cast<uint32_t>(lane) * step));
    auto off = hn::Xor(hn::Load(d, v.lane + lane), expected);
    if constexpr (!Full) off = hn::IfThenElseZero(mask_at(d, exec, lane), off);
    difference = hn::Or(difference, off);
  }
  return hn::AllTrue(d, hn::Eq(difference, hn::Zero(d)));
}

HWY_INLINE bool is_arithmetic(const Vgpr& v, uint64_t exec, uint32_t origin, uint32_t step) {
  return exec == kAll ? is_arithmetic<true>(v, exec, origin, step)
                      : is_arithmetic<false>(v, exec, origin, step);
}

// Loads a vector whose lanes are parts of larger elements. The empty assembly keeps the compiler
// from loading it once more for another part, which may have changed by then.
HWY_INLINE hn::Vec<D32> load_once(const uint32_t* from) {
  auto value = hn::LoadU(D32{}, from);
  asm volatile("" : "+v"(value.raw));
  return value;
}

// Loads the four dwords of kN32 lanes from `lane` on.
HWY_INLINE void load_quads(const uint32_t* from, Vgpr* dst, size_t lane) {
  const D32 d;
  const auto a = load_once(from), b = load_once(from + kN32), c = load_once(from + 2 * kN32),
             e = load_once(from + 3 * kN32);
#if HWY_TARGET == HWY_AVX3
  // Even and odd dwords of two vectors are one permutation.
  const auto xz_low = hn::ConcatEven(d, b, a), yw_low = hn::ConcatOdd(d, b, a);
  const auto xz_high = hn::ConcatEven(d, e, c), yw_high = hn::ConcatOdd(d, e, c);
  const auto x = hn::ConcatEven(d, xz_high, xz_low), y = hn::ConcatEven(d, yw_high, yw_low);
  const auto z = hn::ConcatOdd(d, xz_high, xz_low), w = hn::ConcatOdd(d, yw_high, yw_low);
#else
  // Each block of 16 bytes is a lane's. First, blocks of lanes i and i + 4 become neighbours.
#if HWY_TARGET == HWY_AVX2
  const auto p = hn::ConcatLowerLower(d, c, a), q = hn::ConcatUpperUpper(d, c, a);
  const auto r = hn::ConcatLowerLower(d, e, b), s = hn::ConcatUpperUpper(d, e, b);
#else
  const auto p = a, q = b, r = c, s = e;
#endif
  const D64 pairs;
  const auto xy_low = hn::BitCast(pairs, hn::InterleaveLower(d, p, q)),
             xy_high = hn::BitCast(pairs, hn::InterleaveLower(d, r, s)),
             zw_low = hn::BitCast(pairs, hn::InterleaveUpper(d, p, q)),
             zw_high = hn::BitCast(pairs, hn::InterleaveUpper(d, r, s));
  const auto x = hn::BitCast(d, hn::InterleaveLower(pairs, xy_low, xy_high)),
             y = hn::BitCast(d, hn::InterleaveUpper(pairs, xy_low, xy_high)),
             z = hn::BitCast(d, hn::InterleaveLower(pairs, zw_low, zw_high)),
             w = hn::BitCast(d, hn::InterleaveUpper(pairs, zw_low, zw_high));
#endif
  hn::Store(x, d, dst[0].lane + lane);
  hn::Store(y, d, dst[1].lane + lane);
  hn::Store(z, d, dst[2].lane + lane);
  hn::Store(w, d, dst[3].lane + lane);
}

// A run: lane i's element is at host + i * E::kBytes. Only memory of active lanes is touched.
template <class E>
HWY_INLINE void load_run(uint64_t host, uint64_t exec, Vgpr* dst) {
  const D32 d;
  const auto* from = reinterpret_cast<const uint32_t*>(host);
  if constexpr (std::is_same_v<E, B32>) {
    if (exec == kAll) {
      for (size_t lane = 0; lane < kLanes; lane += kN32)
        hn::Store(hn::LoadU(d, from + lane), d, dst->lane + lane);
      return;
    }
    if constexpr (kMaskedMemory) {
      for (size_t lane = 0; lane < kLanes; lane += kN32) {
        const auto mask = mask_at(d, exec, lane);
        hn::Store(hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from + lane),
                                 hn::Load(d, dst->lane + lane)),
                  d, dst->lane + lane);
      }
      return;
    }
  }
  if (exec == kAll) {
    if constexpr (std::is_same_v<E, B64>) {
      for (size_t lane = 0; lane < kLanes; lane += kN32) {
        const auto low = load_once(from + 2 * lane), high = load_once(from + 2 * lane + kN32);
        hn::Store(hn::ConcatEven(d, high, low), d, dst[0].lane + lane);
        hn::Store(hn::ConcatOdd(d, high, low), d, dst[1].lane + lane);
      }
      return;
    }
    if constexpr (std::is_same_v<E, B128>) {
      if (kWholeVectors) {
        for (size_t lane = 0; lane < kLanes; lane += kN32) load_quads(from + 4 * lane, dst, lane);
        return;
      }
    }
    if constexpr (std::is_same_v<E, U8> || std::is_same_v<E, U16>) {
      using Raw = typename E::Raw;
      const hn::Rebind<Raw, D32> narrow;
      const auto* raw = reinterpret_cast<const Raw*>(host);
      for (size_t lane = 0; lane < kLanes; lane += kN32)
        hn::Store(hn::PromoteTo(d, hn::LoadU(narrow, raw + lane)), d, dst->lane + lane);
      return;
    }
  }
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    E::to_registers(load_whole<typename E::Raw>(host_at(host, lane * E::kBytes)), dst, lane);
  });
}

template <class E>
HWY_INLINE void store_run(uint64_t host, uint64_t exec, const Vgpr* src) {
  const D32 d;
  auto* to = reinterpret_cast<uint32_t*>(host);
  if constexpr (std::is_same_v<E, B32>) {
    if (exec == kAll) {
      for (size_t lane = 0; lane < kLanes; lane += kN32)
        hn::StoreU(hn::Load(d, src->lane + lane), d, to + lane);
      return;
    }
    if constexpr (kMaskedMemory) {
      for (size_t lane = 0; lane < kLanes; lane += kN32)
        hn::BlendedStore(hn::Load(d, src->lane + lane), mask_at(d, exec, lane), d, to + lane);
      return;
    }
  }
  if (exec == kAll) {
    if constexpr (std::is_same_v<E, B64>) {
      for (size_t lane = 0; lane < kLanes; lane += kN32)
        hn::StoreInterleaved2(hn::Load(d, src[0].lane + lane), hn::Load(d, src[1].lane + lane), d,
                              to + 2 * lane);
      return;
    }
    if constexpr (std::is_same_v<E, B128>) {
      if (kWholeVectors) {
        for (size_t lane = 0; lane < kLanes; lane += kN32)
          hn::StoreInterleaved4(hn::Load(d, src[0].lane + lane), hn::Load(d, src[1].lane + lane),
                                hn::Load(d, src[2].lane + lane), hn::Load(d, src[3].lane + lane), d,
                                to + 4 * lane);
        return;
      }
    }
    if constexpr (std::is_same_v<E, Low8> || std::is_same_v<E, Low16>) {
      using Raw = typename E::Raw;
      const hn::Rebind<Raw, D32> narrow;
      auto* raw = reinterpret_cast<Raw*>(host);
      for (size_t lane = 0; lane < kLanes; lane += kN32)
        hn::StoreU(hn::TruncateTo(narrow, hn::Load(d, src->lane + lane)), narrow, raw + lane);
      return;
    }
  }
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    store_whole(host_at(host, lane * E::kBytes), E::from_registers(src, lane));
  });
}

// Each lane has its own address: its element is at distance + address[lane].
template <class E, class Address>
HWY_INLINE void gather(uint64_t distance, const Address* address, uint64_t exec, Vgpr* dst) {
  const auto one = [&](unsigned lane) HWY_ATTR {
    E::to_registers(load_whole<typename E::Raw>(host_at(distance, address[lane])), dst, lane);
  };
  if (exec == kAll) {
    for (unsigned lane = 0; lane < kLanes; ++lane) one(lane);
  } else {
    for_each_lane(exec, one);
  }
}
template <class E, class Address>
HWY_INLINE void scatter(uint64_t distance, const Address* address, uint64_t exec, const Vgpr* src) {
  const auto one = [&](unsigned lane) HWY_ATTR {
    store_whole(host_at(distance, address[lane]), E::from_registers(src, lane));
  };
  // In lane order: when several lanes write one address, the highest lane wins, as on hardware.
  if (exec == kAll) {
    for (unsigned lane = 0; lane < kLanes; ++lane) one(lane);
  } else {
    for_each_lane(exec, one);
  }
}

#if HWY_TARGET == HWY_AVX3
// Neighbouring lanes often have addresses close together that are not consecutive: pairs at a
// distance, columns of a small matrix, one address for all lanes. Sixteen lanes within 128 bytes of
// the first are moved by permuting two vectors, at a third of the cost of sixteen moves.
inline constexpr uint32_t kWindowDwords = 32;

// Computes the dword index of each lane in the window that begins at the chunk's first active lane,
// and stores that lane's address in `first`. Returns false when a lane is outside the window or
// between dwords. Inactive lanes get index 0.
HWY_INLINE bool window_of(const GpuAddress* address, __mmask16 active, __m512i& index,
                          GpuAddress& first) {
  first = address[std::countr_zero(static_cast<unsigned>(active))];
  const __m512i base = _mm512_set1_epi64(static_cast<long long>(first));
  const __m512i low = _mm512_sub_epi64(_mm512_load_si512(address), base);
  const __m512i high = _mm512_sub_epi64(_mm512_load_si512(address + 8), base);
  // Rotated right by 2, a distance is small only if it is a multiple of 4.
  const __m512i low_index = _mm512_ror_epi64(low, 2), high_index = _mm512_ror_epi64(high, 2);
  const __m512i limit = _mm512_set1_epi64(kWindowDwords);
  const __mmask8 low_out =
      _mm512_mask_cmpge_epu64_mask(static_cast<__mmask8>(active), low_index, limit);
  const __mmask8 high_out =
      _mm512_mask_cmpge_epu64_mask(static_cast<__mmask8>(active >> 8), high_index, limit);
  index = _mm512_maskz_mov_epi32(
      active, _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(low_index)),
                                 _mm512_cvtepi64_epi32(high_index), 1));
  return (low_out | high_out) == 0;
}

// Gathers dwords from any addresses in one mapping, which ends at `end`: by window where possible,
// else one by one.
HWY_INLINE void gather_dwords(uint64_t distance, GpuAddress end, const GpuAddress* address,
                              uint64_t exec, Vgpr* dst) {
  for (unsigned lane = 0; lane < kLanes; lane += 16) {
    const auto active = static_cast<__mmask16>(exec >> lane);
    if (active == 0) continue;
    __m512i index;
    GpuAddress first;
    if (window_of(address + lane, active, index, first) && end - first >= kWindowDwords * 4) {
      const std::byte* host = host_at(distance, first);
      const __m512i value =
          _mm512_permutex2var_epi32(_mm512_loadu_si512(host), index, _mm512_loadu_si512(host + 64));
      _mm512_mask_store_epi32(dst->lane + lane, active, value);
    } else {
      // The lanes that follow are scattered too.
      gather<B32>(distance, address, exec & kAll << lane, dst);
      return;
    }
  }
}

// A window store requires lanes in ascending order. It never writes the dwords of the window that
// the lanes leave out.
HWY_INLINE void scatter_dwords(uint64_t distance, const GpuAddress* address, uint64_t exec,
                               const Vgpr* src) {
  for (unsigned lane = 0; lane < kLanes; lane += 16) {
    const auto active = static_cast<__mmask16>(exec >> lane);
    __m512i index;
    GpuAddress first;
    if (active == 0xffff && window_of(address + lane, active, index, first)) {
      const __mmask16 ascends =
          _mm512_cmpgt_epu32_mask(index, _mm512_alignr_epi32(index, index, 15));
      if ((ascends | 1) == 0xffff) {
        const auto occupied = static_cast<unsigned>(
            _mm512_reduce_or_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), index)));
        const __m512i value = _mm512_load_si512(src->lane + lane);
        std::byte* host = host_at(distance, first);
        const auto low = static_cast<__mmask16>(occupied),
                   high = static_cast<__mmask16>(occupied >> 16);
        _mm512_mask_storeu_epi32(host, low, _mm512_maskz_expand_epi32(low, value));
        if (high != 0) {
          const __mmask16 rest = _mm512_cmpge_epu32_mask(index, _mm512_set1_epi32(16));
          _mm512_mask_storeu_epi32(
              host + 64, high,
              _mm512_maskz_expand_epi32(high, _mm512_maskz_compress_epi32(rest, value)));
        }
        continue;
      }
    }
    scatter<B32>(distance, address, exec & kAll << lane, src);
    return;
  }
}
#else
HWY_INLINE void gather_dwords(uint64_t distance, GpuAddress, const GpuAddress* address,
                              uint64_t exec, Vgpr* dst) {
  gather<B32>(distance, address, exec, dst);
}
HWY_INLINE void scatter_dwords(uint64_t distance, const GpuAddress* address, uint64_t exec,
                               const Vgpr* src) {
  scatter<B32>(distance, address, exec, src);
}
#endif

struct Bounds {
  GpuAddress lowest, highest;  // of the active lanes
};

// Addresses of FLAT and GLOBAL instructions: 64 bits in two VGPRs, or an SGPR pair plus 32 bits,
// plus the offset.
HWY_INLINE Bounds lane_addresses(const Op& op, const Wave& wave, uint64_t exec,
                                 GpuAddress* address) {
  const D64 d;
  const hn::Rebind<uint32_t, D64> half;
  const bool scalar_base = op.in.saddr != 0x7f;
  const uint64_t base =
      static_cast<uint64_t>(int64_t{op.in.offset}) + (scalar_base ? wave.pair(op.in.saddr) : 0);
  const Vgpr* v = wave.vgpr + op.in.addr;
  auto lowest = hn::Set(d, kAll), highest = hn::Zero(d);
  for (size_t lane = 0; lane < kLanes; lane += kN64) {
    auto value = hn::PromoteTo(d, hn::Load(half, v[0].lane + lane));
    if (!scalar_base)
      value = hn::Or(value, hn::ShiftLeft<32>(hn::PromoteTo(d, hn::Load(half, v[1].lane + lane))));
    value = hn::Add(value, hn::Set(d, base));
    hn::Store(value, d, address + lane);
    const auto mask = mask_at(d, exec, lane);
    lowest = hn::Min(lowest, hn::IfThenElse(mask, value, hn::Set(d, kAll)));
    highest = hn::Max(highest, hn::IfThenElseZero(mask, value));
  }
  return {hn::GetLane(hn::MinOfLanes(d, lowest)), hn::GetLane(hn::MaxOfLanes(d, highest))};
}

HWY_INLINE Bounds bounds_of(uint64_t exec, const GpuAddress* address) {
  Bounds bounds{kAll, 0};
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    bounds.lowest = std::min(bounds.lowest, address[lane]);
    bounds.highest = std::max(bounds.highest, address[lane]);
  });
  return bounds;
}

// Active lanes of a FLAT instruction by aperture.
struct LanesByAperture {
  uint64_t global = 0, shared = 0, own = 0;
};
HWY_INLINE LanesByAperture lanes_by_aperture(uint64_t exec, const GpuAddress* address,
                                             Bounds bounds) {
  if (bounds.lowest >> 48 == kSharedAperture && bounds.highest >> 48 == kSharedAperture)
    return {0, exec, 0};
  if (bounds.lowest >> 48 == kPrivateAperture && bounds.highest >> 48 == kPrivateAperture)
    return {0, 0, exec};
  LanesByAperture lanes;
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    const uint64_t aperture = address[lane] >> 48;
    (aperture == kSharedAperture    ? lanes.shared
     : aperture == kPrivateAperture ? lanes.own
                                    : lanes.global) |= uint64_t{1} << lane;
  });
  return lanes;
}

// Whether the active lanes of a FLAT or GLOBAL instruction are `Bytes` apart in lane order. If so,
// `lane0` is the address for lane 0, active or not.
template <unsigned Bytes>
HWY_INLINE bool is_run(const Op& op, const Wave& wave, uint64_t exec, GpuAddress& lane0) {
  const auto first = static_cast<unsigned>(std::countr_zero(exec));
  const Vgpr* v = wave.vgpr + op.in.addr;
  const uint32_t low = v[0].lane[first] - first * Bytes;
  if (low > 0xffffffffu - kLanes * Bytes) return false;  // the sums below would wrap
  if (!is_arithmetic(v[0], exec, low, Bytes)) return false;
  const auto offset = static_cast<uint64_t>(int64_t{op.in.offset});
  if (op.in.saddr != 0x7f) {
    lane0 = wave.pair(op.in.saddr) + low + offset;
    return true;
  }
  const uint32_t high = v[1].lane[first];
  if (!is_arithmetic(v[1], exec, high, 0)) return false;
  lane0 = (GpuAddress{high} << 32 | low) + offset;
  return true;
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
