// SCRATCH and MUBUF loads and stores: private memory, and buffers with a range check.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/memory_private.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/buffer.hpp"
#include "gfx9/memory_private-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {
namespace {

template <class E, class Observer, Access Kind>
const Op* scratch(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  const auto offset = static_cast<uint32_t>(op.in.offset);
  if (op.in.saddr != 0x7f)
    return private_uniform<E, Observer, Kind>(op, wave, exec, private_base(wave),
                                              wave.scalar[op.in.saddr] + offset);
  return private_access<E, Observer, Kind>(op, wave, exec, private_base(wave), wave.vgpr[op.in.addr], offset);
}

// Any buffer, lane by lane. Dwords out of range read 0 and are not written.
template <class E, class Observer, Access Kind>
HWY_NOINLINE const Op* buffer_lanes(const Op& op, Wave& wave, uint64_t exec, const Buffer& buffer) {
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
        Observer::access(op, wave, Kind, kPieceBytes, uint64_t{1} << lane, observed);
      }
      auto* at = reinterpret_cast<std::byte*>(&raw) + 4 * piece;
      if (!access_lane<Observer>(op, wave, *address, kPieceBytes, at, Kind)) return nullptr;
    }
    if constexpr (Kind == Access::read) E::to_registers(raw, data, lane);
  }
  return next<2>(op);
}

template <class E, class Observer, Access Kind>
const Op* buffer(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  const Buffer buffer(op, wave);
  // The range check of the private segment's descriptor is left to the page map: it spans the queue's scratch as a whole.
  if (buffer.is_private_segment() && !op.in.idxen) {
    const auto offset = static_cast<uint32_t>(op.in.offset);
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

Handler choose_private(Opcode opcode, MemoryPolicy policy) {
  return with_observer(policy, [opcode]<class Observer>() { return choose<Observer>(opcode); });
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uptempo::vgpu::gfx9::memory {

Handler translate_private(const Instruction& in, MemoryPolicy policy) noexcept {
  if (in.lds) return nullptr;  // loads that go to LDS instead of a register
  return for_simd(N_AVX3::choose_private, N_AVX2::choose_private, N_SSE4::choose_private)(in.opcode, policy);
}

}  // namespace uptempo::vgpu::gfx9::memory
#endif
