// A kernel in HIP's language for a program without HIP: waves read LDS that other waves store to,
// without a barrier between the two.
#include <hip/hip_runtime.h>

extern "C" __global__ void rotate(unsigned* out) {
  __shared__ unsigned values[256];
  values[threadIdx.x] = threadIdx.x;
  out[threadIdx.x % 64] = values[255 - threadIdx.x];
}
