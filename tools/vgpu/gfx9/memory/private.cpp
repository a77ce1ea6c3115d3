// SCRATCH and MUBUF loads and stores: private memory, and buffers with a range check.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/memory/private.cpp"
#include <hwy/foreach_target.h>

#include "gfx9/memory/buffer.hpp"
#include "gfx9/memory/private-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE {
namespace {

// Offsets are in the address register, plus `uniform`. Not inlined: the handlers of all elements
// and policies share it.
template <class P, Access Kind>
HWY_NOINLINE const Op* private_by_register(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                           uint32_t uniform, const Transfer& transfer) {
  return private_access<P, Kind>(op, wave, exec, base, wave.vgpr[op.in.addr], uniform, transfer);
}

template <class E, Access Kind, MemoryPolicy Policy>
const Op* scratch(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  constexpr const Transfer& kThis = kTransfer<E, Kind, Policy>;
  const uint32_t uniform =
      static_cast<uint32_t>(op.in.offset) + (op.in.saddr == 0x7f ? 0 : wave.scalar[op.in.saddr]);
  if (!op.in.no_address)
    return private_by_register<Piece<E>, Kind>(op, wave, exec, private_base(wave), uniform, kThis);
  return private_at<E, Kind, Policy>(op, wave, exec, private_base(wave), uniform);
}

// Whether a descriptor with this base is that of the queue's scratch. Kernels add the offset of
// their wave to the base, or to the offset in SOFFSET.
bool is_scratch(const Wave& wave, GpuAddress base) noexcept {
  const DispatchState& dispatch = wave.workgroup->dispatch();
  return dispatch.scratch_bytes == 0 || base - dispatch.scratch_base < dispatch.scratch_bytes;
}

template <class E, Access Kind, MemoryPolicy Policy>
const Op* buffer(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  constexpr const Transfer& kThis = kTransfer<E, Kind, Policy>;
  const Buffer buffer(op, wave);
  // The wave's own segment replaces the range check of the private segment's descriptor, which
  // spans the whole scratch of the queue.
  if (buffer.is_private_segment() && !op.in.idxen && is_scratch(wave, buffer.base())) {
    if (op.in.offen)
      return private_by_register<Piece<E>, Kind>(op, wave, exec, buffer.start(),
                                                 static_cast<uint32_t>(op.in.offset), kThis);
    return private_at<E, Kind, Policy>(op, wave, exec, buffer.start(),
                                       static_cast<uint32_t>(op.in.offset));
  }
  return access_each_buffer_lane(op, wave, exec, buffer, kThis);
}

template <class E, Access Kind, MemoryPolicy Policy>
Handler either(Opcode opcode, Opcode scratch_form) {
  return opcode == scratch_form ? &scratch<E, Kind, Policy> : &buffer<E, Kind, Policy>;
}

template <MemoryPolicy Policy>
Handler choose(Opcode opcode) {
  using enum Opcode;
  constexpr Access kRead = Access::read, kWrite = Access::write;
  switch (opcode) {
    case scratch_load_ubyte:
    case buffer_load_ubyte:
      return either<U8, kRead, Policy>(opcode, scratch_load_ubyte);
    case scratch_load_sbyte:
    case buffer_load_sbyte:
      return either<I8, kRead, Policy>(opcode, scratch_load_sbyte);
    case scratch_load_ushort:
    case buffer_load_ushort:
      return either<U16, kRead, Policy>(opcode, scratch_load_ushort);
    case scratch_load_sshort:
    case buffer_load_sshort:
      return either<I16, kRead, Policy>(opcode, scratch_load_sshort);
    case scratch_load_dword:
    case buffer_load_dword:
      return either<B32, kRead, Policy>(opcode, scratch_load_dword);
    case scratch_load_dwordx2:
    case buffer_load_dwordx2:
      return either<B64, kRead, Policy>(opcode, scratch_load_dwordx2);
    case scratch_load_dwordx3:
    case buffer_load_dwordx3:
      return either<B96, kRead, Policy>(opcode, scratch_load_dwordx3);
    case scratch_load_dwordx4:
    case buffer_load_dwordx4:
      return either<B128, kRead, Policy>(opcode, scratch_load_dwordx4);
    case scratch_load_ubyte_d16:
    case buffer_load_ubyte_d16:
      return either<U8Low, kRead, Policy>(opcode, scratch_load_ubyte_d16);
    case scratch_load_ubyte_d16_hi:
    case buffer_load_ubyte_d16_hi:
      return either<U8High, kRead, Policy>(opcode, scratch_load_ubyte_d16_hi);
    case scratch_load_sbyte_d16:
    case buffer_load_sbyte_d16:
      return either<I8Low, kRead, Policy>(opcode, scratch_load_sbyte_d16);
    case scratch_load_sbyte_d16_hi:
    case buffer_load_sbyte_d16_hi:
      return either<I8High, kRead, Policy>(opcode, scratch_load_sbyte_d16_hi);
    case scratch_load_short_d16:
    case buffer_load_short_d16:
      return either<B16Low, kRead, Policy>(opcode, scratch_load_short_d16);
    case scratch_load_short_d16_hi:
    case buffer_load_short_d16_hi:
      return either<B16High, kRead, Policy>(opcode, scratch_load_short_d16_hi);
    case scratch_store_byte:
    case buffer_store_byte:
      return either<Low8, kWrite, Policy>(opcode, scratch_store_byte);
    case scratch_store_byte_d16_hi:
    case buffer_store_byte_d16_hi:
      return either<High8, kWrite, Policy>(opcode, scratch_store_byte_d16_hi);
    case scratch_store_short:
    case buffer_store_short:
      return either<Low16, kWrite, Policy>(opcode, scratch_store_short);
    case scratch_store_short_d16_hi:
    case buffer_store_short_d16_hi:
      return either<High16, kWrite, Policy>(opcode, scratch_store_short_d16_hi);
    case scratch_store_dword:
    case buffer_store_dword:
      return either<B32, kWrite, Policy>(opcode, scratch_store_dword);
    case scratch_store_dwordx2:
    case buffer_store_dwordx2:
      return either<B64, kWrite, Policy>(opcode, scratch_store_dwordx2);
    case scratch_store_dwordx3:
    case buffer_store_dwordx3:
      return either<B96, kWrite, Policy>(opcode, scratch_store_dwordx3);
    case scratch_store_dwordx4:
    case buffer_store_dwordx4:
      return either<B128, kWrite, Policy>(opcode, scratch_store_dwordx4);
    default:
      return nullptr;
  }
}

}  // namespace

Handler choose_private(Opcode opcode, MemoryPolicy policy) {
  return with_policy(policy, [opcode]<MemoryPolicy Policy>() { return choose<Policy>(opcode); });
}

}  // namespace uptempo::vgpu::gfx9::memory::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uptempo::vgpu::gfx9::memory {

Handler translate_private(const Instruction& in, MemoryPolicy policy) noexcept {
  if (in.lds) return nullptr;  // to_lds.cpp
  return for_simd(N_AVX3::choose_private, N_AVX2::choose_private, N_SSE4::choose_private)(in.opcode,
                                                                                          policy);
}

}  // namespace uptempo::vgpu::gfx9::memory
#endif
