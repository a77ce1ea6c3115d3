// A program that uses HIP's driver interface, as language runtimes do: it loads the module MODULE
// from memory that it frees at once, and adds nodes with hipDrvGraphAdd*, where HIP has them.
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "program.hpp"

namespace {

struct Module {
  hipModule_t module = nullptr;
  hipFunction_t add = nullptr, multiply = nullptr, count = nullptr;

  Module() {
    std::ifstream file(MODULE, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    CHECK_HIP(hipModuleLoadData(&module, bytes.data()));
    std::memset(bytes.data(), 0xcc, bytes.size());
    bytes = {};
    CHECK_HIP(hipModuleGetFunction(&add, module, "add_to"));
    CHECK_HIP(hipModuleGetFunction(&multiply, module, "multiply_by"));
    CHECK_HIP(hipModuleGetFunction(&count, module, "count"));
  }
  ~Module() { CHECK_HIP(hipModuleUnload(module)); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
};

// Adds a node that changes the first kThreads words.
hipGraphNode_t add_kernel(hipGraph_t graph, const std::vector<hipGraphNode_t>& after,
                          hipFunction_t function, uint32_t* words, uint32_t value) {
  void* arguments[] = {&words, &value};
  hipKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(function);
  params.gridDim = dim3(1);
  params.blockDim = dim3(kThreads);
  params.kernelParams = arguments;
  hipGraphNode_t node = nullptr;
  CHECK_HIP(hipGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  return node;
}

hipGraph_t new_graph() {
  hipGraph_t graph = nullptr;
  CHECK_HIP(hipGraphCreate(&graph, 0));
  return graph;
}

void run(hipGraphExec_t executable, int launches = 2) {
  const hipStream_t stream = new_stream();
  for (int i = 0; i < launches; ++i) CHECK_HIP(hipGraphLaunch(executable, stream));
  CHECK_HIP(hipStreamSynchronize(stream));
  CHECK_HIP(hipStreamDestroy(stream));
}

void finish(hipGraphExec_t executable, hipGraph_t graph) {
  CHECK_HIP(hipGraphExecDestroy(executable));
  CHECK_HIP(hipGraphDestroy(graph));
}

void kernels(const char* section, const Module& module) {
  const Words words;
  const hipGraph_t graph = new_graph();
  std::vector<hipGraphNode_t> last;
  for (uint32_t i = 0; i < 24; ++i)
    last = {
        add_kernel(graph, last, i % 3 == 0 ? module.multiply : module.add, words.device, i + 3)};
  const hipGraphExec_t executable = instantiate(graph);
  run(executable);
  Sum sum;
  sum.add(words);
  print(section, sum);
  finish(executable, graph);
}

hipKernelNodeParams count_params(const Module& module) {
  static void* no_arguments[1] = {};  // HIP 5.2 refuses null
  hipKernelNodeParams params{};
  params.kernelParams = no_arguments;
  params.func = reinterpret_cast<void*>(module.count);
  params.gridDim = params.blockDim = dim3(1);
  return params;
}

void print_counters(const char* section, const std::vector<const Module*>& modules) {
  std::printf("%s:", section);
  for (const Module* module : modules) {
    void* counter = nullptr;
    size_t bytes = 0;
    uint32_t value = 0;
    CHECK_HIP(hipModuleGetGlobal(&counter, &bytes, module->module, "counter"));
    CHECK_HIP(hipMemcpy(&value, counter, sizeof value, hipMemcpyDeviceToHost));
    std::printf(" %u", value);
  }
  std::printf("\n");
}

// Modules with the same kernels, each with a counter of its own: seven nodes in turn, then five. Then
// the last node gets the kernel of the first module.
void equal_names() {
  const Module first, second, third;
  const std::vector<const Module*> modules{&first, &second, &third};
  const hipGraph_t graph = new_graph();
  std::vector<hipGraphNode_t> last;
  for (uint32_t i = 0; i < 12; ++i) {
    const hipKernelNodeParams params = count_params(*modules[i % 7 % 3]);
    hipGraphNode_t node = nullptr;
    CHECK_HIP(hipGraphAddKernelNode(&node, graph, last.data(), last.size(), &params));
    last = {node};
  }
  const hipGraphExec_t executable = instantiate(graph);
  run(executable);
  print_counters("equal names", modules);
  const hipKernelNodeParams params = count_params(first);
  CHECK_HIP(hipGraphExecKernelNodeSetParams(executable, last.front(), &params));
  run(executable);
  print_counters("equal names, changed", modules);
  finish(executable, graph);
}

#if HIP_VERSION >= 60400000

using Change = std::function<void(HIP_MEMCPY3D&)>;

// A copy of memory, one row of kBytes unless `change` says otherwise.
HIP_MEMCPY3D copy_of(void* to, hipMemoryType to_type, const void* from, hipMemoryType from_type,
                     const Change& change = {}) {
  HIP_MEMCPY3D copy{};
  copy.srcMemoryType = from_type;
  (from_type == hipMemoryTypeHost ? copy.srcHost : const_cast<const void*&>(copy.srcDevice)) = from;
  copy.dstMemoryType = to_type;
  (to_type == hipMemoryTypeHost ? copy.dstHost : copy.dstDevice) = to;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  if (change) change(copy);
  return copy;
}

// Slices of rows, from and to positions inside of pitched memory.
void slices(HIP_MEMCPY3D& copy) {
  copy.srcPitch = 128, copy.srcHeight = 6, copy.srcXInBytes = 16, copy.srcY = 1, copy.srcZ = 1;
  copy.dstPitch = 96, copy.dstHeight = 5, copy.dstXInBytes = 4, copy.dstY = 1, copy.dstZ = 1;
  copy.WidthInBytes = 60, copy.Height = 4, copy.Depth = 3;
}

class DriverGraph {
 public:
#pragma clang diagnostic push  // HIP deprecates all functions that return a context
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
  DriverGraph() { CHECK_HIP(hipDevicePrimaryCtxRetain(&context, 0)); }
  ~DriverGraph() {
    CHECK_HIP(hipGraphDestroy(graph));
    CHECK_HIP(hipDevicePrimaryCtxRelease(0));
  }
#pragma clang diagnostic pop
  DriverGraph(const DriverGraph&) = delete;
  DriverGraph& operator=(const DriverGraph&) = delete;

  // HIP may change the parameters, so they are passed as a copy. Nodes follow each other.
  hipGraphNode_t copy(HIP_MEMCPY3D params) {
    hipGraphNode_t node = nullptr;
    CHECK_HIP(hipDrvGraphAddMemcpyNode(&node, graph, last.data(), last.size(), &params, context));
    last = {node};
    return node;
  }
  hipGraphNode_t fill(const HIP_MEMSET_NODE_PARAMS& params) {
    hipGraphNode_t node = nullptr;
    CHECK_HIP(hipDrvGraphAddMemsetNode(&node, graph, last.data(), last.size(), &params, context));
    last = {node};
    return node;
  }
  void kernel(hipFunction_t function, uint32_t* words, uint32_t value) {
    last = {add_kernel(graph, last, function, words, value)};
  }

  hipGraph_t graph = new_graph();
  hipCtx_t context = nullptr;
  std::vector<hipGraphNode_t> last;
};

HIP_MEMSET_NODE_PARAMS fill_of(uint32_t* to, uint32_t value, uint32_t element_bytes, size_t width) {
  HIP_MEMSET_NODE_PARAMS params{};
  params.dst = reinterpret_cast<hipDeviceptr_t>(to);
  params.value = value;
  params.elementSize = element_bytes;
  params.width = width;
  params.height = 1;
  return params;
}

// Each node of the driver interface, then changed in the graph and in the executable graph.
void driver(const Module& module) {
  const Words a, b, c;
  const HostWords down(0);
  std::vector<uint32_t> up(kWords, 5), other(kWords, 6);  // pageable
  DriverGraph g;
  const hipGraphNode_t upload =
      g.copy(copy_of(a.device, hipMemoryTypeDevice, up.data(), hipMemoryTypeHost));
  g.kernel(module.multiply, a.device, 7);
  const hipGraphNode_t across =
      g.copy(copy_of(b.device, hipMemoryTypeDevice, a.device, hipMemoryTypeDevice, slices));
  const hipGraphNode_t fill = g.fill(fill_of(b.device + 500, 0x12345678, 4, 70));
  g.fill(fill_of(b.device + 600, 0x9a, 1, 33));
  g.kernel(module.add, b.device, 9);
  g.copy(copy_of(c.device, hipMemoryTypeDevice, b.device, hipMemoryTypeUnified));
  g.copy(copy_of(down.host, hipMemoryTypeHost, c.device, hipMemoryTypeDevice));
  const auto report = [&](const char* section) {
    const hipGraphExec_t executable = instantiate(g.graph);
    run(executable);
    Sum sum;
    for (const Words* words : {&a, &b, &c}) sum.add(*words);
    sum.add(down);
    print(section, sum);
    return executable;
  };
  CHECK_HIP(hipGraphExecDestroy(report("driver")));

  HIP_MEMCPY3D changed = copy_of(a.device, hipMemoryTypeDevice, other.data(), hipMemoryTypeHost,
                                 [](HIP_MEMCPY3D& copy) { copy.WidthInBytes /= 2; });
  CHECK_HIP(hipDrvGraphMemcpyNodeSetParams(upload, &changed));
  const hipGraphExec_t executable = report("driver, changed");

  changed =
      copy_of(b.device, hipMemoryTypeDevice, a.device, hipMemoryTypeDevice, [](HIP_MEMCPY3D& copy) {
        slices(copy);
        copy.dstZ = 2;
        copy.Depth = 2;
      });
  CHECK_HIP(hipDrvGraphExecMemcpyNodeSetParams(executable, across, &changed, g.context));
  const HIP_MEMSET_NODE_PARAMS filled = fill_of(b.device + 520, 0x87654321, 4, 50);
  CHECK_HIP(hipDrvGraphExecMemsetNodeSetParams(executable, fill, &filled, g.context));
  run(executable);
  Sum sum;
  for (const Words* words : {&a, &b, &c}) sum.add(*words);
  sum.add(down);
  print("driver, changed again", sum);
  CHECK_HIP(hipGraphExecDestroy(executable));
}

// A copy between host memory stays with HIP.
void between_hosts(const Module& module) {
  const Words words;
  const HostWords from(3), to(0);
  DriverGraph g;
  g.kernel(module.add, words.device, 4);
  g.copy(copy_of(to.host, hipMemoryTypeHost, from.host, hipMemoryTypeHost));
  const hipGraphExec_t executable = instantiate(g.graph);
  run(executable);
  Sum sum;
  sum.add(words);
  sum.add(to);
  print("between hosts", sum);
  CHECK_HIP(hipGraphExecDestroy(executable));
}

#else

void driver(const Module&) {}
void between_hosts(const Module&) {}

#endif

}  // namespace

int main() {
  kernels("module", Module{});
  equal_names();
  const Module module;  // in memory that others may have had
  kernels("next module", module);
  driver(module);
  between_hosts(module);
}
