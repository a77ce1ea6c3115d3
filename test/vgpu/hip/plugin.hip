// A library that uses HIP, for a program that does not. The argument names what it does: "clean",
// or "twice", which frees an allocation again.
#include <string>

#include "check.hpp"

__global__ void count(int* values) { values[threadIdx.x] = static_cast<int>(threadIdx.x); }

extern "C" int run(const char* argument) {
  constexpr int kValues = 64;
  void* memory = nullptr;
  CHECK_HIP(hipMalloc(&memory, kValues * sizeof(int)));
  count<<<1, kValues>>>(static_cast<int*>(memory));
  int values[kValues] = {};
  CHECK_HIP(hipMemcpy(values, memory, sizeof values, hipMemcpyDeviceToHost));
  if (values[kValues - 1] != kValues - 1) return 1;
  CHECK_HIP(hipFree(memory));
  if (std::string(argument) == "twice" && hipFree(memory) == hipSuccess) return 1;
  return 0;
}
