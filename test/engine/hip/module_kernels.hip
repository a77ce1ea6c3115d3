// Kernels of a module, which tests load at run time, and of a shared library.
#include <hip/hip_runtime.h>

#include <cstdint>

extern "C" __device__ uint32_t counter = 0;

extern "C" __global__ void count() { counter += 1; }
extern "C" __global__ void add_to(uint32_t* words, uint32_t addend) {
  words[threadIdx.x] += addend;
}
extern "C" __global__ void multiply_by(uint32_t* words, uint32_t factor) {
  words[threadIdx.x] *= factor;
}

// Each copy of the library has its own total.
__device__ uint32_t total = 0;
__global__ void add(uint32_t addend) { total += addend; }

extern "C" [[gnu::visibility("default")]] const void* function_of_library() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): HIP identifies it by its address
  return reinterpret_cast<const void*>(&add);
}
extern "C" [[gnu::visibility("default")]] uint32_t total_of_library() {
  uint32_t value = 0;
  return hipMemcpyFromSymbol(&value, HIP_SYMBOL(total), sizeof value) == hipSuccess ? value
                                                                                    : UINT32_MAX;
}
