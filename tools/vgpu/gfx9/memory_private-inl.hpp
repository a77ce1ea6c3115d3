// Private memory of all lanes at once, for each SIMD target: SCRATCH, MUBUF with the scratch descriptor, and FLAT into the private aperture.
#if defined(UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP
#undef UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP
#endif

#include "gfx9/memory_lanes-inl.hpp"
#include "gfx9/observe.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {

template <class E, Access Kind>
HWY_INLINE Vgpr* data_registers(const Op& op, Wave& wave) {
  return wave.vgpr + (Kind == Access::read ? op.in.dst : op.in.src[0]);
}

// Each lane at an offset of its own. An element that does not cross a dword is one access; several whole dwords are that many, 256
// bytes apart; a misaligned one goes in pieces.
template <class E, class Observer, Access Kind>
HWY_NOINLINE const Op* private_lanes(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                     const uint32_t* offset) {
  constexpr unsigned kPieces = E::bytes < 4 ? 1 : E::bytes / 4;
  constexpr unsigned kPieceBytes = E::bytes / kPieces;
  alignas(64) GpuAddress address[kLanes];
  GpuAddress lowest = kAll, highest = 0;
  bool whole = true;
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    address[lane] = private_address(base, offset[lane], lane);
    lowest = std::min(lowest, address[lane]);
    highest = std::max(highest, address[lane]);
    whole = whole && offset[lane] % 4 + kPieceBytes <= 4;
  });
  for (unsigned piece = 0; Observer::enabled && piece < kPieces; ++piece) {
    GpuAddress observed[kLanes] = {};
    for_each_lane(exec,
                  [&](unsigned lane) HWY_ATTR { observed[lane] = address[lane] + piece * sizeof(Vgpr); });
    Observer::access(op, wave, Kind, kPieceBytes, exec, observed);
  }
  Vgpr* data = data_registers<E, Kind>(op, wave);
  const Mapping* mapping = wave.executor->mapping(op, lowest);
  const uint64_t reach = (kPieces - 1) * sizeof(Vgpr) + kPieceBytes;
  if (whole && mapping != nullptr && highest < mapping->end && mapping->end - highest >= reach &&
      mapping->permits(Kind)) {
    const uint64_t distance = host_distance(*mapping);
    if constexpr (E::bytes < 4) {
      if constexpr (Kind == Access::read)
        gather<E>(distance, address, exec, data);
      else
        scatter<E>(distance, address, exec, data);
    } else {
      for (unsigned piece = 0; piece < kPieces; ++piece) {
        if constexpr (Kind == Access::read)
          gather<B32>(distance + piece * sizeof(Vgpr), address, exec, data + piece);
        else
          scatter<B32>(distance + piece * sizeof(Vgpr), address, exec, data + piece);
      }
    }
    return next<2>(op);
  }
  for (; exec != 0; exec &= exec - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(exec));
    typename E::Raw raw;
    if constexpr (Kind == Access::write) raw = E::from_registers(data, lane);
    if (!access_private_lane(op, wave, base, lane, offset[lane], E::bytes, &raw, Kind)) return nullptr;
    if constexpr (Kind == Access::read) E::to_registers(raw, data, lane);
  }
  return next<2>(op);
}

// All lanes at one offset, as the stack is: each dword is a run.
template <class E, class Observer, Access Kind>
HWY_INLINE const Op* private_uniform(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                     uint32_t offset) {
  if constexpr (!Observer::enabled && E::bytes % 4 == 0) {
    const GpuAddress row = private_address(base, offset, 0);
    std::byte* host =
        offset % 4 == 0 ? wave.executor->translate(op, row, E::dwords * sizeof(Vgpr), Kind) : nullptr;
    if (host != nullptr) {
      Vgpr* data = data_registers<E, Kind>(op, wave);
      for (unsigned i = 0; i < E::dwords; ++i) {
        const uint64_t at = reinterpret_cast<uint64_t>(host) + i * sizeof(Vgpr);
        if constexpr (Kind == Access::read)
          load_run<B32>(at, exec, data + i);
        else
          store_run<B32>(at, exec, data + i);
      }
      return next<2>(op);
    }
  }
  uint32_t offsets[kLanes];
  std::fill_n(offsets, kLanes, offset);
  return private_lanes<E, Observer, Kind>(op, wave, exec, base, offsets);
}

// `v` holds the lanes' offsets, `added` is added to each.
template <class E, class Observer, Access Kind>
HWY_INLINE const Op* private_access(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                    const Vgpr& v, uint32_t added) {
  // Modulo: GCC 12 warns of lane 64, which exec == 0 would be.
  const uint32_t first = v.lane[static_cast<unsigned>(std::countr_zero(exec)) % kLanes];
  if (is_arithmetic(v, exec, first, 0))
    return private_uniform<E, Observer, Kind>(op, wave, exec, base, first + added);
  uint32_t offsets[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) offsets[lane] = v.lane[lane] + added;
  return private_lanes<E, Observer, Kind>(op, wave, exec, base, offsets);
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
