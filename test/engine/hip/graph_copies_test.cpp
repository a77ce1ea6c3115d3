// Copies and fills whose parameters HIP's Get functions do not return, compared with HIP's results.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
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

// Whether HIP writes texts about graphs (hipGraphDebugDotPrint). In HIP 5.2 linear copies have a
// node type of their own, and nothing returns their parameters.
constexpr bool kTellsLinearCopies = HIP_VERSION >= 50700000;
constexpr size_t kBytes = 4096;

struct Copies {
  Copies() {
    for (std::byte** const data : {&a, &b, &c}) require(hipMalloc(data, kBytes));
    require(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    require(hipGraphCreate(&graph, 0));
  }
  ~Copies() {
    (void)hipGraphDestroy(graph);
    (void)hipStreamDestroy(stream);
    for (std::byte* const data : {a, b, c}) (void)hipFree(data);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  // Makes `graph` of what `work` does in the stream.
  template <class Work>
  void capture(Work&& work) {
    require(hipGraphDestroy(graph));
    require(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    work();
    require(hipStreamEndCapture(stream, &graph));
  }
  // The three buffers after `run`, from the same contents each time.
  template <class Run>
  std::vector<uint8_t> after(Run&& run) {
    std::vector<uint8_t> bytes(3 * kBytes);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 251);
    size_t at = 0;
    for (std::byte* const data : {a, b, c})
      require(hipMemcpy(data, &bytes[kBytes * at++], kBytes, hipMemcpyHostToDevice));
    run();
    at = 0;
    for (std::byte* const data : {a, b, c})
      require(hipMemcpy(&bytes[kBytes * at++], data, kBytes, hipMemcpyDeviceToHost));
    return bytes;
  }
  std::vector<uint8_t> after_hip() {
    return after([&] {
      hipGraphExec_t executable = nullptr;
      require(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
      require(hipGraphLaunch(executable, stream));
      require(hipStreamSynchronize(stream));
      require(hipGraphExecDestroy(executable));
    });
  }
  std::vector<uint8_t> after_import(const hip::ImportOptions& options = {}) {
    return after([&] {
      hip::Graph imported = hip::import(queue, graph, options);
      imported.replay(queue).wait();
    });
  }
  std::string import_error() {
    return error_of<Error>([&] { hip::import(queue, graph); });
  }
  hipMemcpy3DParms copy_of(std::byte* to, std::byte* from, size_t bytes) const {
    hipMemcpy3DParms parameters{};
    parameters.srcPtr = {from, bytes, bytes, 1};
    parameters.dstPtr = {to, bytes, bytes, 1};
    parameters.extent = {bytes, 1, 1};
    parameters.kind = hipMemcpyDeviceToDevice;
    return parameters;
  }

  Runtime runtime;
  Queue queue{hip::agent(runtime)};
  std::byte *a = nullptr, *b = nullptr, *c = nullptr;
  hipStream_t stream = nullptr;
  hipGraph_t graph = nullptr;
};

}  // namespace

TEST_CASE("a copy that HIP does not tell is refused by name, unless the caller tells it") {
  Copies g;
  hipGraphNode_t copy = nullptr;
  require(
      hipGraphAddMemcpyNode1D(&copy, g.graph, nullptr, 0, g.b, g.a, 100, hipMemcpyDeviceToDevice));
  if (!kTellsLinearCopies) {
    const std::string error = g.import_error();
    CHECK(contains(error, "node 0 (memcpy"));
    CHECK(contains(error, "copy_of_node"));
  }
  const hipMemcpy3DParms told = g.copy_of(g.b, g.a, 100);
  hip::ImportOptions options;
  options.copy_of_node = [&](hipGraphNode_t node) { return node == copy ? &told : nullptr; };
  CHECK(g.after_import(options) == g.after_hip());

  hip::Graph graph = hip::import(g.queue, g.graph, options);
  graph.set(copy, g.copy_of(g.c, g.b, 4));
  const std::vector<uint8_t> bytes = g.after([&] { graph.replay(g.queue).wait(); });
  CHECK(std::memcmp(&bytes[2 * kBytes], &bytes[kBytes], 4) == 0);
  CHECK(std::memcmp(&bytes[2 * kBytes], &bytes[kBytes], 5) != 0);
}

// HIP 5.7 and 6.4 return what was in the memory of the node before. So these blocks hold parameters
// of another copy, wherever the node may have its own.
TEST_CASE("an import copies what HIP copies, whatever HIP returns for linear copies") {
  if (!kTellsLinearCopies) return;
  Copies g;
  const hipMemcpy3DParms wrong = g.copy_of(g.c, g.a, 64);
  std::byte* to = g.b;
  for (size_t block = 256; block <= 640; block += 16)
    for (size_t place = 0; place + sizeof wrong <= block; place += 8) {
      std::vector<std::byte> memory(block - 8);  // such blocks of glibc have 8 bytes of its own
      const size_t bytes = std::min(sizeof wrong, memory.size() - place);
      std::memcpy(&memory[place], &wrong, bytes);
      memory = {};
      hipGraphNode_t node = nullptr;
      require(
          hipGraphAddMemcpyNode1D(&node, g.graph, nullptr, 0, to, g.a, 4, hipMemcpyDeviceToDevice));
      to += 4;
    }
  REQUIRE(to <= g.b + kBytes);
  CHECK(g.after_import() == g.after_hip());
}

TEST_CASE("captured copies and fills are imported as HIP executes them") {
  if (!kTellsLinearCopies) return;
  Copies g;
  std::vector<uint8_t> from(300, 0x5a), to(300);
  hipMemcpy3DParms box = g.copy_of(g.c + 2048, g.b, 16);
  box.extent = {16, 3, 2};
  box.srcPtr = {g.b, 32, 32, 4};
  box.dstPtr = {g.c + 2048, 64, 64, 5};
  box.srcPos = {1, 1, 0};
  box.dstPos = {2, 0, 1};
  g.capture([&] {
    require(hipMemcpyAsync(g.a, from.data(), from.size(), hipMemcpyHostToDevice, g.stream));
    require(hipMemcpyAsync(g.b + 1, g.a, 555, hipMemcpyDeviceToDevice, g.stream));
    require(hipMemsetAsync(g.c, 3, 777, g.stream));
    require(hipMemcpy2DAsync(g.c + 1024, 128, g.b, 64, 32, 5, hipMemcpyDeviceToDevice, g.stream));
    require(hipMemcpy3DAsync(&box, g.stream));
    require(hipMemcpyAsync(to.data(), g.c + 1000, to.size(), hipMemcpyDeviceToHost, g.stream));
  });
  const std::vector<uint8_t> expected = g.after_hip();
  const std::vector<uint8_t> expected_to = to;
  std::fill(to.begin(), to.end(), uint8_t{0});
  CHECK(g.after_import() == expected);
  CHECK(to == expected_to);

  // The same copies in a child of a child graph.
  const hipGraph_t inner = g.graph;
  hipGraph_t outer = nullptr;
  hipGraphNode_t node = nullptr;
  require(hipGraphCreate(&outer, 0));
  require(hipGraphAddChildGraphNode(&node, outer, nullptr, 0, inner));
  require(hipGraphCreate(&g.graph, 0));
  require(hipGraphAddChildGraphNode(&node, g.graph, nullptr, 0, outer));
  CHECK(g.after_import() == expected);
  require(hipGraphDestroy(outer));
  require(hipGraphDestroy(inner));
}

#if HIP_VERSION >= 60400000
TEST_CASE(
    "a captured fill of several slices is refused, because HIP does not return their number") {
  Copies g;
  for (const size_t height : {1, 3}) {
    g.capture([&] { require(hipMemset3DAsync({g.b, 64, 64, 4}, 3, {17, height, 2}, g.stream)); });
    const std::string error = g.import_error();
    CHECK(contains(error, "node 0 (memset)"));
    CHECK(contains(error, "a fill of 2 slices"));
    g.capture([&] { require(hipMemset3DAsync({g.b, 64, 64, 4}, 3, {17, height, 1}, g.stream)); });
    CHECK(g.after_import() == g.after_hip());
  }
}

// hipGraphMemcpyNodeGetParams returns the bytes of a HIP_MEMCPY3D for it.
TEST_CASE("a copy of the driver's kind is refused by name") {
  Copies g;
  hipCtx_t context = nullptr;
#pragma GCC diagnostic push  // HIP deprecates all functions that return a context
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  require(hipDevicePrimaryCtxRetain(&context, 0));
#pragma GCC diagnostic pop
  HIP_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = hipMemoryTypeDevice;
  copy.srcDevice = g.a;
  copy.dstDevice = g.b;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = 32;
  copy.Height = copy.Depth = 1;
  hipGraphNode_t node = nullptr;
  require(hipDrvGraphAddMemcpyNode(&node, g.graph, nullptr, 0, &copy, context));
  CHECK(contains(g.import_error(), "node 0 (memcpy)"));
}
#endif
