// A HIP program that finds HIP's functions by dlsym() alone, past every preloaded library.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void* hip = nullptr;

// The address of the function, whose type is that of `declared`.
template <class Function>
Function* find(const char* name, Function*) {
  auto* const found = reinterpret_cast<Function*>(dlsym(hip, name));
  if (found == nullptr) {
    std::fprintf(stderr, "no function %s\n", name);
    std::exit(1);
  }
  return found;
}

void check(hipError_t status, int line) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "line %d: HIP status %d\n", line, status);
  std::exit(1);
}

}  // namespace

#define FIND(function) find(#function, static_cast<decltype(&::function)>(nullptr))
#define CHECK_HIP(call) check(call, __LINE__)

int main() {
  hip = dlopen(HIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (hip == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  constexpr size_t kWords = 256;
  void* words = nullptr;
  const auto allocate = find("hipMalloc", static_cast<hipError_t (*)(void**, size_t)>(nullptr));
  CHECK_HIP(allocate(&words, kWords * 4));
  hipGraph_t graph = nullptr;
  CHECK_HIP(FIND(hipGraphCreate)(&graph, 0));
  hipGraphNode_t node = nullptr;
  hipMemsetParams fill{};
  fill.dst = words;
  fill.elementSize = 4;
  fill.width = kWords;
  fill.height = 1;
  fill.value = 305419896;
  CHECK_HIP(FIND(hipGraphAddMemsetNode)(&node, graph, nullptr, 0, &fill));
  hipGraphExec_t executable = nullptr;
  CHECK_HIP(FIND(hipGraphInstantiate)(&executable, graph, nullptr, nullptr, 0));
  CHECK_HIP(FIND(hipGraphLaunch)(executable, nullptr));
  std::vector<uint32_t> host(kWords);
  CHECK_HIP(FIND(hipMemcpy)(host.data(), words, kWords * 4, hipMemcpyDeviceToHost));
  uint64_t sum = 0;
  for (const uint32_t word : host) sum = sum * 31 + word;
  std::printf("lookups %016llx\n", static_cast<unsigned long long>(sum));
  CHECK_HIP(FIND(hipGraphExecDestroy)(executable));
  CHECK_HIP(FIND(hipGraphDestroy)(graph));
}
