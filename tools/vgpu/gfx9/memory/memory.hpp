// Shared parts of the memory instructions: elements, and accesses lane by lane. Vector forms are in
// lanes-inl.hpp.
//
// translate_memory() stores the VGPR numbers of data operands in src[0] (data0), src[1] (data1) and
// dst. Accumulation registers count from 256, as in Wave::vgpr.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "device/whole_access.hpp"
#include "gfx9/op.hpp"
#include "gfx9/stop.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9::memory {

// Elements: bytes per lane, number of registers, and the conversion between both. load_whole() and
// store_whole() move Raw. For all but 12 bytes that is one host access, so aligned values never
// tear (device/whole_access.hpp).
template <class R, uint32_t (*Widen)(R raw, uint32_t old)>
struct Narrow {
  using Raw = R;
  static constexpr unsigned kBytes = sizeof(R), kDwords = 1;
  static void to_registers(R raw, Vgpr* dst, unsigned lane) noexcept {
    dst->lane[lane] = Widen(raw, dst->lane[lane]);
  }
};

template <unsigned N>
struct Dwords {
  using Raw = std::conditional_t<N == 4, Quad, std::array<uint32_t, N>>;
  static constexpr unsigned kBytes = 4 * N, kDwords = N;
  static void to_registers(const Raw& raw, Vgpr* dst, unsigned lane) noexcept {
    for (unsigned i = 0; i < N; ++i) dst[i].lane[lane] = raw[i];
  }
  static Raw from_registers(const Vgpr* src, unsigned lane) noexcept {
    Raw raw;
    for (unsigned i = 0; i < N; ++i) raw[i] = src[i].lane[lane];
    return raw;
  }
};
template <>
struct Dwords<2> {
  using Raw = uint64_t;
  static constexpr unsigned kBytes = 8, kDwords = 2;
  static void to_registers(Raw raw, Vgpr* dst, unsigned lane) noexcept {
    dst[0].lane[lane] = static_cast<uint32_t>(raw);
    dst[1].lane[lane] = static_cast<uint32_t>(raw >> 32);
  }
  static Raw from_registers(const Vgpr* src, unsigned lane) noexcept {
    return src[0].lane[lane] | Raw{src[1].lane[lane]} << 32;
  }
};

// Stores of the low or the high part of a register.
template <class R, unsigned Shift>
struct Part {
  using Raw = R;
  static constexpr unsigned kBytes = sizeof(R), kDwords = 1;
  static R from_registers(const Vgpr* src, unsigned lane) noexcept {
    return static_cast<R>(src->lane[lane] >> Shift);
  }
};

namespace widen {
template <class R>
inline uint32_t zero(R raw, uint32_t) {
  return raw;
}
template <class R>
inline uint32_t sign(R raw, uint32_t) {
  return static_cast<uint32_t>(static_cast<int32_t>(static_cast<std::make_signed_t<R>>(raw)));
}
// d16 forms write one half of the register and keep the other. On targets with SRAM ECC, memory.cpp
// clears that one.
template <class R, uint32_t (*Widen)(R, uint32_t)>
inline uint32_t low(R raw, uint32_t old) {
  return (old & 0xffff0000) | (Widen(raw, 0) & 0xffff);
}
template <class R, uint32_t (*Widen)(R, uint32_t)>
inline uint32_t high(R raw, uint32_t old) {
  return (old & 0xffff) | Widen(raw, 0) << 16;
}
}  // namespace widen

using U8 = Narrow<uint8_t, widen::zero<uint8_t>>;
using I8 = Narrow<uint8_t, widen::sign<uint8_t>>;
using U16 = Narrow<uint16_t, widen::zero<uint16_t>>;
using I16 = Narrow<uint16_t, widen::sign<uint16_t>>;
using U8Low = Narrow<uint8_t, widen::low<uint8_t, widen::zero<uint8_t>>>;
using U8High = Narrow<uint8_t, widen::high<uint8_t, widen::zero<uint8_t>>>;
using I8Low = Narrow<uint8_t, widen::low<uint8_t, widen::sign<uint8_t>>>;
using I8High = Narrow<uint8_t, widen::high<uint8_t, widen::sign<uint8_t>>>;
using B16Low = Narrow<uint16_t, widen::low<uint16_t, widen::zero<uint16_t>>>;
using B16High = Narrow<uint16_t, widen::high<uint16_t, widen::zero<uint16_t>>>;
using B32 = Dwords<1>;
using B64 = Dwords<2>;
using B96 = Dwords<3>;
using B128 = Dwords<4>;
using Low8 = Part<uint8_t, 0>;
using High8 = Part<uint8_t, 16>;
using Low16 = Part<uint16_t, 0>;
using High16 = Part<uint16_t, 16>;

