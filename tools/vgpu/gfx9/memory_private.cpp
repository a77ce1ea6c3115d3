// SCRATCH and MUBUF loads and stores: private memory, and buffers with a range check.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/memory_private.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/buffer.hpp"
#include "gfx9/memory_lanes-inl.hpp"
#include "gfx9/observe.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {
namespace {

template <class E, Access Kind>
HWY_INLINE Vgpr* data_registers(const Op& op, Wave& wave) {
  return wave.vgpr + (Kind == Access::read ? op.in.dst : op.in.src[0]);
}

// Each lane at an offset of its own. An element that does not cross a dword is one access; several whole dwords are that many, 256
// bytes apart; a misaligned one goes in pieces.
template <class E, class Observer, Access Kind>
HWY_NOINLINE const Op* private_lanes(const Op& op, Wave& wave, std::uint64_t exec, GpuAddress base,
                                     const std::uint32_t* offset) {
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
  const std::uint64_t reach = (kPieces - 1) * sizeof(Vgpr) + kPieceBytes;
  if (whole && mapping != nullptr && highest < mapping->end && mapping->end - highest >= reach &&
      mapping->permits(Kind)) {
    const std::uint64_t distance = host_distance(*mapping);
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
HWY_INLINE const Op* private_uniform(const Op& op, Wave& wave, std::uint64_t exec, GpuAddress base,
                                     std::uint32_t offset) {
  if constexpr (!Observer::enabled && E::bytes % 4 == 0) {
    const GpuAddress row = private_address(base, offset, 0);
    std::byte* host =
        offset % 4 == 0 ? wave.executor->translate(op, row, E::dwords * sizeof(Vgpr), Kind) : nullptr;
    if (host != nullptr) {
      Vgpr* data = data_registers<E, Kind>(op, wave);
      for (unsigned i = 0; i < E::dwords; ++i) {
        const std::uint64_t at = reinterpret_cast<std::uint64_t>(host) + i * sizeof(Vgpr);
        if constexpr (Kind == Access::read)
          load_run<B32>(at, exec, data + i);
        else
          store_run<B32>(at, exec, data + i);
      }
      return next<2>(op);
    }
  }
  std::uint32_t offsets[kLanes];
  std::fill_n(offsets, kLanes, offset);
  return private_lanes<E, Observer, Kind>(op, wave, exec, base, offsets);
}

// `v` holds the lanes' offsets, `added` is added to each.
template <class E, class Observer, Access Kind>
HWY_INLINE const Op* private_access(const Op& op, Wave& wave, std::uint64_t exec, GpuAddress base,
                                    const Vgpr& v, std::uint32_t added) {
  const std::uint32_t first = v.lane[std::countr_zero(exec)];
  if (is_arithmetic(v, exec, first, 0))
    return private_uniform<E, Observer, Kind>(op, wave, exec, base, first + added);
  std::uint32_t offsets[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) offsets[lane] = v.lane[lane] + added;
  return private_lanes<E, Observer, Kind>(op, wave, exec, base, offsets);
}

template <class E, class Observer, Access Kind>
const Op* scratch(const Op& op, Wave& wave) {
  const std::uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  const auto offset = static_cast<std::uint32_t>(op.in.offset);
  if (op.in.saddr != 0x7f)
    return private_uniform<E, Observer, Kind>(op, wave, exec, private_base(wave),
                                              wave.scalar[op.in.saddr] + offset);
  return private_access<E, Observer, Kind>(op, wave, exec, private_base(wave), wave.vgpr[op.in.addr], offset);
}

// Any buffer, lane by lane. Dwords out of range read 0 and are not written.
template <class E, class Observer, Access Kind>
HWY_NOINLINE const Op* buffer_lanes(const Op& op, Wave& wave, std::uint64_t exec, const Buffer& buffer) {
  constexpr unsigned kPieces = E::bytes < 4 ? 1 : E::bytes / 4;
  constexpr unsigned kPieceBytes = E::bytes / kPieces;
  Vgpr* data = data_registers<E, Kind>(op, wave);
  for (; exec != 0; exec &= exec - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(exec));
    typename E::Raw raw{};
    if constexpr (Kind == Access::write) raw = E::from_registers(data, lane);
    for (unsigned piece = 0; piece < kPieces; ++piece) {
      const auto address = buffer.address(op, wave, lane, piece * 4, kPieceBytes);
      if (!address) continue;
      if constexpr (Observer::enabled) {
        GpuAddress observed[kLanes] = {};
        observed[lane] = *address;
        Observer::access(op, wave, Kind, kPieceBytes, std::uint64_t{1} << lane, observed);
      }
      auto* at = reinterpret_cast<std::byte*>(&raw) + 4 * piece;
      if (!access_lane(op, wave, Space::global, lane, *address, kPieceBytes, at, Kind)) return nullptr;
    }
    if constexpr (Kind == Access::read) E::to_registers(raw, data, lane);
  }
  return next<2>(op);
}

template <class E, class Observer, Access Kind>
const Op* buffer(const Op& op, Wave& wave) {
  const std::uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  const Buffer buffer(op, wave);
  // The range check of the private segment's descriptor is left to the page map: it spans the queue's scratch as a whole.
  if (buffer.is_private_segment() && !op.in.idxen) {
    const auto offset = static_cast<std::uint32_t>(op.in.offset);
    if (op.in.offen)
      return private_access<E, Observer, Kind>(op, wave, exec, buffer.start(), wave.vgpr[op.in.addr], offset);
    return private_uniform<E, Observer, Kind>(op, wave, exec, buffer.start(), offset);
  }
  return buffer_lanes<E, Observer, Kind>(op, wave, exec, buffer);
}

template <class E, class Observer, Access Kind>
Handler either(Opcode opcode, Opcode scratch_form) {
  return opcode == scratch_form ? &scratch<E, Observer, Kind> : &buffer<E, Observer, Kind>;
}

template <class Observer>
Handler choose(Opcode opcode) {
  using enum Opcode;
  constexpr Access kRead = Access::read, kWrite = Access::write;
  switch (opcode) {
    case scratch_load_ubyte:
    case buffer_load_ubyte:
      return either<U8, Observer, kRead>(opcode, scratch_load_ubyte);
    case scratch_load_sbyte:
    case buffer_load_sbyte:
      return either<I8, Observer, kRead>(opcode, scratch_load_sbyte);
    case scratch_load_ushort:
    case buffer_load_ushort:
      return either<U16, Observer, kRead>(opcode, scratch_load_ushort);
    case scratch_load_sshort:
    case buffer_load_sshort:
      return either<I16, Observer, kRead>(opcode, scratch_load_sshort);
    case scratch_load_dword:
    case buffer_load_dword:
      return either<B32, Observer, kRead>(opcode, scratch_load_dword);
    case scratch_load_dwordx2:
    case buffer_load_dwordx2:
      return either<B64, Observer, kRead>(opcode, scratch_load_dwordx2);
    case scratch_load_dwordx3:
    case buffer_load_dwordx3:
      return either<B96, Observer, kRead>(opcode, scratch_load_dwordx3);
    case scratch_load_dwordx4:
    case buffer_load_dwordx4:
      return either<B128, Observer, kRead>(opcode, scratch_load_dwordx4);
    case scratch_load_ubyte_d16:
    case buffer_load_ubyte_d16:
      return either<U8Low, Observer, kRead>(opcode, scratch_load_ubyte_d16);
    case scratch_load_ubyte_d16_hi:
    case buffer_load_ubyte_d16_hi:
      return either<U8High, Observer, kRead>(opcode, scratch_load_ubyte_d16_hi);
    case scratch_load_sbyte_d16:
    case buffer_load_sbyte_d16:
      return either<I8Low, Observer, kRead>(opcode, scratch_load_sbyte_d16);
    case scratch_load_sbyte_d16_hi:
    case buffer_load_sbyte_d16_hi:
      return either<I8High, Observer, kRead>(opcode, scratch_load_sbyte_d16_hi);
    case scratch_load_short_d16:
    case buffer_load_short_d16:
      return either<B16Low, Observer, kRead>(opcode, scratch_load_short_d16);
    case scratch_load_short_d16_hi:
    case buffer_load_short_d16_hi:
      return either<B16High, Observer, kRead>(opcode, scratch_load_short_d16_hi);
    case scratch_store_byte:
    case buffer_store_byte:
      return either<Low8, Observer, kWrite>(opcode, scratch_store_byte);
    case scratch_store_byte_d16_hi:
    case buffer_store_byte_d16_hi:
      return either<High8, Observer, kWrite>(opcode, scratch_store_byte_d16_hi);
    case scratch_store_short:
    case buffer_store_short:
      return either<Low16, Observer, kWrite>(opcode, scratch_store_short);
    case scratch_store_short_d16_hi:
    case buffer_store_short_d16_hi:
      return either<High16, Observer, kWrite>(opcode, scratch_store_short_d16_hi);
    case scratch_store_dword:
    case buffer_store_dword:
      return either<B32, Observer, kWrite>(opcode, scratch_store_dword);
    case scratch_store_dwordx2:
    case buffer_store_dwordx2:
      return either<B64, Observer, kWrite>(opcode, scratch_store_dwordx2);
    case scratch_store_dwordx3:
    case buffer_store_dwordx3:
      return either<B96, Observer, kWrite>(opcode, scratch_store_dwordx3);
    case scratch_store_dwordx4:
    case buffer_store_dwordx4:
      return either<B128, Observer, kWrite>(opcode, scratch_store_dwordx4);
    default:
      return nullptr;
  }
}

}  // namespace

Handler choose_private(Opcode opcode, Observation observation) {
  return observation == Observation::on ? choose<Observed>(opcode) : choose<Unobserved>(opcode);
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uptempo::vgpu::gfx9::memory {

// Every access goes to memory that all agents see: there is no cache to write back or invalidate.
static const Op* no_cache(const Op& op, Wave&) { return next<2>(op); }

Handler translate_private(const Instruction& in, Observation observation) noexcept {
  switch (in.opcode) {
    case Opcode::buffer_wbinvl1:
    case Opcode::buffer_wbinvl1_vol:
    case Opcode::buffer_wbl2:
    case Opcode::buffer_invl2:
      return &no_cache;
    default:
      break;
  }
  if (in.lds) return nullptr;  // loads that go to LDS instead of a register
  return for_simd(N_AVX3::choose_private, N_AVX2::choose_private, N_SSE4::choose_private)(in.opcode,
                                                                                          observation);
}

}  // namespace uptempo::vgpu::gfx9::memory
#endif
