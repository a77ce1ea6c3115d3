// A program with one mistake: a kernel reads what a kernel of another stream writes, without an
// event between them. The writer ends only after the reader, so the order is always missing.
#include "check.hpp"

__global__ void produce(const int* released, int* data) {
  while (__hip_atomic_load(released, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
  data[threadIdx.x] = 1;  // line 8
}
__global__ void consume(const int* data, int* sum) {
  sum[threadIdx.x] = data[threadIdx.x] + 1;  // line 11
}

static __attribute__((noinline)) void start_consumer(hipStream_t stream, const int* data,
                                                     int* sum) {
  consume<<<1, 64, 0, stream>>>(data, sum);
  CHECK_HIP(hipGetLastError());
}

int main() {
  int* released;
  int *data, *sum;
  CHECK_HIP(hipHostMalloc(&released, sizeof(int), 0));
  CHECK_HIP(hipMalloc(&data, 64 * sizeof(int)));
  CHECK_HIP(hipMalloc(&sum, 64 * sizeof(int)));
  CHECK_HIP(hipMemset(data, 0, 64 * sizeof(int)));
  *released = 0;
  hipStream_t one, other;
  CHECK_HIP(hipStreamCreate(&one));
  CHECK_HIP(hipStreamCreate(&other));
  produce<<<1, 64, 0, one>>>(released, data);
  start_consumer(other, data, sum);
  CHECK_HIP(hipStreamSynchronize(other));
  __atomic_store_n(released, 1, __ATOMIC_SEQ_CST);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK_HIP(hipStreamDestroy(one));
  CHECK_HIP(hipStreamDestroy(other));
  CHECK_HIP(hipHostFree(released));
  CHECK_HIP(hipFree(data));
  CHECK_HIP(hipFree(sum));
  return 0;
}
