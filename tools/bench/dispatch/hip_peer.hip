#include <hip/hip_runtime.h>

#include <map>
#include <string>

#include "tools/bench/dispatch/hip_peer.h"

namespace {

// The same as `tally` of kernels/basics.cl.
__global__ void tally(uint32_t* tallies, uint32_t dispatch) {
  if (threadIdx.x == 0) atomicAdd(&tallies[dispatch], 1u);
}

constexpr uint32_t kItems = 64;

struct State {
  hipStream_t stream = nullptr;
  struct Graph {
    hipGraph_t graph = nullptr;
    hipGraphExec_t exec = nullptr;
  };
  std::map<uint32_t, Graph> graphs;  // by batch length
  uint32_t batch = 0, repeats = 0;
  uint32_t* tallies = nullptr;
} state;

const char* text(hipError_t error) {
  return error == hipSuccess ? nullptr : hipGetErrorString(error);
}

const char* make_graph(State::Graph& made) {
  hipGraph_t& graph = made.graph;
  if (const char* error = text(hipGraphCreate(&graph, 0))) return error;
  hipGraphNode_t previous = nullptr;
  for (uint32_t i = 0; i < state.batch; ++i) {
    uint32_t dispatch = i;
    void* arguments[] = {&state.tallies, &dispatch};
    hipKernelNodeParams node{};
    node.func = reinterpret_cast<void*>(tally);
    node.gridDim = dim3(1);
    node.blockDim = dim3(kItems);
    node.kernelParams = arguments;
    hipGraphNode_t added = nullptr;
    if (const char* error = text(hipGraphAddKernelNode(&added, graph, i == 0 ? nullptr : &previous,
                                                       i == 0 ? 0 : 1, &node)))
      return error;
    previous = added;
  }
  return text(hipGraphInstantiate(&made.exec, graph, nullptr, nullptr, 0));
}

const char* launch() {
  for (uint32_t i = 0; i < state.batch * state.repeats; ++i) {
    void* arguments[] = {&state.tallies, &i};
    if (const char* error = text(hipLaunchKernel(reinterpret_cast<void*>(tally), dim3(1),
                                                 dim3(kItems), arguments, 0, state.stream)))
      return error;
  }
  return nullptr;
}

const char* launch_graphs() {
  const hipGraphExec_t graph = state.graphs[state.batch].exec;
  for (uint32_t i = 0; i < state.repeats; ++i)
    if (const char* error = text(hipGraphLaunch(graph, state.stream))) return error;
  return nullptr;
}

const char* wait() { return text(hipStreamSynchronize(state.stream)); }

const char* prepare(uint32_t batch, uint32_t repeats, uint32_t* tallies, int graphs) {
  state.batch = batch;
  state.repeats = repeats;
  state.tallies = tallies;
  if (state.stream == nullptr) {
    if (const char* error = text(hipStreamCreateWithFlags(&state.stream, hipStreamNonBlocking)))
      return error;
    // At the first launch HIP loads code, which launches kernels of its own.
    if (const char* error = launch()) return error;
    if (const char* error = wait()) return error;
  }
  if (graphs == 0 || state.graphs[batch].exec != nullptr) return nullptr;
  return make_graph(state.graphs[batch]);
}

void* graph() { return state.graphs[state.batch].graph; }

const char* version() {
  static const std::string name = [] {
    int number = 0;
    if (hipRuntimeGetVersion(&number) != hipSuccess) return std::string("HIP");
    return "HIP " + std::to_string(number / 10000000) + '.' + std::to_string(number / 100000 % 100);
  }();
  return name.c_str();
}

constexpr uptempo_hip_peer kPeer{prepare, launch, launch_graphs, wait, graph, version};

}  // namespace

extern "C" __attribute__((visibility("default"))) const struct uptempo_hip_peer*
uptempo_hip_peer_functions() {
  return &kPeer;
}
