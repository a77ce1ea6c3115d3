// Graphs as inference engines use them: a captured step with parallel branches, launched again and
// again, and updated in each step by one of two ways.
#include "program.hpp"

namespace {

constexpr int kSteps = 12;
constexpr int kLayers = 6;

struct Model {
  Words state, left, right;
  HostWords token{1}, result{0};
  hipStream_t main = new_stream(), side = new_stream();
  hipEvent_t fork = nullptr, join = nullptr;

  Model() {
    CHECK_HIP(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
    CHECK_HIP(hipEventCreateWithFlags(&join, hipEventDisableTiming));
  }
  ~Model() {
    CHECK_HIP(hipEventDestroy(fork));
    CHECK_HIP(hipEventDestroy(join));
    CHECK_HIP(hipStreamDestroy(main));
    CHECK_HIP(hipStreamDestroy(side));
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // One step of the model on `main`: each layer has a branch on `side`.
  void enqueue(uint32_t position) {
    CHECK_HIP(hipMemcpyAsync(left.device, token.host, kBytes, hipMemcpyHostToDevice, main));
    for (int layer = 0; layer < kLayers; ++layer) {
      step<<<kBlocks, kThreads, 0, main>>>(state.device, 3, position);
      CHECK_HIP(hipEventRecord(fork, main));
      CHECK_HIP(hipStreamWaitEvent(side, fork, 0));
      step<<<kBlocks, kThreads, 0, side>>>(right.device, 5, position + 1);
      add<<<kBlocks, kThreads, 0, side>>>(right.device, state.device);
      add<<<kBlocks, kThreads, 0, main>>>(left.device, state.device);
      CHECK_HIP(hipEventRecord(join, side));
      CHECK_HIP(hipStreamWaitEvent(main, join, 0));
      add<<<kBlocks, kThreads, 0, main>>>(state.device, right.device);
      add<<<kBlocks, kThreads, 0, main>>>(state.device, left.device);
    }
    CHECK_HIP(hipGetLastError());
    CHECK_HIP(hipMemcpyAsync(result.host, state.device, kBytes, hipMemcpyDeviceToHost, main));
  }

  hipGraph_t capture(uint32_t position) {
    // A forked stream of HIP 5.2 keeps the nodes of its last capture, so each capture has a new one.
    CHECK_HIP(hipStreamDestroy(side));
    side = new_stream();
    hipGraph_t graph = nullptr;
    CHECK_HIP(hipStreamBeginCapture(main, hipStreamCaptureModeThreadLocal));
    enqueue(position);
    CHECK_HIP(hipStreamEndCapture(main, &graph));
    return graph;
  }

  // The next token depends on the result, as in a decoder.
  void next_token() {
    CHECK_HIP(hipStreamSynchronize(main));
    for (uint32_t i = 0; i < kWords; ++i) token.host[i] = result.host[(i * 7 + 1) % kWords] ^ i;
  }

  Sum sum() const {
    Sum total;
    total.add(state);
    total.add(left);
    total.add(right);
    total.add(result);
    return total;
  }
};

// Without a graph. Returns the sum that both ways must have.
uint64_t without_graph() {
  Model model;
  for (uint32_t position = 0; position < kSteps; ++position) {
    model.enqueue(position);
    model.next_token();
  }
  const Sum sum = model.sum();
  print("streams", sum);
  return sum.value;
}

void require(const Model& model, const char* section, uint64_t expected) {
  const Sum sum = model.sum();
  print(section, sum);
  if (sum.value != expected) {
    std::fprintf(stderr, "%s: a graph gives other results than its streams\n", section);
    std::exit(1);
  }
}

// Captured anew in each step; the executable graph is updated.
void updated(uint64_t expected) {
  Model model;
  hipGraphExec_t executable = nullptr;
  int instantiated = 0;
  for (uint32_t position = 0; position < kSteps; ++position) {
    const hipGraph_t graph = model.capture(position);
    hipGraphNode_t node = nullptr;
    hipGraphExecUpdateResult result = hipGraphExecUpdateError;
    if (executable != nullptr &&
        (hipGraphExecUpdate(executable, graph, &node, &result) != hipSuccess ||
         result != hipGraphExecUpdateSuccess)) {
      CHECK_HIP(hipGraphExecDestroy(executable));
      executable = nullptr;
    }
    if (executable == nullptr) {
      executable = instantiate(graph);
      ++instantiated;
    }
    CHECK_HIP(hipGraphDestroy(graph));
    CHECK_HIP(hipGraphLaunch(executable, model.main));
    model.next_token();
  }
  CHECK_HIP(hipGraphExecDestroy(executable));
  require(model, "updated", expected);
  std::printf("instantiated %d\n", instantiated);
}

// Captured once; the arguments of each kernel with a position are replaced in each step.
void parameters(uint64_t expected) {
  Model model;
  const hipGraph_t graph = model.capture(0);
  const hipGraphExec_t executable = instantiate(graph);
  size_t count = 0;
  CHECK_HIP(hipGraphGetNodes(graph, nullptr, &count));
  std::vector<hipGraphNode_t> nodes(count);
  CHECK_HIP(hipGraphGetNodes(graph, nodes.data(), &count));
  std::printf("nodes %zu\n", count);
  for (uint32_t position = 0; position < kSteps; ++position) {
    for (const hipGraphNode_t node : nodes) {
      hipGraphNodeType type{};
      CHECK_HIP(hipGraphNodeGetType(node, &type));
      if (type != hipGraphNodeTypeKernel) continue;
      hipKernelNodeParams params{};
      CHECK_HIP(hipGraphKernelNodeGetParams(node, &params));
      if (params.func != reinterpret_cast<void*>(step)) continue;
      uint32_t* const words = *static_cast<uint32_t**>(params.kernelParams[0]);
      const bool is_main = words == model.state.device;
      StepNode replaced(words, is_main ? 3 : 5, is_main ? position : position + 1);
      params.kernelParams = replaced.arguments;
      CHECK_HIP(hipGraphExecKernelNodeSetParams(executable, node, &params));
    }
    CHECK_HIP(hipGraphLaunch(executable, model.main));
    model.next_token();
  }
  CHECK_HIP(hipGraphExecDestroy(executable));
  CHECK_HIP(hipGraphDestroy(graph));
  require(model, "parameters", expected);
}

// Launches of one graph between other work of the stream, without a wait of the host.
void mixed() {
  const Words a, b;
  const hipStream_t stream = new_stream();
  hipGraph_t graph = nullptr;
  CHECK_HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  for (uint32_t i = 0; i < 10; ++i) {
    step<<<kBlocks, kThreads, 0, stream>>>(a.device, 3, i);
    add<<<kBlocks, kThreads, 0, stream>>>(b.device, a.device);
  }
  CHECK_HIP(hipStreamEndCapture(stream, &graph));
  const hipGraphExec_t executable = instantiate(graph);
  for (uint32_t i = 0; i < 20; ++i) {
    step<<<kBlocks, kThreads, 0, stream>>>(b.device, 7, i);
    CHECK_HIP(hipGraphLaunch(executable, stream));
    CHECK_HIP(hipMemcpyAsync(a.device, b.device, kBytes / 2, hipMemcpyDeviceToDevice, stream));
    if (i % 4 == 0) CHECK_HIP(hipGraphLaunch(executable, stream));
  }
  CHECK_HIP(hipStreamSynchronize(stream));
  // On the null stream, which waits for blocking streams only: synchronised on both sides.
  CHECK_HIP(hipGraphLaunch(executable, nullptr));
  step<<<kBlocks, kThreads, 0, nullptr>>>(a.device, 11, 1);
  CHECK_HIP(hipStreamSynchronize(nullptr));
  Sum sum;
  sum.add(a);
  sum.add(b);
  print("mixed", sum);
  CHECK_HIP(hipGraphExecDestroy(executable));
  CHECK_HIP(hipGraphDestroy(graph));
  CHECK_HIP(hipStreamDestroy(stream));
}

}  // namespace

int main() {
  const uint64_t expected = without_graph();
  updated(expected);
  parameters(expected);
  mixed();
}
