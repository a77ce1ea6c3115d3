// DS instructions that move data between lanes, those addressed by M0, and the counters append and
// consume.
#include "gfx9/memory/memory.hpp"
#include "gfx9/observe.hpp"

namespace uptempo::vgpu::gfx9::memory {
namespace {

// dst[i] = source(i) for active lanes. A source lane that is inactive gives 0.
template <class Source>
void pull(Wave& wave, const Op& op, const Vgpr& data, Source source) {
  const uint64_t exec = wave.exec();
  Vgpr result;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned from = source(lane) % kLanes;
    result.lane[lane] = (exec >> from & 1) != 0 ? data.lane[from] : 0;
  }
  for_each_lane(exec, [&](unsigned lane) { wave.vgpr[op.in.dst].lane[lane] = result.lane[lane]; });
}

const Op* bpermute(const Op& op, Wave& wave) {
  const Vgpr& address = wave.vgpr[op.in.addr];
  const auto offset = static_cast<uint32_t>(op.in.offset);
  pull(wave, op, wave.vgpr[op.in.src[0]],
       [&](unsigned lane) { return (address.lane[lane] + offset) / 4; });
  return next<2>(op);
}

const Op* permute(const Op& op, Wave& wave) {
  const Vgpr& address = wave.vgpr[op.in.addr];
  const Vgpr& data = wave.vgpr[op.in.src[0]];
  Vgpr result{};
  // In lane order: the highest lane that writes to a place wins.
  for_each_lane(wave.exec(), [&](unsigned lane) {
    result.lane[(address.lane[lane] + static_cast<uint32_t>(op.in.offset)) / 4 % kLanes] =
        data.lane[lane];
  });
  for_each_lane(wave.exec(),
                [&](unsigned lane) { wave.vgpr[op.in.dst].lane[lane] = result.lane[lane]; });
  return next<2>(op);
}

constexpr unsigned reverse5(unsigned value) {
  unsigned result = 0;
  for (unsigned i = 0; i < 5; ++i) result |= (value >> i & 1) << (4 - i);
  return result;
}

// The offset field holds the pattern (Vega ISA, DS_SWIZZLE_B32). All patterns except quad
// permutation act on groups of 32 lanes.
unsigned swizzle_source(uint32_t pattern, unsigned lane) {
  const unsigned group = lane & 0x20, i = lane & 0x1f;
  const unsigned field0 = pattern & 0x1f, field1 = pattern >> 5 & 0x1f,
                 field2 = pattern >> 10 & 0x1f;
  if (pattern >= 0xe000) {  // FFT
    return group | (reverse5(i) >> std::popcount(field0)) | (i & field0);
  }
  if (pattern >= 0xc000) {  // rotate
    const unsigned rotation = (pattern & 0x400) != 0 ? 32 - field1 : field1;
    return group | (i & field0) | ((i + rotation) & ~field0 & 0x1f);
  }
  if ((pattern & 0x8000) != 0)
    return (lane & ~3u) | (pattern >> (2 * (lane & 3)) & 3);  // quad permutation
  return group | (((i & field0) | field1) ^ field2);
}

const Op* swizzle(const Op& op, Wave& wave) {
  pull(wave, op, wave.vgpr[op.in.addr],
       [&](unsigned lane) { return swizzle_source(static_cast<uint32_t>(op.in.offset), lane); });
  return next<2>(op);
}

uint64_t from_m0(const Op& op, const Wave& wave) {
  return (wave.scalar[kM0] & 0xffff) + static_cast<uint64_t>(op.in.offset);
}

template <Access Kind, bool IsObserved>
const Op* by_lane(const Op& op, Wave& wave) {
  if constexpr (IsObserved) {
    Vgpr lanes;
    for (unsigned lane = 0; lane < kLanes; ++lane) lanes.lane[lane] = lane * 4;
    observe_lds(op, wave, Kind, 4, lanes, static_cast<uint32_t>(from_m0(op, wave)));
  }
  for_each_lane(wave.exec(), [&](unsigned lane) {
    const uint64_t address = from_m0(op, wave) + lane * 4;
    const bool inside = address + 4 <= wave.lds_bytes;
    if constexpr (Kind == Access::read) {
      uint32_t value = 0;
      if (inside) std::memcpy(&value, wave.lds + address, 4);
      wave.vgpr[op.in.dst].lane[lane] = value;
    } else if (inside) {
      std::memcpy(wave.lds + address, &wave.vgpr[op.in.src[0]].lane[lane], 4);
    }
  });
  return next<2>(op);
}

// Changes the counter by the number of active lanes. Each active lane gets the old value.
template <int Direction, bool IsObserved>
const Op* count(const Op& op, Wave& wave) {
  const uint64_t exec = wave.exec(), address = from_m0(op, wave);
  if constexpr (IsObserved) {
    uint32_t offset[kLanes];
    std::fill_n(offset, kLanes, static_cast<uint32_t>(address));
    Observed::lds_access(op, wave, Access::atomic, 4, exec & -exec, offset, true);
  }
  uint32_t before = 0;
  if (exec != 0 && address + 4 <= wave.lds_bytes) {
    std::memcpy(&before, wave.lds + address, 4);
    const uint32_t after = before + static_cast<uint32_t>(Direction * std::popcount(exec));
    std::memcpy(wave.lds + address, &after, 4);
  }
  for_each_lane(exec, [&](unsigned lane) { wave.vgpr[op.in.dst].lane[lane] = before; });
  return next<2>(op);
}

const Op* nothing(const Op& op, Wave&) { return next<2>(op); }

}  // namespace

Handler translate_lds_lanes(const Instruction& in, MemoryPolicy policy) noexcept {
  const bool observed = policy != MemoryPolicy::direct;
  switch (in.opcode) {
    case Opcode::ds_bpermute_b32:
      return &bpermute;
    case Opcode::ds_permute_b32:
      return &permute;
    case Opcode::ds_swizzle_b32:
      return &swizzle;
    case Opcode::ds_read_addtid_b32:
      return observed ? &by_lane<Access::read, true> : &by_lane<Access::read, false>;
    case Opcode::ds_write_addtid_b32:
      return observed ? &by_lane<Access::write, true> : &by_lane<Access::write, false>;
    case Opcode::ds_append:
      return observed ? &count<1, true> : &count<1, false>;
    case Opcode::ds_consume:
      return observed ? &count<-1, true> : &count<-1, false>;
    case Opcode::ds_nop:
      return &nothing;
    default:
      return nullptr;
  }
}

}  // namespace uptempo::vgpu::gfx9::memory
