#include "gfx9/memory/memory.hpp"

#include <algorithm>
#include <cstdio>

#include "gfx9/memory/buffer.hpp"
#include "gfx9/observe.hpp"
#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9 {

namespace memory {
namespace {

// The half of the register that a d16 load writes; 0 for other instructions.
uint32_t d16_half(Opcode opcode) noexcept {
  using enum Opcode;
  switch (opcode) {
    case flat_load_ubyte_d16:
    case flat_load_sbyte_d16:
    case flat_load_short_d16:
    case global_load_ubyte_d16:
    case global_load_sbyte_d16:
    case global_load_short_d16:
    case scratch_load_ubyte_d16:
    case scratch_load_sbyte_d16:
    case scratch_load_short_d16:
    case buffer_load_ubyte_d16:
    case buffer_load_sbyte_d16:
    case buffer_load_short_d16:
    case ds_read_u8_d16:
    case ds_read_i8_d16:
    case ds_read_u16_d16:
      return 0x0000ffff;
    case flat_load_ubyte_d16_hi:
    case flat_load_sbyte_d16_hi:
    case flat_load_short_d16_hi:
    case global_load_ubyte_d16_hi:
    case global_load_sbyte_d16_hi:
    case global_load_short_d16_hi:
    case scratch_load_ubyte_d16_hi:
    case scratch_load_sbyte_d16_hi:
    case scratch_load_short_d16_hi:
    case buffer_load_ubyte_d16_hi:
    case buffer_load_sbyte_d16_hi:
    case buffer_load_short_d16_hi:
    case ds_read_u8_d16_hi:
    case ds_read_i8_d16_hi:
    case ds_read_u16_d16_hi:
      return 0xffff0000;
    default:
      return 0;
  }
}

Handler translate_load(const Instruction& in, MemoryPolicy policy) noexcept {
  if (in.format == Format::ds) return translate_lds(in, policy);
  const Handler handler = in.format == Format::flat ? translate_flat(in, policy) : nullptr;
  return handler != nullptr ? handler : translate_private(in, policy);
}

// A d16 load of a target with SRAM ECC, which clears the half that it does not load. Sources: CDNA1
// to CDNA4 ISA, vector memory, D16 ("When ECC is enabled"); LLVM, GCNSubtarget,
// d16PreservesUnusedBits(), which also applies to LDS. Compilers do not use these loads there, so
// the cost of a second translation at run time does not matter.
template <MemoryPolicy Policy>
const Op* load_d16_alone(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec();
  const Op* const after = translate_load(op.in, Policy)(op, wave);
  if (after == nullptr) return nullptr;
  const uint32_t half = d16_half(op.in.opcode);
  for_each_lane(exec, [&](unsigned lane) { wave.vgpr[op.in.dst].lane[lane] &= half; });
  return after;
}

}  // namespace
}  // namespace memory

Handler translate_memory(Instruction& in, Target target, MemoryPolicy policy) noexcept {
  if (in.format == Format::ds && in.gds)
    return memory::translate_wave_sync(in, policy);  // the only supported GDS instructions
  if (in.tfe) return nullptr;                        // texture-fail results
  // All families use the same canonical operands (memory.hpp).
  const OperandCode accumulation = (in.acc & 8) != 0 ? 256 : 0;
  in.src[0] = static_cast<OperandCode>(in.data0 + accumulation);
  in.src[1] = static_cast<OperandCode>(in.data1 + accumulation);
  in.dst = static_cast<uint16_t>(in.dst + accumulation);
  if (has_sram_ecc(target) && memory::d16_half(in.opcode) != 0) {
    if (memory::translate_load(in, policy) == nullptr) return nullptr;
    return memory::with_policy(
        policy, []<MemoryPolicy Policy>() -> Handler { return &memory::load_d16_alone<Policy>; });
  }
  switch (in.format) {
    case Format::flat:
      if (const Handler handler = memory::translate_to_lds(in, policy)) return handler;
      if (const Handler handler = memory::translate_flat(in, policy)) return handler;
      if (const Handler handler = memory::translate_private(in, policy)) return handler;
      return memory::translate_atomic(in, policy);
    case Format::mubuf:
      if (const Handler handler = memory::translate_cache_control(in, policy)) return handler;
      if (const Handler handler = memory::translate_to_lds(in, policy)) return handler;
      if (const Handler handler = memory::translate_private(in, policy)) return handler;
      return memory::translate_atomic(in, policy);
    case Format::ds:
      if (const Handler handler = memory::translate_lds(in, policy)) return handler;
      if (const Handler handler = memory::translate_lds_lanes(in, policy)) return handler;
      return memory::translate_lds_atomic(in, policy);
    default:
      return nullptr;
  }
}

