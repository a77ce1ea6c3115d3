// A GPU that passes messages: kernels that write, copy and read an array with chosen fences. Used by
// the programs under test.
//
// Thread safety: none.
#pragma once

#include <uptempo/kernels/basics.hpp>

#include "device.hpp"

namespace uptempo::vgpu::test {

inline constexpr auto kNone = HSA_FENCE_SCOPE_NONE;
inline constexpr auto kAgent = HSA_FENCE_SCOPE_AGENT;
inline constexpr auto kSystem = HSA_FENCE_SCOPE_SYSTEM;

inline constexpr uint32_t kCount = 4096;

using Words = std::span<uint32_t>;

inline bool holds(Words words, uint32_t first) {
  for (uint32_t i = 0; i < kCount; ++i)
    if (words[i] != first + i) return false;
  return true;
}

class MessageGpu {
 public:
  explicit MessageGpu(uint32_t number = 0) : device(kernels::basics(), number) {}

  // The GPU computes out[i] = first + i.
  void write(Words out, uint32_t first, Fences fences) {
    device.dispatch(iota, kCount, device.arguments().add(out.data()).add(first).add(uint32_t{1}),
                    fences);
  }
  // The GPU computes out[i] = in[i].
  void copy(Words out, Words in, Fences fences) {
    device.dispatch(copies, kCount, device.arguments().add(out.data()).add(in.data()), fences);
  }
  // Every compute unit in use reads the data, which then is in L1 and L2.
  void have_read(Words in) {
    for (int round = 0; round < 4; ++round) copy(sink, in, {});
    device.wait();
  }

  TestDevice device;
  const TestDevice::Kernel iota = device.kernel("iota"), copies = device.kernel("copy");

 private:
  const Words sink = device.allocate(Memory::local, kCount);
};

}  // namespace uptempo::vgpu::test
