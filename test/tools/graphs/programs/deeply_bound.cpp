// A library that uses HIP, for a program that opens it with RTLD_DEEPBIND (deep_binding.cpp). It
// launches a graph of one node twice: by a call, and by a function that dlsym() finds.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void check(hipError_t status, int line) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "line %d: HIP status %d\n", line, status);
  std::exit(1);
}

}  // namespace

#define CHECK_HIP(call) check(call, __LINE__)

extern "C" int run() {
  void* const hip = dlopen(HIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  auto* const found =
      hip == nullptr ? nullptr
                     : reinterpret_cast<decltype(&::hipGraphLaunch)>(dlsym(hip, "hipGraphLaunch"));
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  constexpr size_t kWords = 256;
  void* words = nullptr;
  CHECK_HIP(hipMalloc(&words, kWords * 4));
  hipGraph_t graph = nullptr;
  CHECK_HIP(hipGraphCreate(&graph, 0));
  hipGraphNode_t node = nullptr;
  hipMemsetParams fill{};
  fill.dst = words;
  fill.elementSize = 4;
  fill.width = kWords;
  fill.height = 1;
  fill.value = 305419896;
  CHECK_HIP(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  hipGraphExec_t executable = nullptr;
  CHECK_HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  CHECK_HIP(hipGraphLaunch(executable, nullptr));
  CHECK_HIP(found(executable, nullptr));
  std::vector<uint32_t> host(kWords);
  CHECK_HIP(hipMemcpy(host.data(), words, kWords * 4, hipMemcpyDeviceToHost));
  uint64_t sum = 0;
  for (const uint32_t word : host) sum = sum * 31 + word;
  std::printf("deeply bound %016llx\n", static_cast<unsigned long long>(sum));
  CHECK_HIP(hipGraphExecDestroy(executable));
  CHECK_HIP(hipGraphDestroy(graph));
  CHECK_HIP(hipFree(words));
  return 0;
}
