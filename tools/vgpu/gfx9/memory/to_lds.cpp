// Loads whose data goes to LDS: GLOBAL and MUBUF. Each active lane loads one element, widened to a
// dword, and writes it to dword `lane` of the LDS at M0 plus the instruction's offset. The offset
// also belongs to the memory address. A dword outside of the group segment is not written.
//
// Source: CDNA3 ISA, "Memory Buffer Load to LDS"; LLVM, llvm.amdgcn.global.load.lds and
// llvm.amdgcn.raw.buffer.load.lds.
#include "gfx9/memory/buffer.hpp"
#include "gfx9/memory/memory.hpp"
#include "gfx9/observe.hpp"

namespace uptempo::vgpu::gfx9::memory {
namespace {

GpuAddress global_address(const Op& op, const Wave& wave, unsigned lane) noexcept {
  const Vgpr* v = wave.vgpr + op.in.addr;
  const auto offset = static_cast<uint64_t>(int64_t{op.in.offset});
  if (op.in.saddr != 0x7f) return wave.pair(op.in.saddr) + v[0].lane[lane] + offset;
  return (uint64_t{v[1].lane[lane]} << 32 | v[0].lane[lane]) + offset;
}

template <class E, MemoryPolicy Policy>
const Op* load_to_lds(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  const bool buffered = op.in.format == Format::mubuf;
  const Buffer buffer(op, wave);  // not used by GLOBAL
  const uint32_t base = (wave.scalar[kM0] & 0xffff) + static_cast<uint32_t>(op.in.offset);
  if constexpr (Policy != MemoryPolicy::direct) {
    Vgpr lanes;
    for (unsigned lane = 0; lane < kLanes; ++lane) lanes.lane[lane] = 4 * lane;
    observe_lds(op, wave, Access::write, sizeof(uint32_t), lanes, base);
  }
  for (uint64_t left = exec; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    uint32_t value = 0;  // what a buffer gives out of range
    const Buffer::Place place = buffered ? buffer.place(op, wave, lane, 0, E::kBytes)
                                         : Buffer::Place{global_address(op, wave, lane), true};
    if (place.in_range) {
      typename E::Raw raw{};
      GpuAddress observed[kLanes];
      if constexpr (Policy != MemoryPolicy::direct) {
        observed[lane] = place.address;
        Observed::access(op, wave, Access::read, E::kBytes, uint64_t{1} << lane, observed);
      }
      const bool loaded =
          Policy == MemoryPolicy::cached
              ? access_lane_cached(op, wave, place.address, E::kBytes, &raw, Access::read)
              : access_lane_directly(op, wave, place.address, E::kBytes, &raw, Access::read);
      if (!loaded) return nullptr;
      if constexpr (Policy != MemoryPolicy::direct)
        Observed::accessed(op, wave, Access::read, E::kBytes, uint64_t{1} << lane, observed);
      Vgpr widened;
      E::to_registers(raw, &widened, 0);
      value = widened.lane[0];
    } else if constexpr (Policy != MemoryPolicy::direct) {
      GpuAddress dropped[kLanes];
      dropped[lane] = place.address;
      Observed::out_of_range(op, wave, Access::read, E::kBytes, uint64_t{1} << lane, dropped);
    }
    const uint64_t at = uint64_t{base} + 4 * lane;
    if (at + sizeof value <= wave.lds_bytes) std::memcpy(wave.lds + at, &value, sizeof value);
  }
  return next<2>(op);
}

template <MemoryPolicy Policy>
Handler choose(Opcode opcode) {
  using enum Opcode;
  switch (opcode) {
    case global_load_ubyte:
    case global_load_lds_ubyte:
    case buffer_load_ubyte:
      return &load_to_lds<U8, Policy>;
    case global_load_sbyte:
    case global_load_lds_sbyte:
    case buffer_load_sbyte:
      return &load_to_lds<I8, Policy>;
    case global_load_ushort:
    case global_load_lds_ushort:
    case buffer_load_ushort:
      return &load_to_lds<U16, Policy>;
    case global_load_sshort:
    case global_load_lds_sshort:
    case buffer_load_sshort:
      return &load_to_lds<I16, Policy>;
    case global_load_dword:
    case global_load_lds_dword:
    case buffer_load_dword:
      return &load_to_lds<B32, Policy>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler translate_to_lds(const Instruction& in, MemoryPolicy policy) noexcept {
  if (!in.lds) return nullptr;
  return with_policy(policy, [&]<MemoryPolicy Policy>() { return choose<Policy>(in.opcode); });
}

}  // namespace uptempo::vgpu::gfx9::memory
