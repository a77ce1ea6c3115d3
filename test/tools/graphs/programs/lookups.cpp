// A HIP program that finds HIP's functions by dlsym() alone. With the argument `by_hip`, it finds
// them by hipGetProcAddress. Any other argument is the libamdhip64 to use.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

// Declared alike in all releases, for proc_address.cpp.
extern "C" int proc_address(const char*, void**, int, uint64_t, void*) __asm__("hipGetProcAddress");

namespace {

void* hip = nullptr;
bool by_hip = false;

// The address of the function, whose type is that of `declared`.
template <class Function>
Function* find(const char* name, Function*) {
  void* address = nullptr;
  if (!by_hip) {
    address = dlsym(hip, name);
  } else if (proc_address(name, &address, 0, 0, nullptr) != 0) {
    address = nullptr;
  }
  auto* const found = reinterpret_cast<Function*>(address);
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

int main(int argc, char** argv) {
  by_hip = argc > 1 && std::string_view(argv[1]) == "by_hip";
  hip = dlopen(argc > 1 && !by_hip ? argv[1] : HIP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
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
