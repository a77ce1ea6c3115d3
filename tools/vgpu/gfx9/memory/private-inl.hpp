// Private memory of all lanes at once, for each SIMD target: SCRATCH, MUBUF with the scratch
// descriptor, and FLAT into the private aperture.
#if defined(UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP
#undef UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP
#else
#define UPTEMPO_VGPU_GFX9_MEMORY_PRIVATE_INL_HPP
#endif

#include "gfx9/memory/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {

// The unit in which an element of type E moves: whole dwords one by one, 256 bytes apart.
template <class E>
using Piece = std::conditional_t<(E::kBytes < 4), E, B32>;

// Each lane has its own offset. A misaligned element moves lane by lane.
template <class P, Access Kind>
HWY_NOINLINE const Op* private_lanes(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                     const uint32_t* offset, const Transfer& transfer) {
  alignas(64) GpuAddress address[kLanes];
  GpuAddress lowest = kAll, highest = 0;
  bool whole = true;
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    address[lane] = private_address(base, offset[lane], lane);
    lowest = std::min(lowest, address[lane]);
    highest = std::max(highest, address[lane]);
    whole = whole && offset[lane] % 4 + P::kBytes <= 4;
  });
  if (!transfer.direct()) observe_private(op, wave, exec, base, offset, transfer);
  const unsigned pieces = transfer.pieces();
  const Mapping* mapping = wave.executor->mapping(op, lowest);
  const uint64_t reach = (pieces - 1) * sizeof(Vgpr) + P::kBytes;
  if (whole && in_private_segment(wave, lowest, highest - lowest + reach) && mapping != nullptr &&
      highest < mapping->end && mapping->end - highest >= reach && mapping->permits(Kind)) {
    uint64_t distance = host_distance(*mapping);
    Vgpr* data = data_registers(op, wave, Kind);
    for (unsigned piece = 0; piece < pieces; ++piece, distance += sizeof(Vgpr)) {
      if constexpr (Kind == Access::read)
        gather<P>(distance, address, exec, data + piece);
      else
        scatter<P>(distance, address, exec, data + piece);
    }
    return next<2>(op);
  }
  return access_each_private_lane(op, wave, exec, base, offset, transfer);
}

// Moves whole dwords of all lanes at one offset: each dword is a run of 256 bytes. Returns null and
// moves nothing if the offset is not aligned or the memory is not one mapping.
template <Access Kind>
HWY_INLINE const Op* private_runs(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                  uint32_t offset, unsigned pieces) {
  if (offset % 4 != 0) return nullptr;
  const GpuAddress address = private_address(base, offset, 0);
  if (!in_private_segment(wave, address, pieces * sizeof(Vgpr))) [[unlikely]]
    return nullptr;
  const std::byte* host = wave.executor->translate(op, address, pieces * sizeof(Vgpr), Kind);
  if (host == nullptr) return nullptr;
  auto at = reinterpret_cast<uint64_t>(host);
  Vgpr* data = data_registers(op, wave, Kind);
  for (unsigned piece = 0; piece < pieces; ++piece, at += sizeof(Vgpr)) {
    if constexpr (Kind == Access::read)
      load_run<B32>(at, exec, data + piece);
    else
      store_run<B32>(at, exec, data + piece);
  }
  return next<2>(op);
}

// All lanes at one offset, as on the stack. Not inlined: the handlers of all elements share it.
template <class P, Access Kind>
HWY_NOINLINE const Op* private_uniform(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                       uint32_t offset, const Transfer& transfer) {
  if constexpr (P::kBytes == 4) {
    if (transfer.direct()) {
      if (const Op* done = private_runs<Kind>(op, wave, exec, base, offset, transfer.pieces()))
        return done;
    }
  }
  uint32_t offsets[kLanes];
  std::fill_n(offsets, kLanes, offset);
  return private_lanes<P, Kind>(op, wave, exec, base, offsets, transfer);
}

// The same for handlers that know element and policy. Runs of a stack are inlined here.
template <class E, Access Kind, MemoryPolicy Policy>
HWY_INLINE const Op* private_at(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                uint32_t offset) {
  if constexpr (E::kBytes % 4 == 0 && Policy == MemoryPolicy::direct) {
    if (const Op* done = private_runs<Kind>(op, wave, exec, base, offset, E::kBytes / 4))
      return done;
  }
  return private_uniform<Piece<E>, Kind>(op, wave, exec, base, offset, kTransfer<E, Kind, Policy>);
}

// `v` holds the lanes' offsets; `added` is added to each.
template <class P, Access Kind>
HWY_INLINE const Op* private_access(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                    const Vgpr& v, uint32_t added, const Transfer& transfer) {
  // The modulo avoids a warning of GCC 12 about lane 64, the value for exec == 0.
  const uint32_t first = v.lane[static_cast<unsigned>(std::countr_zero(exec)) % kLanes];
  if (is_arithmetic(v, exec, first, 0))
    return private_uniform<P, Kind>(op, wave, exec, base, first + added, transfer);
  uint32_t offsets[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) offsets[lane] = v.lane[lane] + added;
  return private_lanes<P, Kind>(op, wave, exec, base, offsets, transfer);
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
