// A reset of the device frees the program's memory, and the program starts anew.
#include "check.hpp"

__global__ void set(int* out) { out[threadIdx.x] = static_cast<int>(threadIdx.x); }

int main() {
  constexpr int kCount = 64;
  int *device, *host;
  CHECK_HIP(hipMalloc(&device, kCount * sizeof(int)));
  CHECK_HIP(hipHostMalloc(&host, kCount * sizeof(int)));
  set<<<1, kCount>>>(device);
  CHECK_HIP(hipMemcpy(host, device, kCount * sizeof(int), hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) CHECK(host[i] == i);
  CHECK_HIP(hipDeviceReset());
  CHECK_HIP(hipMalloc(&device, kCount * sizeof(int)));
  CHECK_HIP(hipFree(device));
}
