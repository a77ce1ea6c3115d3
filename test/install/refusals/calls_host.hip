#include <hip/hip_runtime.h>
__global__ void noisy(int* x) { printf("%d\n", *x); }
