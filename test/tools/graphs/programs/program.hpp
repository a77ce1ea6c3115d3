// Parts shared by the HIP programs: checked calls, kernels, and a checksum of results that each
// section of a program prints. The programs know nothing of Uptempo.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK_HIP(call)                                                  \
  do {                                                                   \
    const hipError_t status_ = (call);                                   \
    if (status_ != hipSuccess) {                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   hipGetErrorString(status_));                          \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

constexpr uint32_t kWords = 1024;
constexpr size_t kBytes = kWords * sizeof(uint32_t);

[[maybe_unused]] static __global__ void step(uint32_t* words, uint32_t factor, uint32_t addend) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = words[i] * factor + addend + i;
}

[[maybe_unused]] static __global__ void add(uint32_t* to, const uint32_t* from) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] += 3 * from[i];
}

constexpr uint32_t kThreads = 128;
constexpr uint32_t kBlocks = kWords / kThreads;

// Device memory of kWords words that starts as 0, 1, 2, ...
struct Words {
  uint32_t* device = nullptr;

  Words() {
    std::vector<uint32_t> start(kWords);
    for (uint32_t i = 0; i < kWords; ++i) start[i] = i;
    CHECK_HIP(hipMalloc(reinterpret_cast<void**>(&device), kBytes));
    CHECK_HIP(hipMemcpy(device, start.data(), kBytes, hipMemcpyHostToDevice));
  }
  ~Words() { CHECK_HIP(hipFree(device)); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  std::vector<uint32_t> read() const {
    std::vector<uint32_t> host(kWords);
    CHECK_HIP(hipMemcpy(host.data(), device, kBytes, hipMemcpyDeviceToHost));
    return host;
  }
};

// Page-locked host memory of kWords words, all equal at the start.
struct HostWords {
  uint32_t* host = nullptr;

  explicit HostWords(uint32_t value) {
    CHECK_HIP(hipHostMalloc(reinterpret_cast<void**>(&host), kBytes, 0));
    for (uint32_t i = 0; i < kWords; ++i) host[i] = value;
  }
  ~HostWords() { CHECK_HIP(hipHostFree(host)); }
  HostWords(const HostWords&) = delete;
  HostWords& operator=(const HostWords&) = delete;
};

// A 64-bit hash of 32-bit words.
struct Sum {
  uint64_t value = 14695981039346656037u;

  void add(const uint32_t* words, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      value = (value ^ words[i]) * 1099511628211u;
      value ^= value >> 29;
    }
  }
  void add(const Words& words) { add(words.read().data(), kWords); }
  void add(const HostWords& words) { add(words.host, kWords); }
};

inline void print(const char* section, const Sum& sum) {
  std::printf("%s %016llx\n", section, static_cast<unsigned long long>(sum.value));
  std::fflush(stdout);
}

// The parameters of a kernel node. Keeps the argument values alive.
struct StepNode {
  uint32_t* words;
  uint32_t factor, addend;
  void* arguments[3] = {&words, &factor, &addend};

  StepNode(uint32_t* words_, uint32_t factor_, uint32_t addend_)
      : words(words_), factor(factor_), addend(addend_) {}
  StepNode(const StepNode&) = delete;
  StepNode& operator=(const StepNode&) = delete;

  hipKernelNodeParams params() {
    hipKernelNodeParams result{};
    result.func = reinterpret_cast<void*>(step);
    result.gridDim = dim3(kBlocks);
    result.blockDim = dim3(kThreads);
    result.kernelParams = arguments;
    return result;
  }
};

inline hipGraphNode_t add_step(hipGraph_t graph, const std::vector<hipGraphNode_t>& after,
                               uint32_t* words, uint32_t factor, uint32_t addend) {
  StepNode parameters(words, factor, addend);
  const hipKernelNodeParams params = parameters.params();
  hipGraphNode_t node = nullptr;
  CHECK_HIP(hipGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  return node;
}

inline hipGraphExec_t instantiate(hipGraph_t graph) {
  hipGraphExec_t executable = nullptr;
  CHECK_HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  return executable;
}

inline hipStream_t new_stream() {
  hipStream_t stream = nullptr;
  CHECK_HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  return stream;
}