template <class F>
inline void for_each_lane(uint64_t lanes, F&& function) {
  for (; lanes != 0; lanes &= lanes - 1) function(static_cast<unsigned>(std::countr_zero(lanes)));
}

// `address` as a host pointer. `distance` is the difference from GPU to host addresses of its
// mapping. The function computes with integers, because the intermediate values are not valid
// pointers.
inline std::byte* host_at(uint64_t distance, uint64_t address) noexcept {
  return reinterpret_cast<std::byte*>(distance + address);
}
inline uint64_t host_distance(const Mapping& mapping) noexcept {
  return reinterpret_cast<uint64_t>(mapping.host) - mapping.begin;
}

// Address in a wave's private memory. flat_scratch and the scratch descriptor order it dword by
// dword, each dword for all 64 lanes (element size 4, index stride 64).
inline GpuAddress private_address(GpuAddress base, uint32_t offset, unsigned lane) noexcept {
  return base + GpuAddress{offset / 4} * (4 * kLanes) + lane * 4 + offset % 4;
}

// Whether these bytes are all in the wave's private segment. Beyond it are the segments of other
// waves, which hardware lets a stack overwrite that is too small.
inline bool in_private_segment(const Wave& wave, GpuAddress address, uint64_t bytes) noexcept {
  const uint64_t offset = address - wave.scratch_base;
  return offset < wave.scratch_bytes && bytes <= wave.scratch_bytes - offset;
}
// Stops the wave, whose access to private memory is outside its segment.
const Op* stop_outside_private_segment(const Op& op, Wave& wave, GpuAddress address,
                                       Access access) noexcept;

// One lane's access to global memory: moves `bytes` between memory and `buffer`. Returns false when
// the wave has stopped with a memory fault.
bool access_lane_directly(const Op& op, Wave& wave, GpuAddress address, unsigned bytes,
                          void* buffer, Access access);
// The same through the executor's caches (cached.cpp).
bool access_lane_cached(const Op& op, Wave& wave, GpuAddress address, unsigned bytes, void* buffer,
                        Access access);
// Returns the host address at which an atomic operation on `bytes` of global memory takes place, or
// nullptr when they are not mapped. `address` is aligned.
std::byte* atomic_operand_cached(const Op& op, Wave& wave, GpuAddress address, unsigned bytes);

// The same at `offset` in the lane's private memory.
bool access_private_lane(const Op& op, Wave& wave, GpuAddress base, unsigned lane, uint32_t offset,
                         unsigned bytes, void* buffer, Access access);

// A load or store as a value, for the paths that serve one lane after the other. Those are compiled
// once, not per element, policy and SIMD target.
struct Transfer {
  unsigned bytes;  // of a lane's element
  Access access;
  MemoryPolicy policy;
  void (*exchange)(Vgpr* data, unsigned lane, void* raw) noexcept;  // raw to registers, or back

  // An element that does not cross a dword is one piece. In an element of several dwords, each
  // dword is a piece.
  unsigned pieces() const noexcept { return bytes < 4 ? 1 : bytes / 4; }
  unsigned piece_bytes() const noexcept { return bytes < 4 ? bytes : 4; }
  bool direct() const noexcept { return policy == MemoryPolicy::direct; }
};
using RawElement = std::array<uint32_t, 4>;

template <class E, Access Kind>
void exchange_lane(Vgpr* data, unsigned lane, void* raw) noexcept {
  typename E::Raw value;
  if constexpr (Kind == Access::read) {
    std::memcpy(&value, raw, E::kBytes);
    E::to_registers(value, data, lane);
  } else {
    value = E::from_registers(data, lane);
    std::memcpy(raw, &value, E::kBytes);
  }
}
template <class E, Access Kind, MemoryPolicy Policy>
inline constexpr Transfer kTransfer{E::kBytes, Kind, Policy, &exchange_lane<E, Kind>};

