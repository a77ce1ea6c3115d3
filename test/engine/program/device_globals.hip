// A program with variables on the device, which the host reads and writes by name.
#include <hip/hip_runtime.h>

__device__ unsigned offsets[4] = {1, 20, 300, 4000};
__device__ unsigned long long last_sum;

__global__ void add_offsets(unsigned* out) {
  const unsigned i = threadIdx.x;
  out[i] = 5 * i + offsets[i % 4];
  if (i == 7) last_sum = out[i];
}
