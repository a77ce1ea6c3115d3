// FLAT and GLOBAL loads and stores.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/memory_flat.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/memory_private-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {
namespace {

HWY_INLINE uint64_t span_bytes(uint64_t exec, unsigned bytes) {
  return static_cast<uint64_t>(64 - std::countl_zero(exec) - std::countr_zero(exec)) * bytes;
}

// Each lane at an address of its own, all within [begin, end) of the host memory at begin + distance.
template <class E, Access Kind>
HWY_INLINE void move_lanes(uint64_t distance, GpuAddress end, const GpuAddress* address,
                           uint64_t exec, Vgpr* data) {
  if constexpr (Kind == Access::read && std::is_same_v<E, B32>) {
    gather_dwords(distance, end, address, exec, data);
  } else if constexpr (Kind == Access::read) {
    gather<E>(distance, address, exec, data);
  } else if constexpr (std::is_same_v<E, B32>) {
    scatter_dwords(distance, address, exec, data);
  } else {
    scatter<E>(distance, address, exec, data);
  }
}

// Lanes in the shared aperture.
template <class E, Access Kind>
HWY_NOINLINE const Op* access_shared(const Op& op, Wave& wave, uint64_t exec, const GpuAddress* address,
                                     Bounds bounds) {
  constexpr GpuAddress kBegin = aperture_base(kSharedAperture);
  if (bounds.highest - kBegin + E::bytes > wave.lds_bytes)
    return stop_memory_fault(op, wave, bounds.highest, Kind);
  move_lanes<E, Kind>(reinterpret_cast<uint64_t>(wave.lds) - kBegin, kBegin + wave.lds_bytes, address,
                      exec, data_registers<E, Kind>(op, wave));
  return next<2>(op);
}

// Lanes in the private aperture.
template <class E, class Observer, Access Kind>
HWY_NOINLINE const Op* access_private(const Op& op, Wave& wave, uint64_t exec,
                                      const GpuAddress* address) {
  Vgpr offset;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    offset.lane[lane] = static_cast<uint32_t>(address[lane]);
  return private_access<E, Observer, Kind>(op, wave, exec, private_base(wave), offset, 0);
}

// The general form: any addresses. Lanes that FLAT leads to LDS or private memory are served together and apart from the others. Within one
// mapping the others need one check together.
template <class E, class Observer, Access Kind>
HWY_NOINLINE const Op* access_scattered(const Op& op, Wave& wave, uint64_t exec) {
  alignas(64) GpuAddress address[kLanes];
  Bounds bounds = lane_addresses(op, wave, exec, address);
  if (op.in.segment == FlatSegment::flat && bounds.highest >> 48 != 0) {
    const LanesByAperture lanes = lanes_by_aperture(exec, address, bounds);
    if (lanes.shared != 0) {
      const Bounds within = lanes.shared == exec ? bounds : bounds_of(lanes.shared, address);
      if (access_shared<E, Kind>(op, wave, lanes.shared, address, within) == nullptr) return nullptr;
    }
    if (lanes.own != 0 && access_private<E, Observer, Kind>(op, wave, lanes.own, address) == nullptr)
      return nullptr;
    exec = lanes.global;
    if (exec == 0) return next<2>(op);
    bounds = bounds_of(exec, address);
  }
  Observer::access(op, wave, Kind, E::bytes, exec, address);
  Vgpr* data = data_registers<E, Kind>(op, wave);
  if constexpr (!Observer::cached) {
    const Mapping* mapping = wave.executor->mapping(op, bounds.lowest);
    if (mapping != nullptr && bounds.highest < mapping->end && mapping->end - bounds.highest >= E::bytes &&
        mapping->permits(Kind)) {
      move_lanes<E, Kind>(host_distance(*mapping), mapping->end, address, exec, data);
      return next<2>(op);
    }
  }
  for (; exec != 0; exec &= exec - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(exec));
    typename E::Raw raw;
    if constexpr (Kind == Access::write) raw = E::from_registers(data, lane);
    if (!access_lane<Observer>(op, wave, address[lane], E::bytes, &raw, Kind)) return nullptr;
    if constexpr (Kind == Access::read) E::to_registers(raw, data, lane);
  }
  return next<2>(op);
}

