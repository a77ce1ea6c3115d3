// DS loads and stores. Only the worker that runs a workgroup touches its LDS, so none of this is
// atomic. Elements out of range read 0 and are not written.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/memory/lds.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/memory/lanes-inl.hpp"
#include "gfx9/observe.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {
namespace {

template <class E, Access Kind>
HWY_NOINLINE void lds_lanes(Wave& wave, uint64_t exec, const Vgpr& base, uint32_t offset,
                            Vgpr* data) {
  const D32 d;
  alignas(64) uint32_t address[kLanes];
  auto highest = hn::Zero(d);
  for (size_t lane = 0; lane < kLanes; lane += kN32) {
    const auto value = hn::Add(hn::Load(d, base.lane + lane), hn::Set(d, offset));
    hn::Store(value, d, address + lane);
    highest = hn::Max(highest, hn::IfThenElseZero(mask_at(d, exec, lane), value));
  }
  const auto lds = reinterpret_cast<uint64_t>(wave.lds);
  if (uint64_t{hn::GetLane(hn::MaxOfLanes(d, highest))} + E::kBytes <= wave.lds_bytes) {
    if constexpr (Kind == Access::read)
      gather<E>(lds, address, exec, data);
    else
      scatter<E>(lds, address, exec, data);
    return;
  }
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    const bool inside = uint64_t{address[lane]} + E::kBytes <= wave.lds_bytes;
    if constexpr (Kind == Access::read) {
      typename E::Raw raw{};
      if (inside) raw = load_whole<typename E::Raw>(wave.lds + address[lane]);
      E::to_registers(raw, data, lane);
    } else if (inside) {
      store_whole(wave.lds + address[lane], E::from_registers(data, lane));
    }
  });
}

template <class E, Access Kind>
HWY_INLINE void lds_access(Wave& wave, uint64_t exec, const Vgpr& base, uint32_t offset,
                           Vgpr* data) {
  const auto first = static_cast<unsigned>(std::countr_zero(exec));
  const uint32_t lane0 = base.lane[first] - first * E::kBytes;
  const auto from = static_cast<uint64_t>(lane0 + offset + first * E::kBytes);
  const auto span = (64 - static_cast<uint64_t>(std::countl_zero(exec)) - first) * E::kBytes;
  if (from + span <= wave.lds_bytes && is_arithmetic(base, exec, lane0, E::kBytes)) {
    const uint64_t host = reinterpret_cast<uint64_t>(wave.lds) + from - first * E::kBytes;
    if constexpr (Kind == Access::read)
      load_run<E>(host, exec, data);
    else
      store_run<E>(host, exec, data);
    return;
  }
  lds_lanes<E, Kind>(wave, exec, base, offset, data);
}

// The lanes of a store whose value differs from what LDS holds.
template <class E>
uint64_t changing_lds_lanes(const Wave& wave, uint64_t exec, const Vgpr& base, uint32_t offset,
                            const Vgpr* data) {
  uint64_t changes = 0;
  for_each_lane(exec, [&](unsigned lane) HWY_ATTR {
    const uint32_t at = base.lane[lane] + offset;
    const typename E::Raw raw = E::from_registers(data, lane);
    if (uint64_t{at} + E::kBytes > wave.lds_bytes ||
        std::memcmp(wave.lds + at, &raw, E::kBytes) != 0)
      changes |= uint64_t{1} << lane;
  });
  return changes;
}

template <class E, Access Kind, MemoryPolicy Policy>
const Op* one(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  Vgpr* data = wave.vgpr + (Kind == Access::read ? op.in.dst : op.in.src[0]);
  if constexpr (Policy != MemoryPolicy::direct) {
    const auto offset = static_cast<uint32_t>(op.in.offset);
    const auto changing = [&, exec, offset] {
      if constexpr (Kind == Access::write)
        return changing_lds_lanes<E>(wave, exec, wave.vgpr[op.in.addr], offset, data);
      else
        return exec;
    };
    observe_lds(op, wave, Kind, E::kBytes, wave.vgpr[op.in.addr], offset, false,
                ChangingLanes(changing));
  }
  lds_access<E, Kind>(wave, exec, wave.vgpr[op.in.addr], static_cast<uint32_t>(op.in.offset), data);
  return next<2>(op);
}

// Notifies the observer of both elements.
template <class E, unsigned Unit, Access Kind, MemoryPolicy Policy>
HWY_INLINE void observe_two(const Op& op, const Wave& wave) {
  if constexpr (Policy != MemoryPolicy::direct) {
    const auto offsets = static_cast<uint32_t>(op.in.offset);
    const Vgpr& base = wave.vgpr[op.in.addr];
    for (const unsigned i : {0u, 1u}) {
      const uint32_t offset = (offsets >> (8 * i) & 0xff) * Unit;
      const auto changing = [&] {
        if constexpr (Kind == Access::write)
          return changing_lds_lanes<E>(wave, wave.exec(), base, offset, wave.vgpr + op.in.src[i]);
        else
          return wave.exec();
      };
      observe_lds(op, wave, Kind, E::kBytes, base, offset, false, ChangingLanes(changing));
    }
  }
}

