// Two tasks without order: the host lets `produce` end only when the second task, of the kind that
// the argument names, has ended. Prints the streams of both, as findings name them.
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "check.hpp"

__global__ void produce(int* started, const int* released, int* data) {
  __hip_atomic_store(started, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  while (__hip_atomic_load(released, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
  data[threadIdx.x] = 1;
}
__global__ void consume(const int* data, int* sum) { sum[threadIdx.x] = data[threadIdx.x] + 1; }

constexpr size_t kBytes = 64 * sizeof(int);

int main(int argc, char** argv) {
  const std::string how = argc == 2 ? argv[1] : "";
  int *started, *released, *host, *data, *sum;
  CHECK_HIP(hipHostMalloc(&started, sizeof(int), 0));
  CHECK_HIP(hipHostMalloc(&released, sizeof(int), 0));
  CHECK_HIP(hipHostMalloc(&host, kBytes, 0));
  CHECK_HIP(hipMalloc(&data, kBytes));
  CHECK_HIP(hipMalloc(&sum, kBytes));
  CHECK_HIP(hipMemset(data, 0, kBytes));
  CHECK_HIP(hipDeviceSynchronize());  // HIP 5.7 fills device memory after its call
  std::memset(host, 0, kBytes);
  *started = *released = 0;
  hipStream_t one, other;
  // The null stream does not wait for it.
  CHECK_HIP(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
  CHECK_HIP(hipStreamCreate(&other));
  produce<<<1, 64, 0, one>>>(started, released, data);
  CHECK_HIP(hipGetLastError());
  // It must not be published when the second task has ended, which a thread of HIP may do.
  while (__atomic_load_n(started, __ATOMIC_SEQ_CST) == 0) std::this_thread::yield();
  hipStream_t used = other;
  if (how == "kernel") {
    consume<<<1, 64, 0, other>>>(data, sum);
  } else if (how == "thread") {
    std::thread([&] { consume<<<1, 64, 0, other>>>(data, sum); }).join();
  } else if (how == "null") {
    consume<<<1, 64>>>(data, sum);
    used = nullptr;
  } else if (how == "per-thread") {
    consume<<<1, 64, 0, hipStreamPerThread>>>(data, sum);
    used = hipStreamPerThread;
  } else if (how == "upload") {
    CHECK_HIP(hipMemcpyAsync(data, host, kBytes, hipMemcpyHostToDevice, other));
  } else if (how == "fill") {
    CHECK_HIP(hipMemsetAsync(data, 2, kBytes, other));
  } else if (how == "default-copy") {
    CHECK_HIP(hipMemcpy(sum, data, kBytes, hipMemcpyDeviceToDevice));
    used = nullptr;
  } else if (how == "graph") {
    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK_HIP(hipStreamBeginCapture(other, hipStreamCaptureModeGlobal));
    consume<<<1, 64, 0, other>>>(data, sum);
    CHECK_HIP(hipStreamEndCapture(other, &graph));
    CHECK_HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    hipStream_t third;
    CHECK_HIP(hipStreamCreate(&third));
    CHECK_HIP(hipGraphLaunch(executable, third));
    used = third;
  } else {
    return 2;
  }
  CHECK_HIP(hipGetLastError());
  CHECK_HIP(hipStreamSynchronize(used));
  __atomic_store_n(released, 1, __ATOMIC_SEQ_CST);
  CHECK_HIP(hipStreamSynchronize(one));
  std::printf("0x%llx\n", reinterpret_cast<unsigned long long>(one));
  if (used == nullptr)
    std::puts("null");
  else if (used == hipStreamPerThread)
    std::puts("per-thread");
  else
    std::printf("0x%llx\n", reinterpret_cast<unsigned long long>(used));
}
