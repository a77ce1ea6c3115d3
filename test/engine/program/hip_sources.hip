// HIP kernels that uptempo_add_kernels compiles: names of C++, and calls of the host.
#include <hip/hip_runtime.h>

namespace physics {

__global__ void step(float* y, const float* x, float dt, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __fadd_rn(__fmul_rn(dt, x[i]), y[i]);
}

}  // namespace physics

__global__ void scale(float* x, float factor) { x[threadIdx.x] *= factor; }
__global__ void scale(unsigned* x, unsigned factor) { x[threadIdx.x] *= factor; }

template <class T>
__global__ void fill(T* out, T value) {
  out[threadIdx.x] = value;
}
template __global__ void fill<unsigned>(unsigned*, unsigned);
template __global__ void fill<unsigned long long>(unsigned long long*, unsigned long long);

__global__ void prints(const unsigned* in) { printf("%u\n", in[threadIdx.x]); }