// Two elements at 8-bit offsets in units of `Unit` bytes.
template <class E, unsigned Unit, MemoryPolicy Policy>
const Op* load_two(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  observe_two<E, Unit, Access::read, Policy>(op, wave);
  const Vgpr base = wave.vgpr[op.in.addr];  // a copy: the first result may replace it
  const auto offsets = static_cast<uint32_t>(op.in.offset);
  lds_access<E, Access::read>(wave, exec, base, (offsets & 0xff) * Unit, wave.vgpr + op.in.dst);
  lds_access<E, Access::read>(wave, exec, base, (offsets >> 8) * Unit,
                              wave.vgpr + op.in.dst + E::kDwords);
  return next<2>(op);
}
template <class E, unsigned Unit, MemoryPolicy Policy>
const Op* store_two(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  observe_two<E, Unit, Access::write, Policy>(op, wave);
  const Vgpr& base = wave.vgpr[op.in.addr];
  const auto offsets = static_cast<uint32_t>(op.in.offset);
  lds_access<E, Access::write>(wave, exec, base, (offsets & 0xff) * Unit, wave.vgpr + op.in.src[0]);
  lds_access<E, Access::write>(wave, exec, base, (offsets >> 8) * Unit, wave.vgpr + op.in.src[1]);
  return next<2>(op);
}

template <MemoryPolicy Policy>
Handler choose(Opcode opcode) {
  using enum Opcode;
  switch (opcode) {
    case ds_read_u8:
      return &one<U8, Access::read, Policy>;
    case ds_read_i8:
      return &one<I8, Access::read, Policy>;
    case ds_read_u16:
      return &one<U16, Access::read, Policy>;
    case ds_read_i16:
      return &one<I16, Access::read, Policy>;
    case ds_read_u8_d16:
      return &one<U8Low, Access::read, Policy>;
    case ds_read_u8_d16_hi:
      return &one<U8High, Access::read, Policy>;
    case ds_read_i8_d16:
      return &one<I8Low, Access::read, Policy>;
    case ds_read_i8_d16_hi:
      return &one<I8High, Access::read, Policy>;
    case ds_read_u16_d16:
      return &one<B16Low, Access::read, Policy>;
    case ds_read_u16_d16_hi:
      return &one<B16High, Access::read, Policy>;
    case ds_read_b32:
      return &one<B32, Access::read, Policy>;
    case ds_read_b64:
      return &one<B64, Access::read, Policy>;
    case ds_read_b96:
      return &one<B96, Access::read, Policy>;
    case ds_read_b128:
      return &one<B128, Access::read, Policy>;
    case ds_write_b8:
      return &one<Low8, Access::write, Policy>;
    case ds_write_b8_d16_hi:
      return &one<High8, Access::write, Policy>;
    case ds_write_b16:
      return &one<Low16, Access::write, Policy>;
    case ds_write_b16_d16_hi:
      return &one<High16, Access::write, Policy>;
    case ds_write_b32:
      return &one<B32, Access::write, Policy>;
    case ds_write_b64:
      return &one<B64, Access::write, Policy>;
    case ds_write_b96:
      return &one<B96, Access::write, Policy>;
    case ds_write_b128:
      return &one<B128, Access::write, Policy>;
    case ds_read2_b32:
      return &load_two<B32, 4, Policy>;
    case ds_read2_b64:
      return &load_two<B64, 8, Policy>;
    case ds_read2st64_b32:
      return &load_two<B32, 4 * 64, Policy>;
    case ds_read2st64_b64:
      return &load_two<B64, 8 * 64, Policy>;
    case ds_write2_b32:
      return &store_two<B32, 4, Policy>;
    case ds_write2_b64:
      return &store_two<B64, 8, Policy>;
    case ds_write2st64_b32:
      return &store_two<B32, 4 * 64, Policy>;
    case ds_write2st64_b64:
      return &store_two<B64, 8 * 64, Policy>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler choose_lds(Opcode opcode, MemoryPolicy policy) {
  return with_policy(policy, [opcode]<MemoryPolicy Policy>() {
    // Caches do not hold LDS.
    return choose < Policy == MemoryPolicy::direct ? Policy : MemoryPolicy::observed > (opcode);
  });
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uptempo::vgpu::gfx9::memory {

Handler translate_lds(const Instruction& in, MemoryPolicy policy) noexcept {
  return for_simd(N_AVX3::choose_lds, N_AVX2::choose_lds, N_SSE4::choose_lds)(in.opcode, policy);
}

}  // namespace uptempo::vgpu::gfx9::memory
#endif
