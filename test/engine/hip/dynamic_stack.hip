// A kernel of a module that calls a function through a pointer, which calls itself the same way.
#include <hip/hip_runtime.h>

#include <cstdint>

struct Step {
  uint32_t (*next)(const Step& step, uint32_t levels);
};

__device__ __attribute__((noinline)) uint32_t descend(const Step& step, uint32_t levels) {
  volatile uint32_t words[16];
  for (uint32_t i = 0; i < 16; ++i) words[i] = levels + i;
  const uint32_t below = levels == 0 ? 0 : step.next(step, levels - 1);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 16; ++i) sum += words[i];
  return sum + 3 * below;
}

extern "C" __global__ void descents(uint32_t* out, uint32_t levels) {
  volatile Step step{descend};
  const Step copy{step.next};
  out[threadIdx.x] = copy.next(copy, levels + threadIdx.x % 2);
}
