// Device variables, and pointers to them, which the linker leaves to ROCr as relocations.
#include <hip/hip_runtime.h>

__device__ unsigned first = 7;
__device__ unsigned second = 9;
__device__ unsigned* pointers[2] = {&first, &second};
__constant__ unsigned weights[4] = {1, 2, 3, 4};
__device__ unsigned zeros[1000];
static __device__ unsigned hidden[5];
static __device__ unsigned* moving = &hidden[2];

__global__ void follow(unsigned* out) {
  out[threadIdx.x] = *pointers[threadIdx.x & 1] * weights[threadIdx.x & 3] + *moving++;
}

template <class T>
__global__ void add(T* out, T value) {
  out[threadIdx.x] += value + zeros[threadIdx.x];
}
template __global__ void add<unsigned>(unsigned*, unsigned);
template __global__ void add<float>(float*, float);
