// Kernels of program.py.
#include <hip/hip_runtime.h>

// Ends when *released is not 0.
extern "C" __global__ void produce(const int* released, int* data) {
  while (__hip_atomic_load(released, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
  data[threadIdx.x] = 1;
}
extern "C" __global__ void consume(const int* data, int* sum) {
  sum[threadIdx.x] = data[threadIdx.x] + 1;
}
// Two waves store to the same words.
extern "C" __global__ void race(int* data) {
  data[threadIdx.x % 64] = static_cast<int>(threadIdx.x);
}