namespace memory {
namespace {

void move(std::byte* host, void* buffer, unsigned bytes, Access access) noexcept {
  auto* const registers = static_cast<std::byte*>(buffer);
  if (access == Access::read)
    copy_in_pieces(registers, host, bytes);
  else
    copy_in_pieces(host, registers, bytes);
}

// Accesses one piece in global memory under the transfer's policy.
bool access_piece(const Op& op, Wave& wave, GpuAddress address, unsigned bytes, void* buffer,
                  const Transfer& transfer) {
  return transfer.policy == MemoryPolicy::cached
             ? access_lane_cached(op, wave, address, bytes, buffer, transfer.access)
             : access_lane_directly(op, wave, address, bytes, buffer, transfer.access);
}

// Calls access_raw(lane, raw) between the two conversions of each lane's element. False from
// access_raw ends the instruction.
template <class F>
const Op* each_lane(const Op& op, Wave& wave, uint64_t exec, const Transfer& transfer,
                    F&& access_raw) {
  Vgpr* data = data_registers(op, wave, transfer.access);
  for (; exec != 0; exec &= exec - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(exec));
    RawElement raw{};
    if (transfer.access == Access::write) transfer.exchange(data, lane, &raw);
    if (!access_raw(lane, reinterpret_cast<std::byte*>(&raw))) return nullptr;
    if (transfer.access == Access::read) transfer.exchange(data, lane, &raw);
  }
  return next<2>(op);
}

}  // namespace

const Op* access_each_lane(const Op& op, Wave& wave, uint64_t exec, const GpuAddress* address,
                           const Transfer& transfer) {
  return each_lane(op, wave, exec, transfer, [&](unsigned lane, std::byte* raw) {
    return access_piece(op, wave, address[lane], transfer.bytes, raw, transfer);
  });
}

uint64_t changing_lanes(const Op& op, Wave& wave, uint64_t exec, const GpuAddress* address,
                        const Transfer& transfer) {
  uint64_t changes = 0;
  for_each_lane(exec, [&](unsigned lane) {
    RawElement raw{};
    transfer.exchange(data_registers(op, wave, Access::write), lane, &raw);
    const std::byte* const host =
        wave.executor->translate(op, address[lane], transfer.bytes, Access::read);
    if (host == nullptr || std::memcmp(host, &raw, transfer.bytes) != 0)
      changes |= uint64_t{1} << lane;
  });
  return changes;
}

void observe_lds(const Op& op, const Wave& wave, Access access, unsigned bytes, const Vgpr& base,
                 uint32_t offset, bool returns, const ChangingLanes& changing) noexcept {
  uint32_t offsets[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) offsets[lane] = base.lane[lane] + offset;
  Observed::lds_access(op, wave, access, bytes, wave.exec(), offsets, returns, changing);
}

