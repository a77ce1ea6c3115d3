// Kernels that end their queue, built with -g: the error names the kernel and the line as the source
// has them. The argument selects the kernel, and ROCr aborts the program.
#include <unistd.h>
#include <csignal>
#include <cstring>

#include "check.hpp"

template <typename T>
__global__ void traps(T* at) {
  if (*at == 0) __builtin_trap();
  *at = 1;
}

template <typename T>
__global__ void stores(T* at, long distance) {
  at[distance] = 1;
}

int main(int, char** arguments) {
  // CTest takes an abort for a failure, whatever the program prints.
  std::signal(SIGABRT, [](int) { _exit(0); });
  int* memory = nullptr;
  CHECK_HIP(hipMalloc(&memory, 4096));
  CHECK_HIP(hipMemset(memory, 0, 4096));
  CHECK_HIP(hipDeviceSynchronize());
  if (std::strcmp(arguments[1], "trap") == 0) {
    traps<<<1, 64>>>(memory);
  } else {
    stores<<<1, 1>>>(memory, 1L << 40);
  }
  CHECK_HIP(hipDeviceSynchronize());
}
