// A HIP program for the wheel's test: launches a graph of 64 kernels three times.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

__global__ void add_one(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

static void check(hipError_t status, const char* call) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, hipGetErrorString(status));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

int main() {
  constexpr int kValues = 1024, kSteps = 64, kLaunches = 3;
  int* values = nullptr;
  CHECK(hipMalloc(reinterpret_cast<void**>(&values), kValues * sizeof(int)));
  CHECK(hipMemset(values, 0, kValues * sizeof(int)));
  CHECK(hipDeviceSynchronize());
  hipStream_t stream;
  CHECK(hipStreamCreate(&stream));
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  for (int step = 0; step < kSteps; ++step) add_one<<<kValues / 256, 256, 0, stream>>>(values);
  CHECK(hipGetLastError());
  hipGraph_t graph;
  hipGraphExec_t executable;
  CHECK(hipStreamEndCapture(stream, &graph));
  CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  for (int launch = 0; launch < kLaunches; ++launch) CHECK(hipGraphLaunch(executable, stream));
  CHECK(hipStreamSynchronize(stream));
  static int host[kValues];
  CHECK(hipMemcpy(host, values, sizeof host, hipMemcpyDeviceToHost));
  for (const int value : host)
    if (value != kSteps * kLaunches) return std::printf("wrong: %d\n", value), 1;
  std::printf("%d values of %d\n", kValues, kSteps * kLaunches);
  CHECK(hipGraphExecDestroy(executable));
  CHECK(hipGraphDestroy(graph));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(values));
}
