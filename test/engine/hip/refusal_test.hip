// import() and wait() refuse by name.
#include <hip/hip_runtime.h>

#include <cstdint>
#include <string>
#include <vector>

#include <uptempo/hip/graph/graph_order.hpp>
#include <uptempo/hip/graph_nodes.hpp>
#include <uptempo/hip/hip.hpp>
#include <uptempo/hip/stream_check.hpp>
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

__global__ void nothing() {}

struct Graph {
  Graph() { require(hipGraphCreate(&graph, 0)); }
  ~Graph() { (void)hipGraphDestroy(graph); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  hipGraphNode_t kernel() const {
    hipKernelNodeParams parameters{};
    parameters.func = reinterpret_cast<void*>(nothing);
    parameters.gridDim = dim3(1);
    parameters.blockDim = dim3(64);
    hipGraphNode_t node = nullptr;
    require(hipGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    return node;
  }
  std::string import_error(const hip::ImportOptions& options = {}) {
    return error_of<Error>([&] { hip::import(queue, graph, options); });
  }

  Runtime runtime;
  Queue queue{hip::agent(runtime)};
  hipGraph_t graph = nullptr;
};

std::string type_error(hipGraphNodeType type) {
  return error_of<Error>([&] { hip::require_imported(type, "node 7"); });
}

// A template, because releases of HIP have different types.
template <class Type>
void check_types_of_newer_releases() {
  if constexpr (requires { Type::hipGraphNodeTypeMemAlloc; }) {
    CHECK(contains(type_error(Type::hipGraphNodeTypeMemAlloc),
                   "memory allocation nodes are not imported"));
    CHECK(
        contains(type_error(Type::hipGraphNodeTypeMemFree), "memory free nodes are not imported"));
  }
  if constexpr (requires { Type::hipGraphNodeTypeExtSemaphoreSignal; }) {
    CHECK(contains(type_error(Type::hipGraphNodeTypeExtSemaphoreSignal),
                   "external semaphore nodes are not imported"));
    CHECK(contains(type_error(Type::hipGraphNodeTypeExtSemaphoreWait),
                   "external semaphore nodes are not imported"));
  }
}

}  // namespace

TEST_CASE("node types that are not imported are refused by name, also those of newer releases") {
  CHECK(type_error(hipGraphNodeTypeKernel) == "no error");
  CHECK(contains(type_error(hipGraphNodeTypeHost), "node 7 (host)"));
  CHECK(contains(type_error(static_cast<hipGraphNodeType>(0x7e)),
                 "unknown nodes are not imported (type 126)"));
  check_types_of_newer_releases<hipGraphNodeType>();
#if HIP_VERSION >= 60300000
  Graph g;
  hipMemAllocNodeParams parameters{};
  parameters.poolProps.allocType = hipMemAllocationTypePinned;
  parameters.poolProps.location = {hipMemLocationTypeDevice, 0};
  parameters.bytesize = 64;
  hipGraphNode_t node = nullptr;
  require(hipGraphAddMemAllocNode(&node, g.graph, nullptr, 0, &parameters));
  CHECK(contains(g.import_error(), "node 0 (memory allocation)"));
#endif
}

TEST_CASE("a graph whose nodes depend on one another in a cycle is refused") {
  // HIP 5.2 refuses the edge that closes a cycle.
  std::vector<hip::GraphVertex> vertices(3);
  vertices[1].after = {0, 2};
  vertices[2].after = {1};
  CHECK(contains(error_of<Error>([&] { (void)hip::order_graph(vertices); }),
                 "2 of them depend on one another in a cycle"));
}

TEST_CASE("copies from and to hipArrays are refused by the name of their end") {
  Graph g;
  uint32_t* words = nullptr;
  require(hipMalloc(&words, 64));
  hipArray_t array = nullptr;
  const hipChannelFormatDesc channels = hipCreateChannelDesc<uint32_t>();
  int images = 0;
  require(hipDeviceGetAttribute(&images, hipDeviceAttributeImageSupport, 0));
  const hipError_t made = hipMallocArray(&array, &channels, 16, 1, hipArrayDefault);
  if (images == 0) {  // gfx942 has no images, and HIP makes no arrays for it
    CHECK(made != hipSuccess);
    require(hipFree(words));
    return;
  }
  require(made);
  hipMemcpy3DParms parameters{};
  parameters.dstPtr = make_hipPitchedPtr(words, 64, 64, 1);
  parameters.srcArray = array;
  parameters.extent = make_hipExtent(16, 1, 1);
  parameters.kind = hipMemcpyDeviceToDevice;
  hipGraphNode_t node = nullptr;
  require(hipGraphAddMemcpyNode(&node, g.graph, nullptr, 0, &parameters));
  // HIP 5.7 does not tell the parameters of this copy. The error then lists what the copy may be.
  const std::string refused = g.import_error();
  CAPTURE(refused);
  CHECK(refused.starts_with("hip::import: node 0 (memcpy): "));
  CHECK(contains(refused, "a hipArray"));

  hipMemcpy3DParms linear{};
  linear.srcPtr = linear.dstPtr = make_hipPitchedPtr(words, 64, 64, 1);
  linear.extent = make_hipExtent(64, 1, 1);
  hip::Graph graph =
      hip::import(g.queue, g.graph, {.copy_of_node = [&](hipGraphNode_t) { return &linear; }});
  linear.dstPtr = {};
  linear.dstArray = array;
  CHECK(contains(error_of<Error>([&] { graph.set(node, linear); }),
                 "node 0 (memcpy): a hipArray as its target"));
  require(hipFreeArray(array));
  require(hipFree(words));
}

#if HIP_VERSION >= 60000000  // HIP 5.2 has no such node, and 5.7.1 refuses its attribute
TEST_CASE("a cooperative launch is refused") {
  Graph g;
  hipKernelNodeAttrValue value{};
  value.cooperative = 1;
  require(hipGraphKernelNodeSetAttribute(g.kernel(), hipKernelNodeAttributeCooperative, &value));
  CHECK(contains(g.import_error(), "node 0 (kernel): a cooperative launch"));
}
#endif

TEST_CASE("a stream and an agent of another device are refused") {
  // The only other agent here is the CPU's.
  Runtime runtime;
  hipStream_t stream = nullptr;
  require(hipStreamCreate(&stream));
  CHECK(contains(error_of<Error>([&] { hip::check_stream(stream, runtime.host()); }),
                 "a wait between a stream of HIP device 0 and a queue: the queue is of another "
                 "agent"));
  CHECK(contains(error_of<Error>([&] { hip::device_of(runtime.host()); }),
                 "the HIP device of a queue's agent: none of HIP's 1 devices"));
  CHECK(contains(error_of<Error>([&] { hip::agent(runtime, 1); }),
                 "hipDeviceGetPCIBusId: HIP device 1"));
  require(hipStreamDestroy(stream));
}
