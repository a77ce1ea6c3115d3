#include <hip/hip_runtime.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "tools/hardware/chain_hip.hpp"

namespace {

// The same as `chain_increment` of kernels/basics.cl.
__global__ void chain_increment(uint32_t* words, uint32_t addend) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = words[i] * 3 + addend;
}

void require(hipError_t error, const char* call) {
  if (error != hipSuccess)
    throw std::runtime_error(std::string(call) + ": " + hipGetErrorString(error));
}

}  // namespace

namespace uptempo::hardware {

bool select_device(const std::function<bool(int number)>& is_wanted) {
  int count = 0;
  require(hipGetDeviceCount(&count), "hipGetDeviceCount");
  for (int number = 0; number < count; ++number)
    if (is_wanted(number)) {
      require(hipSetDevice(number), "hipSetDevice");
      return true;
    }
  return false;
}

struct HipChain::State {
  hipStream_t stream = nullptr;
  hipEvent_t begin = nullptr, end = nullptr;
  hipGraph_t graph = nullptr;
  hipGraphExec_t exec = nullptr;
};

HipChain::HipChain(uint32_t dispatches, uint32_t blocks, uint32_t workgroup, uint32_t* words)
    : state_(new State) {
  State& state = *state_;
  require(hipStreamCreateWithFlags(&state.stream, hipStreamNonBlocking),
          "hipStreamCreateWithFlags");
  require(hipEventCreate(&state.begin), "hipEventCreate");
  require(hipEventCreate(&state.end), "hipEventCreate");
  require(hipGraphCreate(&state.graph, 0), "hipGraphCreate");
  hipGraphNode_t previous = nullptr;
  for (uint32_t i = 0; i < dispatches; ++i) {
    void* arguments[] = {&words, &i};
    hipKernelNodeParams node{};
    node.func = reinterpret_cast<void*>(chain_increment);
    node.gridDim = dim3(blocks);
    node.blockDim = dim3(workgroup);
    node.kernelParams = arguments;
    hipGraphNode_t added = nullptr;
    require(hipGraphAddKernelNode(&added, state.graph, i == 0 ? nullptr : &previous, i == 0 ? 0 : 1,
                                  &node),
            "hipGraphAddKernelNode");
    previous = added;
  }
  require(hipGraphInstantiate(&state.exec, state.graph, nullptr, nullptr, 0),
          "hipGraphInstantiate");
}

HipChain::~HipChain() {
  (void)hipGraphExecDestroy(state_->exec);
  (void)hipGraphDestroy(state_->graph);
  (void)hipEventDestroy(state_->begin);
  (void)hipEventDestroy(state_->end);
  (void)hipStreamDestroy(state_->stream);
}

ChainTimes HipChain::run() {
  ChainTimes times;
  const auto begin = std::chrono::steady_clock::now();
  require(hipEventRecord(state_->begin, state_->stream), "hipEventRecord");
  require(hipGraphLaunch(state_->exec, state_->stream), "hipGraphLaunch");
  require(hipEventRecord(state_->end, state_->stream), "hipEventRecord");
  require(hipStreamSynchronize(state_->stream), "hipStreamSynchronize");
  times.host_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  float ms = 0;
  require(hipEventElapsedTime(&ms, state_->begin, state_->end), "hipEventElapsedTime");
  times.device_us = 1000.0 * static_cast<double>(ms);
  return times;
}

std::string hip_version() {
  int number = 0;
  require(hipRuntimeGetVersion(&number), "hipRuntimeGetVersion");
  return "HIP " + std::to_string(number / 10000000) + '.' + std::to_string(number / 100000 % 100);
}

}  // namespace uptempo::hardware
