// FLAT, GLOBAL and MUBUF atomics. They are atomic operations of the host, because other workers and
// the program share the memory. Lanes execute in order. A floating-point atomic has no effect on
// memory where the L2 does not execute it (device/caches/caching.hpp).
#include <atomic>
#include <bit>
#include <cmath>
#include <optional>

#include "device/caches/caching.hpp"
#include "device/ignored_atomics.hpp"
#include "gfx9/memory/atomic_operations.hpp"
#include "gfx9/memory/buffer.hpp"
#include "gfx9/memory/memory.hpp"
#include "gfx9/observe.hpp"
#include "gfx9/vector/half.hpp"

namespace uptempo::vgpu::gfx9::memory {
namespace {

template <class T>
T data_of(const Wave& wave, unsigned vgpr, unsigned lane) noexcept {
  T value = wave.vgpr[vgpr].lane[lane];
  if constexpr (sizeof(T) == 8) value |= T{wave.vgpr[vgpr + 1].lane[lane]} << 32;
  return value;
}

// acq_rel: memory models order atomics by the cache operations around them, and those have no
// effect on memory shared with the host.
template <class Operation>
typename Operation::Value update(std::byte* host, typename Operation::Value a,
                                 typename Operation::Value b) noexcept {
  using Value = typename Operation::Value;
  std::atomic_ref<Value> memory(*reinterpret_cast<Value*>(host));
  if constexpr (std::is_same_v<Operation, atomic::Add<Value>>)
    return memory.fetch_add(a, std::memory_order_acq_rel);
  if constexpr (std::is_same_v<Operation, atomic::Subtract<Value>>)
    return memory.fetch_sub(a, std::memory_order_acq_rel);
  if constexpr (std::is_same_v<Operation, atomic::Exchange<Value>>)
    return memory.exchange(a, std::memory_order_acq_rel);
  Value old = memory.load(std::memory_order_relaxed);
  while (!memory.compare_exchange_weak(old, Operation::apply(old, a, b), std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
  }
  return old;
}

// Returns the host address of one lane's operand, or nullptr when the wave has stopped.
template <class Observer>
std::byte* operand_at(const Op& op, Wave& wave, bool shared, bool own, GpuAddress address,
                      unsigned bytes) {
  std::byte* host = nullptr;
  if (shared) {
    const uint64_t offset = address - aperture_base(kSharedAperture);
    if (offset + bytes <= wave.lds_bytes) host = wave.lds + offset;
  } else if (Observer::kCached && !own) {
    if (address % bytes == 0) host = atomic_operand_cached(op, wave, address, bytes);
  } else {
    host = wave.executor->translate(op, address, bytes, Access::atomic);
  }
  if (host == nullptr || address % bytes != 0) {
    stop_memory_fault(op, wave, address, Access::atomic);
    return nullptr;
  }
  return host;
}

GpuAddress flat_address(const Op& op, const Wave& wave, unsigned lane) noexcept {
  const Vgpr* v = wave.vgpr + op.in.addr;
  const auto offset = static_cast<uint64_t>(int64_t{op.in.offset});
  if (op.in.saddr != 0x7f) return wave.pair(op.in.saddr) + v[0].lane[lane] + offset;
  return (uint64_t{v[1].lane[lane]} << 32 | v[0].lane[lane]) + offset;
}

template <class Operation>
constexpr bool is_floating = false;
template <class T, T (*Function)(T, T)>
constexpr bool is_floating<atomic::Binary<T, Function>> = std::is_floating_point_v<T>;
template <class T, bool Larger>
constexpr bool is_floating<atomic::SelectFloat<T, Larger>> = true;
template <>
constexpr bool is_floating<atomic::AddPackedHalves> = true;
template <>
constexpr bool is_floating<atomic::AddPackedBfloats> = true;

// Returns the lanes whose floating-point atomic has no effect, and reports them to the check, if
// there is one. Lanes that fault are not included.
uint64_t ignored_lanes(const Op& op, Wave& wave, uint64_t lanes, const GpuAddress* address,
                       unsigned bytes) {
  const bool fabric_has_them = wave.executor->target == Target::gfx942;
  uint64_t ignored = 0;
  const Mapping* first = nullptr;
  for_each_lane(lanes, [&](unsigned lane) {
    const Mapping* const mapping = wave.executor->mapping(op, address[lane]);
    if (mapping == nullptr || float_atomics_work(fabric_has_them, mapping->kind)) return;
    if (!mapping->contains(address[lane], bytes) || !mapping->permits(Access::atomic) ||
        address[lane] % bytes != 0)
      return;
    if (first == nullptr) first = mapping;
    ignored |= uint64_t{1} << lane;
  });
  if (ignored == 0 || wave.executor->ignored_atomics == nullptr) return ignored;
  const DispatchState& dispatch = wave.workgroup->dispatch();
  wave.executor->ignored_atomics->add(
      {.kernel = dispatch.name,
       .instruction = mnemonic(op.in.opcode),
       .offset = static_cast<int64_t>(address_of(op) - dispatch.kernel.entry),
       .workgroup = wave.workgroup->id(),
       .wave = wave.index_in_workgroup,
       .lanes = static_cast<uint32_t>(std::popcount(ignored)),
       .address = address[std::countr_zero(ignored)],
       .kind = first->kind});
  return ignored;
}

template <class Operation, class Observer>
const Op* execute(const Op& op, Wave& wave) {
  using Value = typename Operation::Value;
  constexpr unsigned kDwords = sizeof(Value) / 4;
  uint64_t exec = wave.exec();
  if (exec == 0) return next<2>(op);
  GpuAddress address[kLanes] = {};
  uint64_t shared = 0, own = 0;  // lanes whose FLAT address is in LDS or private memory
  if (op.in.format == Format::mubuf) {
    const Buffer buffer(op, wave);
    const uint64_t all = exec;
    for_each_lane(all, [&](unsigned lane) {
      const Buffer::Place place = buffer.place(op, wave, lane, 0, sizeof(Value));
      address[lane] = place.address;
      if (place.in_range) return;
      exec &= ~(uint64_t{1} << lane);  // no effect, returns 0
      if (op.in.glc) {
        for (unsigned i = 0; i < kDwords; ++i) wave.vgpr[op.in.dst + i].lane[lane] = 0;
      }
    });
    Observer::out_of_range(op, wave, Access::atomic, sizeof(Value), all & ~exec, address);
  } else {
    std::optional<GpuAddress> outside;
    for_each_lane(exec, [&](unsigned lane) {
      address[lane] = flat_address(op, wave, lane);
      if (op.in.segment != FlatSegment::flat) return;
      if (address[lane] >> 48 == kSharedAperture) shared |= uint64_t{1} << lane;
      if (address[lane] >> 48 == kPrivateAperture) {
        own |= uint64_t{1} << lane;
        address[lane] =
            private_address(private_base(wave), static_cast<uint32_t>(address[lane]), lane);
        if (!in_private_segment(wave, address[lane], sizeof(Value))) outside = address[lane];
      }
    });
    if (outside) return stop_outside_private_segment(op, wave, *outside, Access::atomic);
    // Compilers do not emit this: no memory model allows sharing of private memory.
    if (sizeof(Value) == 8 && own != 0)
      return stop_error(op, wave, QueueError::illegal_instruction,
                        "updates 64 bits of private memory, whose halves are not adjacent");
  }
  if constexpr (is_floating<Operation>) {
    const uint64_t ignored = ignored_lanes(op, wave, exec & ~shared & ~own, address, sizeof(Value));
    exec &= ~ignored;
    if (op.in.glc) {
      for (unsigned i = 0; i < kDwords; ++i)
        for_each_lane(ignored, [&](unsigned lane) { wave.vgpr[op.in.dst + i].lane[lane] = 0; });
    }
  }
  const uint64_t global = exec & ~shared;
  if (global != 0) Observer::access(op, wave, Access::atomic, sizeof(Value), global, address);
  if constexpr (Observer::kEnabled) {
    if ((exec & shared) != 0)
      observe_shared(op, wave, exec & shared, Access::atomic, sizeof(Value), address, op.in.glc);
  }
  for (; exec != 0; exec &= exec - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(exec));
    std::byte* host = operand_at<Observer>(op, wave, (shared >> lane & 1) != 0,
                                           Observer::kCached && (own >> lane & 1) != 0,
                                           address[lane], sizeof(Value));
    if (host == nullptr) return nullptr;
    const Value a = data_of<Value>(wave, op.in.src[0], lane);
    Value b = 0;
    if constexpr (std::is_same_v<Operation, atomic::CompareSecond<Value>>)
      b = data_of<Value>(wave, op.in.src[0] + kDwords, lane);
    const Value old = update<Operation>(host, a, b);
    if (op.in.glc) {
      wave.vgpr[op.in.dst].lane[lane] = static_cast<uint32_t>(old);
      if constexpr (kDwords == 2)
        wave.vgpr[op.in.dst + 1].lane[lane] = static_cast<uint32_t>(old >> 32);
    }
  }
  if (global != 0) Observer::accessed(op, wave, Access::atomic, sizeof(Value), global, address);
  return next<2>(op);
}

struct Entry {
  Opcode flat, global, buffer;
  Handler handler[3];  // indexed by MemoryPolicy
};

template <class Operation>
constexpr Entry entry(Opcode flat, Opcode global, Opcode buffer) {
  return {flat,
          global,
          buffer,
          {&execute<Operation, Unobserved>, &execute<Operation, Observed>,
           &execute<Operation, Cached>}};
}

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;
using enum Opcode;

constexpr Entry kEntries[] = {
    entry<atomic::Exchange<u32>>(flat_atomic_swap, global_atomic_swap, buffer_atomic_swap),
    entry<atomic::CompareSecond<u32>>(flat_atomic_cmpswap, global_atomic_cmpswap,
                                      buffer_atomic_cmpswap),
    entry<atomic::Add<u32>>(flat_atomic_add, global_atomic_add, buffer_atomic_add),
    entry<atomic::Subtract<u32>>(flat_atomic_sub, global_atomic_sub, buffer_atomic_sub),
    entry<atomic::Minimum<i32>>(flat_atomic_smin, global_atomic_smin, buffer_atomic_smin),
    entry<atomic::Minimum<u32>>(flat_atomic_umin, global_atomic_umin, buffer_atomic_umin),
    entry<atomic::Maximum<i32>>(flat_atomic_smax, global_atomic_smax, buffer_atomic_smax),
    entry<atomic::Maximum<u32>>(flat_atomic_umax, global_atomic_umax, buffer_atomic_umax),
    entry<atomic::And<u32>>(flat_atomic_and, global_atomic_and, buffer_atomic_and),
    entry<atomic::Or<u32>>(flat_atomic_or, global_atomic_or, buffer_atomic_or),
    entry<atomic::Xor<u32>>(flat_atomic_xor, global_atomic_xor, buffer_atomic_xor),
    entry<atomic::Increment<u32>>(flat_atomic_inc, global_atomic_inc, buffer_atomic_inc),
    entry<atomic::Decrement<u32>>(flat_atomic_dec, global_atomic_dec, buffer_atomic_dec),
    entry<atomic::Exchange<u64>>(flat_atomic_swap_x2, global_atomic_swap_x2, buffer_atomic_swap_x2),
    entry<atomic::CompareSecond<u64>>(flat_atomic_cmpswap_x2, global_atomic_cmpswap_x2,
                                      buffer_atomic_cmpswap_x2),
    entry<atomic::Add<u64>>(flat_atomic_add_x2, global_atomic_add_x2, buffer_atomic_add_x2),
    entry<atomic::Subtract<u64>>(flat_atomic_sub_x2, global_atomic_sub_x2, buffer_atomic_sub_x2),
    entry<atomic::Minimum<i64>>(flat_atomic_smin_x2, global_atomic_smin_x2, buffer_atomic_smin_x2),
    entry<atomic::Minimum<u64>>(flat_atomic_umin_x2, global_atomic_umin_x2, buffer_atomic_umin_x2),
    entry<atomic::Maximum<i64>>(flat_atomic_smax_x2, global_atomic_smax_x2, buffer_atomic_smax_x2),
    entry<atomic::Maximum<u64>>(flat_atomic_umax_x2, global_atomic_umax_x2, buffer_atomic_umax_x2),
    entry<atomic::And<u64>>(flat_atomic_and_x2, global_atomic_and_x2, buffer_atomic_and_x2),
    entry<atomic::Or<u64>>(flat_atomic_or_x2, global_atomic_or_x2, buffer_atomic_or_x2),
    entry<atomic::Xor<u64>>(flat_atomic_xor_x2, global_atomic_xor_x2, buffer_atomic_xor_x2),
    entry<atomic::Increment<u64>>(flat_atomic_inc_x2, global_atomic_inc_x2, buffer_atomic_inc_x2),
    entry<atomic::Decrement<u64>>(flat_atomic_dec_x2, global_atomic_dec_x2, buffer_atomic_dec_x2),
    entry<atomic::Add<float>>(flat_atomic_add_f32, global_atomic_add_f32, buffer_atomic_add_f32),
    entry<atomic::AddPackedHalves>(flat_atomic_pk_add_f16, global_atomic_pk_add_f16,
                                   buffer_atomic_pk_add_f16),
    entry<atomic::AddPackedBfloats>(flat_atomic_pk_add_bf16, global_atomic_pk_add_bf16, invalid),
    entry<atomic::Add<double>>(flat_atomic_add_f64, global_atomic_add_f64, buffer_atomic_add_f64),
    entry<atomic::Minimum<double>>(flat_atomic_min_f64, global_atomic_min_f64,
                                   buffer_atomic_min_f64),
    entry<atomic::Maximum<double>>(flat_atomic_max_f64, global_atomic_max_f64,
                                   buffer_atomic_max_f64),
};

}  // namespace

uint16_t add_halves(uint16_t a, uint16_t b) noexcept {
  return static_cast<uint16_t>(vector::half_of(vector::half_value(a) + vector::half_value(b)));
}

uint16_t add_bfloats(uint16_t a, uint16_t b) noexcept {
  const auto value = [](uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); };
  const float sum = value(a) + value(b);
  const auto bits = std::bit_cast<uint32_t>(sum);
  if (std::isnan(sum)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

Handler translate_atomic(const Instruction& in, MemoryPolicy policy) noexcept {
  for (const Entry& each : kEntries) {
    if (in.opcode == each.flat || in.opcode == each.global || in.opcode == each.buffer)
      return each.handler[static_cast<unsigned>(policy)];
  }
  return nullptr;
}

}  // namespace uptempo::vgpu::gfx9::memory
