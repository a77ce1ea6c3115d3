// Imported graphs with kernels of equal names, which modules of one source have.
#include <hip/hip_runtime.h>

#include <cstdint>
#include <map>
#include <vector>

#include <uptempo/hip/hip.hpp>
#include <uptempo/uptempo.hpp>
#include "test/engine/hip/random_graph.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using test::contains;
using test::error_of;
using test::require;

namespace {

// A module whose kernel counts its launches.
struct Counting {
  Counting() {
    require(hipModuleLoad(&module, UPTEMPO_MODULE_KERNELS));
    require(hipModuleGetFunction(&function, module, "count"));
    size_t bytes = 0;
    require(hipModuleGetGlobal(&counter, &bytes, module, "counter"));
  }
  ~Counting() { (void)hipModuleUnload(module); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  uint32_t launches() const {
    uint32_t value = 0;
    require(hipMemcpy(&value, counter, sizeof value, hipMemcpyDeviceToHost));
    return value;
  }
  hipKernelNodeParams node() const {
    static void* no_arguments[1] = {};  // HIP 5.2 refuses null
    hipKernelNodeParams parameters{};
    parameters.kernelParams = no_arguments;
    parameters.func = reinterpret_cast<void*>(function);
    parameters.gridDim = parameters.blockDim = dim3(1);
    return parameters;
  }

  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  void* counter = nullptr;
};

struct Graph {
  explicit Graph(const std::vector<const Counting*>& modules) {
    require(hipGraphCreate(&graph, 0));
    for (const Counting* const module : modules) {
      const hipKernelNodeParams parameters = module->node();
      hipGraphNode_t node = nullptr;
      require(hipGraphAddKernelNode(&node, graph, nodes.empty() ? nullptr : &nodes.back(),
                                    nodes.empty() ? 0 : 1, &parameters));
      nodes.push_back(node);
    }
  }
  ~Graph() { (void)hipGraphDestroy(graph); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  hipGraph_t graph = nullptr;
  std::vector<hipGraphNode_t> nodes;
};

}  // namespace

TEST_CASE("kernels of equal names are those of their functions, also after a change of a node") {
  const Runtime runtime;
  Queue queue{hip::agent(runtime, 0)};
  const Counting first, second;
  const std::map<const void*, const void*> counters{{first.node().func, first.counter},
                                                    {second.node().func, second.counter}};
  const Graph made({&first, &second, &first, &first});
  CHECK(contains(error_of<Error>([&] { hip::import(queue, made.graph); }),
                 "2 loaded code objects define it"));
  hip::Graph graph =
      hip::import(queue, made.graph, {.beside_of_function = [&](const void* function) {
                    return hip::Beside{counters.at(function)};
                  }});
  graph.replay(queue).wait();
  CHECK(first.launches() == 3);
  CHECK(second.launches() == 1);
  for (const hipGraphNode_t node : {made.nodes[0], made.nodes[3]}) graph.set(node, second.node());
  graph.set(made.nodes[1], first.node());
  graph.replay(queue).wait();
  CHECK(first.launches() == 3 + 2);
  CHECK(second.launches() == 1 + 2);
  graph.set(made.nodes[0], first.node());
  graph.replay(queue).wait();
  CHECK(first.launches() == 3 + 2 + 3);
  CHECK(second.launches() == 1 + 2 + 1);
}
