// A program with one mistake: a kernel reads what an earlier kernel of its stream writes, and is
// launched in any order. The writer ends only after the reader, so the order is always missing. The
// checker reports the host, too, which polls a word.
#include <hip/hip_ext.h>

#include <thread>

#include "check.hpp"

__global__ void produce(const int* released, int* data) {
  while (__hip_atomic_load(released, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
  data[threadIdx.x] = 1;
}
__global__ void consume(const int* data, int* sum, int* ended) {
  sum[threadIdx.x] = data[threadIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x == 0) __hip_atomic_store(ended, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

int main() {
  int *flags, *data, *sum;
  CHECK_HIP(hipHostMalloc(&flags, 2 * sizeof(int), 0));
  CHECK_HIP(hipMalloc(&data, 64 * sizeof(int)));
  CHECK_HIP(hipMalloc(&sum, 64 * sizeof(int)));
  CHECK_HIP(hipMemset(data, 0, 64 * sizeof(int)));
  // HIP 5.7 fills device memory after its call, and while it does, a launch in the stream begins
  // with a barrier.
  CHECK_HIP(hipDeviceSynchronize());
  int *const released = flags, *const ended = flags + 1;
  *released = *ended = 0;
  hipStream_t stream;
  CHECK_HIP(hipStreamCreate(&stream));
  hipExtLaunchKernelGGL(produce, dim3(1), dim3(64), 0, stream, nullptr, nullptr, 0, released, data);
  hipExtLaunchKernelGGL(consume, dim3(1), dim3(64), 0, stream, nullptr, nullptr,
                        hipExtAnyOrderLaunch, data, sum, ended);
  CHECK_HIP(hipGetLastError());
  while (__atomic_load_n(ended, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
  __atomic_store_n(released, 1, __ATOMIC_SEQ_CST);
  CHECK_HIP(hipStreamSynchronize(stream));
  CHECK_HIP(hipStreamDestroy(stream));
  CHECK_HIP(hipFree(sum));
  CHECK_HIP(hipFree(data));
  CHECK_HIP(hipHostFree(flags));
  return 0;
}
