// HIP kernels with features that OpenCL C lacks: arrays sized at launch, and bool parameters.
#include <hip/hip_runtime.h>

// 12 bytes of static group memory come first; the array of 8-byte words begins at the next multiple
// of 8.
extern "C" __global__ void through_lds(unsigned* out, const unsigned* in, unsigned count) {
  __shared__ unsigned bias[3];
  extern __shared__ unsigned long long words[];
  if (threadIdx.x < 3) bias[threadIdx.x] = blockIdx.x + threadIdx.x;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) words[i] = (in[i] + 1ull) << 8;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
    out[blockIdx.x * count + i] =
        static_cast<unsigned>(words[count - 1 - i] >> 8) * 3u + bias[i % 3];
}

extern "C" __global__ void choose(int* out, bool first, int a, bool negate, int b) {
  const int chosen = first ? a : b;
  out[threadIdx.x] = negate ? -chosen : chosen;
}