void observe_shared(const Op& op, const Wave& wave, uint64_t lanes, Access access, unsigned bytes,
                    const GpuAddress* address, bool returns) noexcept {
  uint32_t offsets[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    offsets[lane] = static_cast<uint32_t>(address[lane]);
  Observed::lds_access(op, wave, access, bytes, lanes, offsets, returns);
}

const Op* access_each_private_lane(const Op& op, Wave& wave, uint64_t exec, GpuAddress base,
                                   const uint32_t* offset, const Transfer& transfer) {
  return each_lane(op, wave, exec, transfer, [&](unsigned lane, std::byte* raw) {
    return access_private_lane(op, wave, base, lane, offset[lane], transfer.bytes, raw,
                               transfer.access);
  });
}

// An element that is in range as a whole, and whose dwords are neighbours, is one access. Otherwise
// each dword is, because each is in range or not on its own.
const Op* access_each_buffer_lane(const Op& op, Wave& wave, uint64_t exec, const Buffer& buffer,
                                  const Transfer& transfer) {
  const auto access_part = [&](unsigned lane, GpuAddress address, unsigned bytes, std::byte* raw) {
    GpuAddress observed[kLanes];
    if (!transfer.direct()) {
      observed[lane] = address;
      // Parts of an element are not compared.
      const uint64_t all = uint64_t{1} << lane;
      const auto changing = [&] {
        return bytes == transfer.bytes ? changing_lanes(op, wave, all, observed, transfer) : all;
      };
      Observed::access(op, wave, transfer.access, bytes, all, observed, ChangingLanes(changing));
    }
    if (!access_piece(op, wave, address, bytes, raw, transfer)) return false;
    if (!transfer.direct())
      Observed::accessed(op, wave, transfer.access, bytes, uint64_t{1} << lane, observed);
    return true;
  };
  GpuAddress dropped[kLanes];
  uint64_t dropped_lanes = 0;
  const Op* const after = each_lane(op, wave, exec, transfer, [&](unsigned lane, std::byte* raw) {
    if (buffer.is_linear()) {
      const Buffer::Place whole = buffer.place(op, wave, lane, 0, transfer.bytes);
      if (whole.in_range) return access_part(lane, whole.address, transfer.bytes, raw);
    }
    const unsigned bytes = transfer.piece_bytes();
    for (unsigned piece = 0; piece < transfer.pieces(); ++piece) {
      const Buffer::Place part = buffer.place(op, wave, lane, piece * 4, bytes);
      if (part.in_range) {
        if (!access_part(lane, part.address, bytes, raw + 4 * piece)) return false;
      } else if ((dropped_lanes >> lane & 1) == 0) {
        dropped_lanes |= uint64_t{1} << lane;
        dropped[lane] = part.address;
      }
    }
    return true;
  });
  if (!transfer.direct())
    Observed::out_of_range(op, wave, transfer.access, transfer.bytes, dropped_lanes, dropped);
  return after;
}

void observe_private(const Op& op, const Wave& wave, uint64_t exec, GpuAddress base,
                     const uint32_t* offset, const Transfer& transfer) noexcept {
  for (unsigned piece = 0; piece < transfer.pieces(); ++piece) {
    GpuAddress observed[kLanes] = {};
    for_each_lane(exec, [&](unsigned lane) {
      observed[lane] = private_address(base, offset[lane], lane) + piece * sizeof(Vgpr);
    });
    Observed::access(op, wave, transfer.access, transfer.piece_bytes(), exec, observed);
  }
}

bool access_lane_directly(const Op& op, Wave& wave, GpuAddress address, unsigned bytes,
                          void* buffer, Access access) {
  std::byte* host = wave.executor->translate(op, address, bytes, access);
  if (host == nullptr) return stop_memory_fault(op, wave, address, access) != nullptr;
  move(host, buffer, bytes, access);
  return true;
}

const Op* stop_outside_private_segment(const Op& op, Wave& wave, GpuAddress address,
                                       Access access) noexcept {
  static constexpr const char* kVerb[] = {"reads", "writes", "atomically updates"};
  const auto distance = static_cast<int64_t>(address - wave.scratch_base);
  // Not of 256 bytes: the lane's own part of the dword does not count.
  const int64_t byte = distance / (4 * static_cast<int64_t>(kLanes)) * 4 + distance % 4;
  char text[160];
  std::snprintf(text, sizeof text,
                "%s byte %lld of a work-item's private memory, which has %llu; the kernel needs a "
                "larger private_segment_size",
                kVerb[static_cast<unsigned>(access)], static_cast<long long>(byte),
                static_cast<unsigned long long>(wave.scratch_bytes / kLanes));
  return stop_error(op, wave, QueueError::aperture_violation, text);
}

bool access_private_lane(const Op& op, Wave& wave, GpuAddress base, unsigned lane, uint32_t offset,
                         unsigned bytes, void* buffer, Access access) {
  auto* data = static_cast<std::byte*>(buffer);
  while (bytes != 0) {
    const unsigned in_dword = std::min(bytes, 4 - offset % 4);
    // A misaligned element moves in pieces of 1 and 2 bytes.
    const unsigned step = in_dword == 3 ? 1 : in_dword;
    const GpuAddress address = private_address(base, offset, lane);
    if (!in_private_segment(wave, address, step))
      return stop_outside_private_segment(op, wave, address, access) != nullptr;
    std::byte* host = wave.executor->translate(op, address, step, access);
    if (host == nullptr) return stop_memory_fault(op, wave, address, access) != nullptr;
    move(host, data, step, access);
    data += step;
    offset += step;
    bytes -= step;
  }
  return true;
}

Choose for_simd(Choose avx512, Choose avx2, Choose baseline) noexcept {
  switch (vector::simd_in_use()) {
    case vector::Simd::avx512:
      return avx512;
    case vector::Simd::avx2:
      return avx2;
    case vector::Simd::baseline:
      break;
  }
  return baseline;
}

}  // namespace memory
}  // namespace uptempo::vgpu::gfx9
