// A chain of dependent kernels as HIP's graph. No header of HIP or of the engine is needed, so that
// each of the two compilers reads one of them.
//
// Thread safety: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tools/hardware/chain_times.hpp"

namespace uptempo::hardware {

// Makes the first HIP device for which `is_wanted` returns true the current one. Returns false if
// there is none. Throws std::runtime_error.
bool select_device(const std::function<bool(int number)>& is_wanted);

class HipChain {
 public:
  // Creates a graph on HIP's current device. Node i, after node i - 1, makes 3 x + i of each word
  // x. Throws std::runtime_error.
  HipChain(uint32_t dispatches, uint32_t workgroups, uint32_t workgroup_size, uint32_t* words);
  ~HipChain();
  HipChain(const HipChain&) = delete;
  HipChain& operator=(const HipChain&) = delete;

  // Launches the graph and waits. The device's time is that between two events around the launch.
  // Throws std::runtime_error.
  ChainTimes run();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// "HIP 6.4". Throws std::runtime_error.
std::string hip_version();

}  // namespace uptempo::hardware
