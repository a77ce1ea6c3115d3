// SMEM: scalar loads and stores, clocks and cache control. Scalar atomics and scratch accesses are
// not supported: no compiler emits them for compute kernels.
#include <cstring>
#include <span>

#include "device/caches/incoherent.hpp"
#include "device/clock.hpp"
#include "device/whole_access.hpp"
#include "gfx9/observe.hpp"
#include "gfx9/scalar/scalar.hpp"
#include "gfx9/stop.hpp"
#include "gfx9/workgroup.hpp"

namespace uptempo::vgpu::gfx9::scalar {
namespace {

uint64_t offset_of(const Op& op, const Wave& wave) noexcept {
  uint64_t offset = static_cast<uint64_t>(int64_t{op.in.offset});
  if (op.in.offset_is_sgpr) offset += wave.scalar[op.in.soffset];
  return offset;
}

// SMEM ignores the two low address bits (Vega ISA, "Scalar Memory Read").
constexpr GpuAddress kDwordMask = ~GpuAddress{3};

void access_cached(const Op& op, Wave& wave, GpuAddress address, uint32_t* registers,
                   unsigned dwords, Access access) {
  Caches& caches = *wave.executor->caches;
  const Mapping& mapping = *wave.executor->mapping(op, address);
  const auto bytes = std::as_writable_bytes(std::span(registers, dwords));
  if (access == Access::read) {
    caches.scalar_load(wave.workgroup->compute_unit, mapping, address, bytes,
                       op.in.glc ? AccessScope::agent : AccessScope::wave);
  } else {
    caches.scalar_store(wave.workgroup->compute_unit, mapping, address, bytes);
  }
}

// Moves dwords between scalar registers and `host`, the host pointer for `address`.
template <unsigned Dwords, Access Kind, class Observer>
inline void move(const Op& op, Wave& wave, GpuAddress address, std::byte* host,
                 uint32_t* registers) {
  if constexpr (Observer::kCached) {
    access_cached(op, wave, address, registers, Dwords, Kind);
  } else if constexpr (Kind == Access::read) {
    copy_in_pieces(reinterpret_cast<std::byte*>(registers), host, 4 * Dwords);
  } else {
    copy_in_pieces(host, reinterpret_cast<const std::byte*>(registers), 4 * Dwords);
  }
}

template <unsigned Dwords, class Observer>
const Op* load(const Op& op, Wave& wave) {
  const GpuAddress address = (wave.pair(op.in.saddr) + offset_of(op, wave)) & kDwordMask;
  Observer::scalar_access(op, wave, Access::read, 4 * Dwords, address);
  std::byte* host = wave.executor->translate(op, address, 4 * Dwords, Access::read);
  if (host == nullptr) return stop_memory_fault(op, wave, address, Access::read);
  move<Dwords, Access::read, Observer>(op, wave, address, host, &wave.scalar[op.in.dst]);
  return next<2>(op);
}

template <unsigned Dwords, class Observer>
const Op* store(const Op& op, Wave& wave) {
  const GpuAddress address = (wave.pair(op.in.saddr) + offset_of(op, wave)) & kDwordMask;
  Observer::scalar_access(op, wave, Access::write, 4 * Dwords, address);
  std::byte* host = wave.executor->translate(op, address, 4 * Dwords, Access::write);
  if (host == nullptr) return stop_memory_fault(op, wave, address, Access::write);
  move<Dwords, Access::write, Observer>(op, wave, address, host, &wave.scalar[op.in.data0]);
  return next<2>(op);
}

// A buffer descriptor of scalar memory instructions: base and size in bytes. Dwords past the end
// read 0 and are not written.
struct Buffer {
  GpuAddress base;
  uint64_t bytes;
};
Buffer buffer_at(const Wave& wave, unsigned sgpr) noexcept {
  const uint64_t stride = wave.scalar[sgpr + 1] >> 16 & 0x3fff;
  const uint64_t records = wave.scalar[sgpr + 2];
  return {wave.pair(sgpr) & 0xffffffffffff, stride == 0 ? records : records * stride};
}

template <unsigned Dwords, Access Kind, class Observer>
const Op* buffer(const Op& op, Wave& wave) {
  const Buffer buffer = buffer_at(wave, op.in.saddr);
  const uint64_t offset = offset_of(op, wave) & kDwordMask;
  uint32_t data[Dwords] = {};
  for (unsigned i = 0; i < Dwords; ++i) {
    const uint64_t at = offset + 4 * i;
    if (at + 4 > buffer.bytes || at + 4 < at) continue;
    Observer::scalar_access(op, wave, Kind, 4, buffer.base + at);
    std::byte* host = wave.executor->translate(op, buffer.base + at, 4, Kind);
    if (host == nullptr) return stop_memory_fault(op, wave, buffer.base + at, Kind);
    uint32_t* const word = Kind == Access::read ? &data[i] : &wave.scalar[op.in.data0 + i];
    move<1, Kind, Observer>(op, wave, buffer.base + at, host, word);
  }
  if constexpr (Kind == Access::read) std::memcpy(&wave.scalar[op.in.dst], data, sizeof data);
  return next<2>(op);
}

// The shader clock runs at 1 GHz. Real ones run at their engine clock.
const Op* shader_clock(const Op& op, Wave& wave) {
  wave.set_pair(op.in.dst, host_clock_ns());
  return next<2>(op);
}
const Op* real_time(const Op& op, Wave& wave) {
  wave.set_pair(op.in.dst, gpu_clock_ticks());
  return next<2>(op);
}
const Op* nothing(const Op& op, Wave&) { return next<2>(op); }

template <class Observer>
const Op* invalidate(const Op& op, Wave& wave) {
  if constexpr (Observer::kCached)
    wave.executor->caches->invalidate_scalar_l1(wave.workgroup->compute_unit);
  if constexpr (Observer::kEnabled)
    observe_order(op, wave, [](MemoryObserver& observer, const ObservedWave& at) {
      observer.invalidated_scalar(at);
    });
  return next<2>(op);
}

template <class Observer>
Handler choose(Opcode opcode) noexcept {
  using enum Opcode;
  switch (opcode) {
    case s_load_dword:
      return &load<1, Observer>;
    case s_load_dwordx2:
      return &load<2, Observer>;
    case s_load_dwordx4:
      return &load<4, Observer>;
    case s_load_dwordx8:
      return &load<8, Observer>;
    case s_load_dwordx16:
      return &load<16, Observer>;
    case s_store_dword:
      return &store<1, Observer>;
    case s_store_dwordx2:
      return &store<2, Observer>;
    case s_store_dwordx4:
      return &store<4, Observer>;
    case s_buffer_load_dword:
      return &buffer<1, Access::read, Observer>;
    case s_buffer_load_dwordx2:
      return &buffer<2, Access::read, Observer>;
    case s_buffer_load_dwordx4:
      return &buffer<4, Access::read, Observer>;
    case s_buffer_load_dwordx8:
      return &buffer<8, Access::read, Observer>;
    case s_buffer_load_dwordx16:
      return &buffer<16, Access::read, Observer>;
    case s_buffer_store_dword:
      return &buffer<1, Access::write, Observer>;
    case s_buffer_store_dwordx2:
      return &buffer<2, Access::write, Observer>;
    case s_buffer_store_dwordx4:
      return &buffer<4, Access::write, Observer>;
    case s_memtime:
      return &shader_clock;
    case s_memrealtime:
      return &real_time;
    case s_dcache_inv:
    case s_dcache_inv_vol:
      return &invalidate<Observer>;
    // Scalar stores go to L2 at once, so there is nothing to write back.
    case s_dcache_wb:
    case s_dcache_wb_vol:
    case s_atc_probe:
    case s_atc_probe_buffer:
      return &nothing;
    default:
      return nullptr;
  }
}

constexpr unsigned dwords_loaded(Opcode opcode) noexcept {
  using enum Opcode;
  switch (opcode) {
    case s_load_dwordx16:
    case s_buffer_load_dwordx16:
      return 16;
    case s_load_dwordx8:
    case s_buffer_load_dwordx8:
      return 8;
    case s_load_dwordx4:
    case s_buffer_load_dwordx4:
      return 4;
    default:
      return 2;
  }
}

}  // namespace

Handler translate_memory(Instruction& in, MemoryPolicy policy) noexcept {
  // The inline constants follow EXEC in Wave::scalar.
  if (dwords_loaded(in.opcode) > 2 && in.dst + dwords_loaded(in.opcode) > 128u) return nullptr;
  return with_observer(policy, [&in]<class Observer>() { return choose<Observer>(in.opcode); });
}

}  // namespace uptempo::vgpu::gfx9::scalar
