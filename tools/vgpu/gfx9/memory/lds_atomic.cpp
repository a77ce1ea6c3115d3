// DS atomics. One worker runs the workgroup, lane after lane, so these need no host atomics.
#include "gfx9/memory/atomic_operations.hpp"
#include "gfx9/memory/memory.hpp"

namespace uptempo::vgpu::gfx9::memory {
namespace {

template <class T>
T data_of(const Wave& wave, unsigned vgpr, unsigned lane) noexcept {
  T value = wave.vgpr[vgpr].lane[lane];
  if constexpr (sizeof(T) == 8) value |= T{wave.vgpr[vgpr + 1].lane[lane]} << 32;
  return value;
}
template <class T>
void set_data(Wave& wave, unsigned vgpr, unsigned lane, T value) noexcept {
  wave.vgpr[vgpr].lane[lane] = static_cast<uint32_t>(value);
  if constexpr (sizeof(T) == 8) wave.vgpr[vgpr + 1].lane[lane] = static_cast<uint32_t>(value >> 32);
}

template <class Operation>
typename Operation::Value update(Wave& wave, uint32_t address, typename Operation::Value a,
                                 typename Operation::Value b) noexcept {
  typename Operation::Value old = 0;
  if (uint64_t{address} + sizeof old > wave.lds_bytes) return old;
  std::memcpy(&old, wave.lds + address, sizeof old);
  const auto value = Operation::apply(old, a, b);
  std::memcpy(wave.lds + address, &value, sizeof value);
  return old;
}

template <class Operation, bool Returns, bool IsObserved>
const Op* one(const Op& op, Wave& wave) {
  using Value = typename Operation::Value;
  if constexpr (IsObserved)
    observe_lds(op, wave, Access::atomic, sizeof(Value), wave.vgpr[op.in.addr],
                static_cast<uint32_t>(op.in.offset), Returns);
  for_each_lane(wave.exec(), [&](unsigned lane) {
    const uint32_t address = wave.vgpr[op.in.addr].lane[lane] + static_cast<uint32_t>(op.in.offset);
    const Value old = update<Operation>(wave, address, data_of<Value>(wave, op.in.src[0], lane),
                                        data_of<Value>(wave, op.in.src[1], lane));
    if constexpr (Returns) set_data(wave, op.in.dst, lane, old);
  });
  return next<2>(op);
}

// ds_wrxchg2: two exchanges at 8-bit offsets in units of `Unit` bytes.
template <class T, unsigned Unit, bool IsObserved>
const Op* exchange_two(const Op& op, Wave& wave) {
  using Operation = atomic::Exchange<T>;
  const auto offsets = static_cast<uint32_t>(op.in.offset);
  if constexpr (IsObserved) {
    const Vgpr& lanes = wave.vgpr[op.in.addr];
    observe_lds(op, wave, Access::atomic, sizeof(T), lanes, (offsets & 0xff) * Unit, true);
    observe_lds(op, wave, Access::atomic, sizeof(T), lanes, (offsets >> 8) * Unit, true);
  }
  for_each_lane(wave.exec(), [&](unsigned lane) {
    const uint32_t base = wave.vgpr[op.in.addr].lane[lane];
    const T a = data_of<T>(wave, op.in.src[0], lane), b = data_of<T>(wave, op.in.src[1], lane);
    const T old_a = update<Operation>(wave, base + (offsets & 0xff) * Unit, a, 0);
    const T old_b = update<Operation>(wave, base + (offsets >> 8) * Unit, b, 0);
    set_data(wave, op.in.dst, lane, old_a);
    set_data(wave, op.in.dst + unsigned{sizeof(T) / 4}, lane, old_b);
  });
  return next<2>(op);
}

struct Entry {
  Opcode opcode, returning;
  Handler handler[2], returning_handler[2];  // indexed by whether it is observed
};

template <class Operation>
constexpr Entry entry(Opcode opcode, Opcode returning) {
  return {opcode,
          returning,
          {&one<Operation, false, false>, &one<Operation, false, true>},
          {&one<Operation, true, false>, &one<Operation, true, true>}};
}

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;
using enum Opcode;

constexpr Entry kEntries[] = {
    entry<atomic::Add<u32>>(ds_add_u32, ds_add_rtn_u32),
    entry<atomic::Subtract<u32>>(ds_sub_u32, ds_sub_rtn_u32),
    entry<atomic::ReverseSubtract<u32>>(ds_rsub_u32, ds_rsub_rtn_u32),
    entry<atomic::Increment<u32>>(ds_inc_u32, ds_inc_rtn_u32),
    entry<atomic::Decrement<u32>>(ds_dec_u32, ds_dec_rtn_u32),
    entry<atomic::Minimum<i32>>(ds_min_i32, ds_min_rtn_i32),
    entry<atomic::Maximum<i32>>(ds_max_i32, ds_max_rtn_i32),
    entry<atomic::Minimum<u32>>(ds_min_u32, ds_min_rtn_u32),
    entry<atomic::Maximum<u32>>(ds_max_u32, ds_max_rtn_u32),
    entry<atomic::And<u32>>(ds_and_b32, ds_and_rtn_b32),
    entry<atomic::Or<u32>>(ds_or_b32, ds_or_rtn_b32),
    entry<atomic::Xor<u32>>(ds_xor_b32, ds_xor_rtn_b32),
    entry<atomic::MaskedOr<u32>>(ds_mskor_b32, ds_mskor_rtn_b32),
    entry<atomic::CompareFirst<u32>>(ds_cmpst_b32, ds_cmpst_rtn_b32),
    entry<atomic::CompareFirst<float>>(ds_cmpst_f32, ds_cmpst_rtn_f32),
    entry<atomic::Minimum<float>>(ds_min_f32, ds_min_rtn_f32),
    entry<atomic::Maximum<float>>(ds_max_f32, ds_max_rtn_f32),
    entry<atomic::Add<float>>(ds_add_f32, ds_add_rtn_f32),
    entry<atomic::AddPackedHalves>(ds_pk_add_f16, ds_pk_add_rtn_f16),
    entry<atomic::AddPackedBfloats>(ds_pk_add_bf16, ds_pk_add_rtn_bf16),
    entry<atomic::Add<u64>>(ds_add_u64, ds_add_rtn_u64),
    entry<atomic::Subtract<u64>>(ds_sub_u64, ds_sub_rtn_u64),
    entry<atomic::ReverseSubtract<u64>>(ds_rsub_u64, ds_rsub_rtn_u64),
    entry<atomic::Increment<u64>>(ds_inc_u64, ds_inc_rtn_u64),
    entry<atomic::Decrement<u64>>(ds_dec_u64, ds_dec_rtn_u64),
    entry<atomic::Minimum<i64>>(ds_min_i64, ds_min_rtn_i64),
    entry<atomic::Maximum<i64>>(ds_max_i64, ds_max_rtn_i64),
    entry<atomic::Minimum<u64>>(ds_min_u64, ds_min_rtn_u64),
    entry<atomic::Maximum<u64>>(ds_max_u64, ds_max_rtn_u64),
    entry<atomic::And<u64>>(ds_and_b64, ds_and_rtn_b64),
    entry<atomic::Or<u64>>(ds_or_b64, ds_or_rtn_b64),
    entry<atomic::Xor<u64>>(ds_xor_b64, ds_xor_rtn_b64),
    entry<atomic::MaskedOr<u64>>(ds_mskor_b64, ds_mskor_rtn_b64),
    entry<atomic::CompareFirst<u64>>(ds_cmpst_b64, ds_cmpst_rtn_b64),
    entry<atomic::CompareFirst<double>>(ds_cmpst_f64, ds_cmpst_rtn_f64),
    entry<atomic::Minimum<double>>(ds_min_f64, ds_min_rtn_f64),
    entry<atomic::Maximum<double>>(ds_max_f64, ds_max_rtn_f64),
    entry<atomic::Add<double>>(ds_add_f64, ds_add_rtn_f64),
};

}  // namespace

Handler translate_lds_atomic(const Instruction& in, MemoryPolicy policy) noexcept {
  const bool observed = policy != MemoryPolicy::direct;
  const auto one_of = [observed](Handler plain, Handler with_observer) {
    return observed ? with_observer : plain;
  };
  for (const Entry& each : kEntries) {
    if (in.opcode == each.opcode) return each.handler[observed];
    if (in.opcode == each.returning) return each.returning_handler[observed];
  }
  switch (in.opcode) {
    case ds_wrxchg_rtn_b32:
      return one_of(&one<atomic::Exchange<u32>, true, false>,
                    &one<atomic::Exchange<u32>, true, true>);
    case ds_wrxchg_rtn_b64:
      return one_of(&one<atomic::Exchange<u64>, true, false>,
                    &one<atomic::Exchange<u64>, true, true>);
    case ds_wrxchg2_rtn_b32:
      return one_of(&exchange_two<u32, 4, false>, &exchange_two<u32, 4, true>);
    case ds_wrxchg2_rtn_b64:
      return one_of(&exchange_two<u64, 8, false>, &exchange_two<u64, 8, true>);
    case ds_wrxchg2st64_rtn_b32:
      return one_of(&exchange_two<u32, 4 * 64, false>, &exchange_two<u32, 4 * 64, true>);
    case ds_wrxchg2st64_rtn_b64:
      return one_of(&exchange_two<u64, 8 * 64, false>, &exchange_two<u64, 8 * 64, true>);
    case ds_wrap_rtn_b32:
      return one_of(&one<atomic::Wrap, true, false>, &one<atomic::Wrap, true, true>);
    case ds_condxchg32_rtn_b64:
      return one_of(&one<atomic::ConditionalExchange, true, false>,
                    &one<atomic::ConditionalExchange, true, true>);
    default:
      return nullptr;
  }
}

}  // namespace uptempo::vgpu::gfx9::memory
