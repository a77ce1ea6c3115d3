// A device variable is written by a copy in one stream, and read first by a kernel in another one.
#include "check.hpp"

constexpr int kCount = 16;
__device__ int symbol[kCount];

__global__ void get(int* out) { out[threadIdx.x] = symbol[threadIdx.x]; }

int main() {
  hipStream_t copies, kernels;
  CHECK_HIP(hipStreamCreate(&copies));
  CHECK_HIP(hipStreamCreate(&kernels));
  int *device, *pinned, *back;
  CHECK_HIP(hipMalloc(&device, kCount * sizeof(int)));
  CHECK_HIP(hipHostMalloc(&pinned, kCount * sizeof(int)));
  CHECK_HIP(hipHostMalloc(&back, kCount * sizeof(int)));
  for (int i = 0; i < kCount; ++i) pinned[i] = i + 1;
  CHECK_HIP(hipMemcpyToSymbolAsync(HIP_SYMBOL(symbol), pinned, kCount * sizeof(int), 0,
                                   hipMemcpyHostToDevice, copies));
  CHECK_HIP(hipStreamSynchronize(copies));
  get<<<1, kCount, 0, kernels>>>(device);
  CHECK_HIP(hipMemcpyAsync(back, device, kCount * sizeof(int), hipMemcpyDeviceToHost, kernels));
  CHECK_HIP(hipStreamSynchronize(kernels));
  for (int i = 0; i < kCount; ++i) CHECK(back[i] == i + 1);
  for (int* const each : {pinned, back}) CHECK_HIP(hipHostFree(each));
  CHECK_HIP(hipFree(device));
  for (const hipStream_t stream : {copies, kernels}) CHECK_HIP(hipStreamDestroy(stream));
}
