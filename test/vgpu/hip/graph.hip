// A captured graph of copies and kernels, launched many times.
#include <vector>

#include "check.hpp"

__global__ void step(int* data, int count, int factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] = data[i] * factor + i;
}

int main() {
  constexpr int kCount = 2000, kSteps = 5, kLaunches = 30;
  std::vector<int> expected(kCount, 0);
  int *data, *host;
  CHECK_HIP(hipMalloc(&data, kCount * sizeof(int)));
  CHECK_HIP(hipHostMalloc(&host, kCount * sizeof(int)));
  CHECK_HIP(hipMemset(data, 0, kCount * sizeof(int)));
  hipStream_t stream;
  CHECK_HIP(hipStreamCreate(&stream));
  hipGraph_t graph;
  hipGraphExec_t executable;
  CHECK_HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  for (int i = 0; i < kSteps; ++i)
    step<<<(kCount + 255) / 256, 256, 0, stream>>>(data, kCount, i + 2);
  CHECK_HIP(hipMemcpyAsync(host, data, kCount * sizeof(int), hipMemcpyDeviceToHost, stream));
  CHECK_HIP(hipStreamEndCapture(stream, &graph));
  CHECK_HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  for (int launch = 0; launch < kLaunches; ++launch) {
    CHECK_HIP(hipGraphLaunch(executable, stream));
    CHECK_HIP(hipStreamSynchronize(stream));
    for (int i = 0; i < kCount; ++i) {
      unsigned value = static_cast<unsigned>(expected[static_cast<size_t>(i)]);
      for (unsigned s = 0; s < kSteps; ++s) value = value * (s + 2) + static_cast<unsigned>(i);
      expected[static_cast<size_t>(i)] = static_cast<int>(value);
      CHECK(host[i] == expected[static_cast<size_t>(i)]);
    }
  }
  CHECK_HIP(hipGraphExecDestroy(executable));
  CHECK_HIP(hipGraphDestroy(graph));
  CHECK_HIP(hipStreamDestroy(stream));
  CHECK_HIP(hipHostFree(host));
  CHECK_HIP(hipFree(data));
  std::puts("ok");
}