// The instruction's first data register.
inline Vgpr* data_registers(const Op& op, Wave& wave, Access access) noexcept {
  return wave.vgpr + (access == Access::read ? op.in.dst : op.in.src[0]);
}

// Accesses global memory at `address[lane]` for each lane of `exec`, one by one. Returns nullptr
// when the wave has stopped.
const Op* access_each_lane(const Op& op, Wave& wave, uint64_t exec, const GpuAddress* address,
                           const Transfer& transfer);
// The same at `offset[lane]` in the lanes' private memory.
const Op* access_each_private_lane(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                   const uint32_t* offset, const Transfer& transfer);
// The same in a buffer. Dwords out of range read 0 and are not written.
class Buffer;
const Op* access_each_buffer_lane(const Op& op, Wave& wave, uint64_t exec, const Buffer& buffer,
                                  const Transfer& transfer);
// Notifies the observer of an access to private memory. Each piece is an access of its own.
void observe_private(const Op& op, const Wave& wave, uint64_t exec, GpuAddress base,
                     const uint32_t* offset, const Transfer& transfer) noexcept;

// The lanes of a store whose value differs from what memory holds.
uint64_t changing_lanes(const Op& op, Wave& wave, uint64_t exec, const GpuAddress* address,
                        const Transfer& transfer);

// Notifies the observer of an access to LDS at `base` plus `offset` of each active lane.
void observe_lds(const Op& op, const Wave& wave, Access access, unsigned bytes, const Vgpr& base,
                 uint32_t offset, bool returns = false,
                 const ChangingLanes& changing = {}) noexcept;
// The same for addresses in the shared aperture.
void observe_shared(const Op& op, const Wave& wave, uint64_t lanes, Access access, unsigned bytes,
                    const GpuAddress* address, bool returns = false) noexcept;

// Returns choose.operator()<Policy>() for the value `policy`.
template <class Choose>
Handler with_policy(MemoryPolicy policy, Choose&& choose) {
  switch (policy) {
    case MemoryPolicy::observed:
      return choose.template operator()<MemoryPolicy::observed>();
    case MemoryPolicy::cached:
      return choose.template operator()<MemoryPolicy::cached>();
    case MemoryPolicy::direct:
      break;
  }
  return choose.template operator()<MemoryPolicy::direct>();
}

// Base of the memory of SCRATCH instructions and of the private aperture. On gfx942 the register is
// not an SGPR that the kernel sets: the start of the wave does (workgroup.cpp).
inline GpuAddress private_base(const Wave& wave) noexcept { return wave.pair(kFlatScratchLo); }

// Returns the entry point of the SIMD target in use (vector::simd_in_use()).
using Choose = Handler (*)(Opcode opcode, MemoryPolicy policy);
Choose for_simd(Choose avx512, Choose avx2, Choose baseline) noexcept;

// Families. Each returns nullptr for opcodes of other families.
// FLAT, GLOBAL loads and stores.
Handler translate_flat(const Instruction& in, MemoryPolicy policy) noexcept;
// GLOBAL and MUBUF loads that go to LDS.
Handler translate_to_lds(const Instruction& in, MemoryPolicy policy) noexcept;
// SCRATCH, MUBUF loads and stores.
Handler translate_private(const Instruction& in, MemoryPolicy policy) noexcept;
Handler translate_cache_control(const Instruction& in, MemoryPolicy policy) noexcept;
// FLAT, GLOBAL, MUBUF.
Handler translate_atomic(const Instruction& in, MemoryPolicy policy) noexcept;
// DS loads and stores.
Handler translate_lds(const Instruction& in, MemoryPolicy policy) noexcept;
// DS that move data between lanes, append and consume.
Handler translate_lds_lanes(const Instruction& in, MemoryPolicy policy) noexcept;
Handler translate_lds_atomic(const Instruction& in, MemoryPolicy policy) noexcept;
// DS that synchronise waves of all workgroups.
Handler translate_wave_sync(const Instruction& in, MemoryPolicy policy) noexcept;

}  // namespace uptempo::vgpu::gfx9::memory
