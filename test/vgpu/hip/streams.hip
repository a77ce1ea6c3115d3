// Order within a stream, independence between streams, many streams and threads, host functions.
#include <atomic>
#include <thread>
#include <vector>

#include "check.hpp"

__global__ void append(int* log, int* length, int value) {
  if (threadIdx.x == 0) log[(*length)++] = value;
}
__global__ void wait_for(volatile int* flag) {
  if (threadIdx.x == 0)
    while (*flag == 0) __builtin_amdgcn_s_sleep(1);
}
__global__ void raise_flag(volatile int* flag) {
  if (threadIdx.x == 0) {
    *flag = 1;
    __threadfence_system();
  }
}
__global__ void fill(int* data, int count, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] = data[i] * 3 + value;
}

void order_within_a_stream() {
  constexpr int kLaunches = 500;
  int* log;
  int* length;
  CHECK_HIP(hipMalloc(&log, kLaunches * sizeof(int)));
  CHECK_HIP(hipMalloc(&length, sizeof(int)));
  CHECK_HIP(hipMemset(length, 0, sizeof(int)));
  hipStream_t stream;
  CHECK_HIP(hipStreamCreate(&stream));
  for (int i = 0; i < kLaunches; ++i) append<<<1, 64, 0, stream>>>(log, length, i);
  std::vector<int> host(kLaunches);
  CHECK_HIP(
      hipMemcpyAsync(host.data(), log, kLaunches * sizeof(int), hipMemcpyDeviceToHost, stream));
  CHECK_HIP(hipStreamSynchronize(stream));
  CHECK(hipStreamQuery(stream) == hipSuccess);
  for (int i = 0; i < kLaunches; ++i) CHECK(host[static_cast<size_t>(i)] == i);
  CHECK_HIP(hipStreamDestroy(stream));
  CHECK_HIP(hipFree(log));
  CHECK_HIP(hipFree(length));
}

// A kernel spins until a kernel of another stream releases it. It ends only if streams progress
// concurrently.
void independence_between_streams() {
  int* flag;
  CHECK_HIP(hipMalloc(&flag, sizeof(int)));
  CHECK_HIP(hipMemset(flag, 0, sizeof(int)));
  CHECK_HIP(hipDeviceSynchronize());  // non-blocking streams do not wait for the null stream
  hipStream_t waiter, waker;
  CHECK_HIP(hipStreamCreateWithFlags(&waiter, hipStreamNonBlocking));
  CHECK_HIP(hipStreamCreateWithFlags(&waker, hipStreamNonBlocking));
  wait_for<<<1, 64, 0, waiter>>>(flag);
  CHECK(hipStreamQuery(waiter) == hipErrorNotReady);
  raise_flag<<<1, 64, 0, waker>>>(flag);
  CHECK_HIP(hipStreamSynchronize(waiter));
  CHECK_HIP(hipStreamSynchronize(waker));
  CHECK_HIP(hipStreamDestroy(waiter));
  CHECK_HIP(hipStreamDestroy(waker));
  CHECK_HIP(hipFree(flag));
}

void many_streams_from_many_threads() {
  constexpr int kThreads = 4, kStreams = 2, kRounds = 20, kCount = 3000;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&wrong, t] {
      for (int s = 0; s < kStreams; ++s) {
        hipStream_t stream;
        int* data;
        std::vector<int> host(kCount, 1);
        CHECK_HIP(hipStreamCreate(&stream));
        CHECK_HIP(hipMalloc(&data, kCount * sizeof(int)));
        CHECK_HIP(
            hipMemcpyAsync(data, host.data(), kCount * sizeof(int), hipMemcpyHostToDevice, stream));
        unsigned expected = 1;
        for (int i = 0; i < kRounds; ++i) {
          fill<<<(kCount + 255) / 256, 256, 0, stream>>>(data, kCount, t + i);
          expected = expected * 3 + static_cast<unsigned>(t + i);
        }
        CHECK_HIP(
            hipMemcpyAsync(host.data(), data, kCount * sizeof(int), hipMemcpyDeviceToHost, stream));
        CHECK_HIP(hipStreamSynchronize(stream));
        for (const int each : host) wrong += static_cast<unsigned>(each) != expected;
        CHECK_HIP(hipFree(data));
        CHECK_HIP(hipStreamDestroy(stream));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

void host_function_runs_in_order() {
  int* pinned;
  CHECK_HIP(hipHostMalloc(&pinned, sizeof(int)));
  *pinned = 5;
  hipStream_t stream;
  CHECK_HIP(hipStreamCreate(&stream));
  fill<<<1, 64, 0, stream>>>(pinned, 1, 1);
  std::atomic<int> seen{0};
  struct Data {
    int* pinned;
    std::atomic<int>* seen;
  } data{pinned, &seen};
  CHECK_HIP(hipStreamAddCallback(
      stream,
      [](hipStream_t, hipError_t, void* user) {
        *static_cast<Data*>(user)->seen = *static_cast<Data*>(user)->pinned;
      },
      &data, 0));
  CHECK_HIP(hipStreamSynchronize(stream));
  CHECK(seen == 16);
  CHECK_HIP(hipStreamDestroy(stream));
  CHECK_HIP(hipHostFree(pinned));
}

int main() {
  order_within_a_stream();
  independence_between_streams();
  many_streams_from_many_threads();
  host_function_runs_in_order();
  std::puts("ok");
}
