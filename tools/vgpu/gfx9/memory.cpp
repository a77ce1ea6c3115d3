#include "gfx9/memory.hpp"

#include <algorithm>

#include "gfx9/vector/entry.hpp"

namespace uptempo::vgpu::gfx9 {

Handler translate_memory(Instruction& in, MemoryPolicy policy) noexcept {
  if (in.format == Format::ds && in.gds)
    return memory::translate_wave_sync(in);  // all there is of the global data share
  if (in.tfe) return nullptr;                // texture-fail results
  // Each family asks for the same canonical operands (memory.hpp).
  const OperandCode accumulation = (in.acc & 8) != 0 ? 256 : 0;
  in.src[0] = static_cast<OperandCode>(in.data0 + accumulation);
  in.src[1] = static_cast<OperandCode>(in.data1 + accumulation);
  in.dst = static_cast<uint16_t>(in.dst + accumulation);
  switch (in.format) {
    case Format::flat:
      if (const Handler handler = memory::translate_flat(in, policy)) return handler;
      if (const Handler handler = memory::translate_private(in, policy)) return handler;
      return memory::translate_atomic(in, policy);
    case Format::mubuf:
      if (const Handler handler = memory::translate_cache_control(in, policy)) return handler;
      if (const Handler handler = memory::translate_private(in, policy)) return handler;
      return memory::translate_atomic(in, policy);
    case Format::ds:
      if (const Handler handler = memory::translate_lds(in)) return handler;
      if (const Handler handler = memory::translate_lds_lanes(in)) return handler;
      return memory::translate_lds_atomic(in);
    default:
      return nullptr;
  }
}

namespace memory {
namespace {

// Constant sizes, so that each is one host access.
void move(std::byte* host, void* buffer, unsigned bytes, Access access) noexcept {
  const auto copy = [&]<size_t N>(std::integral_constant<size_t, N>) {
    if (access == Access::read) {
      std::memcpy(buffer, host, N);
    } else {
      std::memcpy(host, buffer, N);
    }
  };
  switch (bytes) {
    case 1:
      return copy(std::integral_constant<size_t, 1>{});
    case 2:
      return copy(std::integral_constant<size_t, 2>{});
    case 4:
      return copy(std::integral_constant<size_t, 4>{});
    case 8:
      return copy(std::integral_constant<size_t, 8>{});
    default:
      for (unsigned i = 0; i < bytes; i += 4) move(host + i, static_cast<std::byte*>(buffer) + i, 4, access);
  }
}

}  // namespace

bool access_lane_directly(const Op& op, Wave& wave, GpuAddress address, unsigned bytes, void* buffer,
                          Access access) {
  std::byte* host = wave.executor->translate(op, address, bytes, access);
  if (host == nullptr) return stop_memory_fault(op, wave, address, access) != nullptr;
  move(host, buffer, bytes, access);
  return true;
}

bool access_private_lane(const Op& op, Wave& wave, GpuAddress base, unsigned lane, uint32_t offset,
                         unsigned bytes, void* buffer, Access access) {
  auto* data = static_cast<std::byte*>(buffer);
  while (bytes != 0) {
    const unsigned in_dword = std::min(bytes, 4 - offset % 4);
    const unsigned step =
        in_dword == 3 ? 1 : in_dword;  // a misaligned element goes in pieces of 1 and 2 bytes
    const GpuAddress address = private_address(base, offset, lane);
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