template <class E, class Observer, Access Kind>
const Op* access(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  if constexpr (!Observer::enabled) {
    GpuAddress lane0;
    if (is_run<E::bytes>(op, wave, exec, lane0) && lane0 >> 48 == 0) {
      const GpuAddress first = static_cast<unsigned>(std::countr_zero(exec)) * E::bytes;
      const std::byte* host = wave.executor->translate(op, lane0 + first, span_bytes(exec, E::bytes), Kind);
      if (host != nullptr) {
        const uint64_t host0 = reinterpret_cast<uint64_t>(host) - first;
        if constexpr (Kind == Access::read) {
          load_run<E>(host0, exec, wave.vgpr + op.in.dst);
        } else {
          store_run<E>(host0, exec, wave.vgpr + op.in.src[0]);
        }
        return next<2>(op);
      }
    }
  }
  return access_scattered<E, Observer, Kind>(op, wave, exec);
}

template <class Observer>
Handler choose(Opcode opcode) {
  using enum Opcode;
  switch (opcode) {
    case flat_load_ubyte:
    case global_load_ubyte:
      return &access<U8, Observer, Access::read>;
    case flat_load_sbyte:
    case global_load_sbyte:
      return &access<I8, Observer, Access::read>;
    case flat_load_ushort:
    case global_load_ushort:
      return &access<U16, Observer, Access::read>;
    case flat_load_sshort:
    case global_load_sshort:
      return &access<I16, Observer, Access::read>;
    case flat_load_dword:
    case global_load_dword:
      return &access<B32, Observer, Access::read>;
    case flat_load_dwordx2:
    case global_load_dwordx2:
      return &access<B64, Observer, Access::read>;
    case flat_load_dwordx3:
    case global_load_dwordx3:
      return &access<B96, Observer, Access::read>;
    case flat_load_dwordx4:
    case global_load_dwordx4:
      return &access<B128, Observer, Access::read>;
    case flat_load_ubyte_d16:
    case global_load_ubyte_d16:
      return &access<U8Low, Observer, Access::read>;
    case flat_load_ubyte_d16_hi:
    case global_load_ubyte_d16_hi:
      return &access<U8High, Observer, Access::read>;
    case flat_load_sbyte_d16:
    case global_load_sbyte_d16:
      return &access<I8Low, Observer, Access::read>;
    case flat_load_sbyte_d16_hi:
    case global_load_sbyte_d16_hi:
      return &access<I8High, Observer, Access::read>;
    case flat_load_short_d16:
    case global_load_short_d16:
      return &access<B16Low, Observer, Access::read>;
    case flat_load_short_d16_hi:
    case global_load_short_d16_hi:
      return &access<B16High, Observer, Access::read>;
    case flat_store_byte:
    case global_store_byte:
      return &access<Low8, Observer, Access::write>;
    case flat_store_byte_d16_hi:
    case global_store_byte_d16_hi:
      return &access<High8, Observer, Access::write>;
    case flat_store_short:
    case global_store_short:
      return &access<Low16, Observer, Access::write>;
    case flat_store_short_d16_hi:
    case global_store_short_d16_hi:
      return &access<High16, Observer, Access::write>;
    case flat_store_dword:
    case global_store_dword:
      return &access<B32, Observer, Access::write>;
    case flat_store_dwordx2:
    case global_store_dwordx2:
      return &access<B64, Observer, Access::write>;
    case flat_store_dwordx3:
    case global_store_dwordx3:
      return &access<B96, Observer, Access::write>;
    case flat_store_dwordx4:
    case global_store_dwordx4:
      return &access<B128, Observer, Access::write>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler choose_flat(Opcode opcode, MemoryPolicy policy) {
  return with_observer(policy, [opcode]<class Observer>() { return choose<Observer>(opcode); });
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uptempo::vgpu::gfx9::memory {

Handler translate_flat(const Instruction& in, MemoryPolicy policy) noexcept {
  if (in.lds) return nullptr;  // loads that go to LDS instead of a register
  return for_simd(N_AVX3::choose_flat, N_AVX2::choose_flat, N_SSE4::choose_flat)(in.opcode, policy);
}

}  // namespace uptempo::vgpu::gfx9::memory
#endif
