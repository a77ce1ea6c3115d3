// A program with one mistake in its use of memory, which the first argument names.
//
//   after, before      a kernel writes beyond the end, or before the begin, of an allocation
//   freed, freed_graph a kernel reads memory that was freed, also that of a graph launched before
//   empty              a kernel reads memory that nothing has stored to
//   lds_beyond         a kernel reads beyond the dynamic shared memory of its launch
//   lds_empty          a kernel reads shared memory that no thread has stored to
//   leak, leak_host    three allocations are not freed, of device or host memory
//   twice, twice_host  an allocation is freed again, of either; clean, pool: no mistake
#include <cstring>
#include <string>

#include "check.hpp"

__global__ void store(int* data, int offset) {
  data[static_cast<int>(threadIdx.x) + offset] = 1;  // line 16
}
__global__ void add(const int* data, int* sum) {
  sum[threadIdx.x] += data[threadIdx.x];  // line 19
}
extern __shared__ int dynamic[];
__global__ void rotate(int* data, int by) {
  dynamic[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = dynamic[threadIdx.x + by];  // line 25
}
__global__ void spread(int* data) {
  __shared__ int values[128];
  values[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = values[2 * threadIdx.x];  // line 31
}

__attribute__((noinline)) static int* allocate(size_t bytes) {
  void* pointer = nullptr;
  CHECK_HIP(hipMalloc(&pointer, bytes));
  return static_cast<int*>(pointer);
}
__attribute__((noinline)) static void release(int* pointer) {
  CHECK_HIP(hipFree(pointer));
  asm volatile("" ::: "memory");  // no tail call
}

int main(int argc, char** argv) {
  const std::string mistake = argc == 2 ? argv[1] : "";
  int* const data = allocate(1000);
  int* const sum = allocate(256);
  CHECK_HIP(hipMemset(sum, 0, 256));
  if (mistake != "empty") CHECK_HIP(hipMemset(data, 0, 1000));
  // The device takes the kernel's packet because of its own doorbell, whose stream a finding names,
  // and not because of one before it.
  CHECK_HIP(hipDeviceSynchronize());
  if (mistake == "after") {
    store<<<1, 64>>>(data, 250 - 61);
  } else if (mistake == "before") {
    store<<<1, 64>>>(sum, -2);  // data may be at the begin of a block
  } else if (mistake == "freed") {
    int* const old = allocate(512);
    CHECK_HIP(hipMemset(old, 0, 512));
    release(old);
    int* const other = allocate(512);
    add<<<1, 64>>>(old, sum);
    CHECK_HIP(hipDeviceSynchronize());
    release(other);
  } else if (mistake == "freed_graph") {
    int* old = allocate(512);
    CHECK_HIP(hipMemset(old, 0, 512));
    int* to = sum;
    void* arguments[] = {&old, &to};
    hipKernelNodeParams kernel{};
    kernel.func = reinterpret_cast<void*>(add);
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(64);
    kernel.kernelParams = arguments;
    hipGraph_t graph = nullptr;
    hipGraphNode_t node = nullptr;
    hipGraphExec_t launchable = nullptr;
    CHECK_HIP(hipGraphCreate(&graph, 0));
    CHECK_HIP(hipGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
    CHECK_HIP(hipGraphInstantiate(&launchable, graph, nullptr, nullptr, 0));
    CHECK_HIP(hipGraphLaunch(launchable, nullptr));
    CHECK_HIP(hipDeviceSynchronize());
    release(old);
    CHECK_HIP(hipGraphLaunch(launchable, nullptr));
    CHECK_HIP(hipDeviceSynchronize());
    CHECK_HIP(hipGraphExecDestroy(launchable));
    CHECK_HIP(hipGraphDestroy(graph));
  } else if (mistake == "pool") {
    hipStream_t stream = nullptr;  // HIP 5.2 crashes in hipMallocAsync for the default stream
    CHECK_HIP(hipStreamCreate(&stream));
    for (int i = 0; i < 3; ++i) {
      void* pooled = nullptr;
      CHECK_HIP(hipMallocAsync(&pooled, 512, stream));
      CHECK_HIP(hipMemsetAsync(pooled, 0, 512, stream));
      add<<<1, 64, 0, stream>>>(static_cast<int*>(pooled), sum);
      release(static_cast<int*>(pooled));
    }
    CHECK_HIP(hipStreamDestroy(stream));
  } else if (mistake == "empty") {
    add<<<1, 64>>>(data, sum);
  } else if (mistake == "lds_beyond") {
    rotate<<<1, 64, 256>>>(data, 3);
  } else if (mistake == "lds_empty") {
    spread<<<1, 64>>>(data);
  } else if (mistake == "leak") {
    for (int i = 0; i < 3; ++i) (void)allocate(100);
  } else if (mistake == "leak_host") {
    void* host = nullptr;
    for (int i = 0; i < 3; ++i) CHECK_HIP(hipHostMalloc(&host, 100));
  } else if (mistake == "twice") {
    // Two different mistakes: memory of the same size may have the same address.
    int* const one = allocate(512);
    release(one);
    if (hipFree(one) == hipSuccess) return 3;
    int* const large = allocate(100 << 20);
    release(large);
    if (hipFree(large) == hipSuccess) return 3;
  } else if (mistake == "twice_host") {
    void* host = nullptr;
    CHECK_HIP(hipHostMalloc(&host, 512));
    CHECK_HIP(hipHostFree(host));
    if (hipHostFree(host) == hipSuccess) return 3;
  } else if (mistake == "clean") {
    store<<<3, 64>>>(data, 0);
    rotate<<<1, 64, 256>>>(data, 0);
    add<<<1, 64>>>(data, sum);
  } else {
    return 2;
  }
  CHECK_HIP(hipDeviceSynchronize());
  release(data);
  release(sum);
  return 0;
}
