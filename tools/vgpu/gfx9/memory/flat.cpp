// FLAT and GLOBAL loads and stores.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/memory/flat.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/memory/private-inl.hpp"
#include "gfx9/observe.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {
namespace {

HWY_INLINE uint64_t span_bytes(uint64_t exec, unsigned bytes) {
  return static_cast<uint64_t>(64 - std::countl_zero(exec) - std::countr_zero(exec)) * bytes;
}

// Each lane has its own address. All addresses are in [begin, end) of the host memory at begin +
// distance.
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
HWY_NOINLINE const Op* access_shared(const Op& op, Wave& wave, uint64_t exec,
                                     const GpuAddress* address, Bounds bounds) {
  constexpr GpuAddress kBegin = aperture_base(kSharedAperture);
  if (bounds.highest - kBegin + E::kBytes > wave.lds_bytes)
    return stop_memory_fault(op, wave, bounds.highest, Kind);
  move_lanes<E, Kind>(reinterpret_cast<uint64_t>(wave.lds) - kBegin, kBegin + wave.lds_bytes,
                      address, exec, data_registers(op, wave, Kind));
  return next<2>(op);
}

// Lanes in the private aperture.
template <class P, Access Kind>
HWY_NOINLINE const Op* access_private(const Op& op, Wave& wave, uint64_t exec,
                                      const GpuAddress* address, const Transfer& transfer) {
  Vgpr offset;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    offset.lane[lane] = static_cast<uint32_t>(address[lane]);
  return private_access<P, Kind>(op, wave, exec, private_base(wave), offset, 0, transfer);
}

// The general form: any addresses. Lanes in LDS, lanes in private memory and the other lanes are
// served in three groups. Lanes of the last group within one mapping need one check together.
template <class E, Access Kind>
HWY_NOINLINE const Op* access_scattered(const Op& op, Wave& wave, uint64_t exec,
                                        const Transfer& transfer) {
  alignas(64) GpuAddress address[kLanes];
  Bounds bounds = lane_addresses(op, wave, exec, address);
  if (op.in.segment == FlatSegment::flat && bounds.highest >> 48 != 0) {
    const LanesByAperture lanes = lanes_by_aperture(exec, address, bounds);
    if (lanes.shared != 0) {
      if (!transfer.direct()) observe_shared(op, wave, lanes.shared, Kind, E::kBytes, address);
      const Bounds within = lanes.shared == exec ? bounds : bounds_of(lanes.shared, address);
      if (access_shared<E, Kind>(op, wave, lanes.shared, address, within) == nullptr)
        return nullptr;
    }
    if (lanes.own != 0 &&
        access_private<Piece<E>, Kind>(op, wave, lanes.own, address, transfer) == nullptr)
      return nullptr;
    exec = lanes.global;
    if (exec == 0) return next<2>(op);
    bounds = bounds_of(exec, address);
  }
  if (!transfer.direct()) {
    const auto changing = [&] { return changing_lanes(op, wave, exec, address, transfer); };
    Observed::access(op, wave, Kind, E::kBytes, exec, address, ChangingLanes(changing));
  }
  if (transfer.policy != MemoryPolicy::cached) {
    const Mapping* mapping = wave.executor->mapping(op, bounds.lowest);
    if (mapping != nullptr && bounds.highest < mapping->end &&
        mapping->end - bounds.highest >= E::kBytes && mapping->permits(Kind)) {
      move_lanes<E, Kind>(host_distance(*mapping), mapping->end, address, exec,
                          data_registers(op, wave, Kind));
      if (!transfer.direct()) Observed::accessed(op, wave, Kind, E::kBytes, exec, address);
      return next<2>(op);
    }
  }
  const Op* const after = access_each_lane(op, wave, exec, address, transfer);
  if (after != nullptr && !transfer.direct())
    Observed::accessed(op, wave, Kind, E::kBytes, exec, address);
  return after;
}

template <unsigned Bytes>
HWY_NOINLINE bool is_run_shared(const Op& op, const Wave& wave, uint64_t exec, GpuAddress& lane0) {
  return is_run<Bytes>(op, wave, exec, lane0);
}
// Inlined only for single dwords, the most frequent size. The other elements of one size share one
// function.
template <class E>
HWY_INLINE bool is_run_of(const Op& op, const Wave& wave, uint64_t exec, GpuAddress& lane0) {
  if constexpr (std::is_same_v<E, B32>) {
    return is_run<E::kBytes>(op, wave, exec, lane0);
  } else {
    return is_run_shared<E::kBytes>(op, wave, exec, lane0);
  }
}

template <class E, Access Kind, MemoryPolicy Policy>
const Op* access(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  if constexpr (Policy == MemoryPolicy::direct) {
    GpuAddress lane0;
    if (is_run_of<E>(op, wave, exec, lane0) && lane0 >> 48 == 0) {
      const GpuAddress first = static_cast<unsigned>(std::countr_zero(exec)) * E::kBytes;
      const std::byte* host =
          wave.executor->translate(op, lane0 + first, span_bytes(exec, E::kBytes), Kind);
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
  return access_scattered<E, Kind>(op, wave, exec, kTransfer<E, Kind, Policy>);
}

template <MemoryPolicy Policy>
Handler choose(Opcode opcode) {
  using enum Opcode;
  switch (opcode) {
    case flat_load_ubyte:
    case global_load_ubyte:
      return &access<U8, Access::read, Policy>;
    case flat_load_sbyte:
    case global_load_sbyte:
      return &access<I8, Access::read, Policy>;
    case flat_load_ushort:
    case global_load_ushort:
      return &access<U16, Access::read, Policy>;
    case flat_load_sshort:
    case global_load_sshort:
      return &access<I16, Access::read, Policy>;
    case flat_load_dword:
    case global_load_dword:
      return &access<B32, Access::read, Policy>;
    case flat_load_dwordx2:
    case global_load_dwordx2:
      return &access<B64, Access::read, Policy>;
    case flat_load_dwordx3:
    case global_load_dwordx3:
      return &access<B96, Access::read, Policy>;
    case flat_load_dwordx4:
    case global_load_dwordx4:
      return &access<B128, Access::read, Policy>;
    case flat_load_ubyte_d16:
    case global_load_ubyte_d16:
      return &access<U8Low, Access::read, Policy>;
    case flat_load_ubyte_d16_hi:
    case global_load_ubyte_d16_hi:
      return &access<U8High, Access::read, Policy>;
    case flat_load_sbyte_d16:
    case global_load_sbyte_d16:
      return &access<I8Low, Access::read, Policy>;
    case flat_load_sbyte_d16_hi:
    case global_load_sbyte_d16_hi:
      return &access<I8High, Access::read, Policy>;
    case flat_load_short_d16:
    case global_load_short_d16:
      return &access<B16Low, Access::read, Policy>;
    case flat_load_short_d16_hi:
    case global_load_short_d16_hi:
      return &access<B16High, Access::read, Policy>;
    case flat_store_byte:
    case global_store_byte:
      return &access<Low8, Access::write, Policy>;
    case flat_store_byte_d16_hi:
    case global_store_byte_d16_hi:
      return &access<High8, Access::write, Policy>;
    case flat_store_short:
    case global_store_short:
      return &access<Low16, Access::write, Policy>;
    case flat_store_short_d16_hi:
    case global_store_short_d16_hi:
      return &access<High16, Access::write, Policy>;
    case flat_store_dword:
    case global_store_dword:
      return &access<B32, Access::write, Policy>;
    case flat_store_dwordx2:
    case global_store_dwordx2:
      return &access<B64, Access::write, Policy>;
    case flat_store_dwordx3:
    case global_store_dwordx3:
      return &access<B96, Access::write, Policy>;
    case flat_store_dwordx4:
    case global_store_dwordx4:
      return &access<B128, Access::write, Policy>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler choose_flat(Opcode opcode, MemoryPolicy policy) {
  return with_policy(policy, [opcode]<MemoryPolicy Policy>() { return choose<Policy>(opcode); });
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uptempo::vgpu::gfx9::memory {

Handler translate_flat(const Instruction& in, MemoryPolicy policy) noexcept {
  if (in.lds) return nullptr;  // to_lds.cpp
  return for_simd(N_AVX3::choose_flat, N_AVX2::choose_flat, N_SSE4::choose_flat)(in.opcode, policy);
}

}  // namespace uptempo::vgpu::gfx9::memory
#endif
