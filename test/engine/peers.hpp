// Two GPUs with their programs, for tests of machines with several (uptempo-vgpu --gpus).
#pragma once

#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

namespace uptempo::test {

struct PeerPrograms {
  using Combine = Kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t>;

  explicit PeerPrograms(const Agent& gpu)
      : basics(gpu, builtin_kernels::basics()), probes(gpu, builtin_kernels::probes()) {}
  Program basics, probes;
  Kernel<uint32_t*, uint32_t> fill = basics.kernel<uint32_t*, uint32_t>("fill");
  Kernel<uint32_t*, uint32_t, uint32_t> iota = basics.kernel<uint32_t*, uint32_t, uint32_t>("iota");
  Kernel<uint32_t*, uint32_t> increment = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Combine combine = probes.kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t>("combine");
  Kernel<uint32_t*, uint32_t, uint32_t*> wait_for_gate =
      probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
};

// The kernel "combine" on the host.
inline void combine_on_host(std::vector<uint32_t>& out, const std::vector<uint32_t>& a,
                            const std::vector<uint32_t>& b, uint32_t addend) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = out[i] * 7u + a[out.size() - 1 - i] * 3u + b[i] * 5u + addend;
}

class OnPeers : public OnDevice {
 public:
  OnPeers() { REQUIRE(runtime.gpus().size() >= 2); }

  const std::array<Agent, 2> gpus{runtime.gpus()[0], runtime.gpus()[1]};
  const std::array<PeerPrograms, 2> programs{PeerPrograms(gpus[0]), PeerPrograms(gpus[1])};

  // "gfx90a (node 2)", as errors name the agent.
  std::string name(size_t index) const { return name_and_node(gpus[index]); }
};

}  // namespace uptempo::test
