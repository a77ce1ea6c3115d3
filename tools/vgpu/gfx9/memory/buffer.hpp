// Buffer descriptors of MUBUF (Vega ISA, "Vector Memory Buffer Instructions").
#pragma once

#include "gfx9/op.hpp"

namespace uptempo::vgpu::gfx9::memory {

class Buffer {
 public:
  Buffer(const Op& op, const Wave& wave) noexcept
      : base_(wave.pair(op.in.srsrc) & 0xffffffffffff),
        soffset_(wave.scalar[op.in.soffset]),
        stride_(wave.scalar[op.in.srsrc + 1] >> 16 & 0x3fff),
        records_(wave.scalar[op.in.srsrc + 2]),
        swizzled_(wave.scalar[op.in.srsrc + 1] >> 31 != 0),
        index_stride_(8u << (wave.scalar[op.in.srsrc + 3] >> 21 & 3)),
        add_lane_((wave.scalar[op.in.srsrc + 3] >> 23 & 1) != 0) {}

  // Tests for ROCr's scratch descriptor: swizzled, lane as index, index stride 64
  // (amd_aql_queue.cpp, FillBufRsrcWord3).
  bool is_private_segment() const noexcept {
    return swizzled_ && add_lane_ && index_stride_ == kLanes && stride_ == 0;
  }
  // The descriptor's base, without the instruction's offsets.
  GpuAddress base() const noexcept { return base_; }
  // Whether consecutive bytes of a lane's element have consecutive addresses.
  bool is_linear() const noexcept { return !swizzled_; }
  GpuAddress start() const noexcept { return base_ + soffset_; }

  struct Place {
    GpuAddress address;
    bool in_range;  // Out of range, reads give 0 and stores are dropped.
  };

  // Returns where the `bytes` from byte `displacement` of the lane's element on are.
  Place place(const Op& op, const Wave& wave, unsigned lane, unsigned displacement,
              unsigned bytes) const noexcept {
    uint32_t index = op.in.idxen ? wave.vgpr[op.in.addr].lane[lane] : 0;
    if (add_lane_) index += lane;
    // The instruction's and the lane's offset are added in 32 bits; nothing else wraps (LLVM pull
    // requests 152584 and 207821).
    uint32_t sum = static_cast<uint32_t>(op.in.offset);
    if (op.in.offen) sum += wave.vgpr[op.in.addr + (op.in.idxen ? 1 : 0)].lane[lane];
    const uint64_t offset = uint64_t{sum} + displacement;
    const bool structured = stride_ != 0 && (swizzled_ || op.in.idxen);
    const bool in_range = structured ? index < records_ && (!swizzled_ || offset + bytes <= stride_)
                                     : offset + soffset_ + bytes <= records_;
    if (!swizzled_) return {start() + uint64_t{index} * stride_ + offset, in_range};
    const uint64_t row = uint64_t{index / index_stride_} * stride_ + offset / 4 * 4;
    return {start() + row * index_stride_ + index % index_stride_ * 4 + offset % 4, in_range};
  }

 private:
  GpuAddress base_;
  uint32_t soffset_;
  uint32_t stride_;
  uint32_t records_;  // bytes of a raw buffer, elements of a structured one
  bool swizzled_;
  uint32_t index_stride_;
  bool add_lane_;
};

}  // namespace uptempo::vgpu::gfx9::memory
