// Events: query, wait, time, order between streams; stream wait and write of memory values.
#include "check.hpp"

__global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}
__global__ void store(int* at, int value) {
  if (threadIdx.x == 0) *at = value;
}
__global__ void increment(int* at) {
  if (threadIdx.x == 0) *at += 1;
}

int main() {
  hipEvent_t begin, end;
  CHECK_HIP(hipEventCreate(&begin));
  CHECK_HIP(hipEventCreate(&end));
  hipStream_t one, two;
  CHECK_HIP(hipStreamCreate(&one));
  CHECK_HIP(hipStreamCreate(&two));

  // The time between two events covers the work between them.
  CHECK_HIP(hipEventRecord(begin, one));
  spin<<<1, 64, 0, one>>>(200000);
  CHECK_HIP(hipEventRecord(end, one));
  CHECK_HIP(hipEventSynchronize(end));
  CHECK(hipEventQuery(begin) == hipSuccess);
  CHECK(hipEventQuery(end) == hipSuccess);
  float milliseconds = -1;
  CHECK_HIP(hipEventElapsedTime(&milliseconds, begin, end));
  CHECK(milliseconds > 0 && milliseconds < 60000);

  // After a stream waits for another stream's event, it sees that stream's earlier work.
  int* value;
  CHECK_HIP(hipMalloc(&value, sizeof(int)));
  hipEvent_t ready;
  CHECK_HIP(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
  for (int round = 0; round < 20; ++round) {
    spin<<<1, 64, 0, one>>>(20000);
    store<<<1, 64, 0, one>>>(value, 100 * round);
    CHECK_HIP(hipEventRecord(ready, one));
    CHECK_HIP(hipStreamWaitEvent(two, ready, 0));
    increment<<<1, 64, 0, two>>>(value);
    CHECK_HIP(hipStreamSynchronize(two));
    int host = 0;
    CHECK_HIP(hipMemcpy(&host, value, sizeof host, hipMemcpyDeviceToHost));
    CHECK(host == 100 * round + 1);
  }

  // A stream waits for a value in memory that another stream writes.
  unsigned* signal;
  CHECK_HIP(hipExtMallocWithFlags(reinterpret_cast<void**>(&signal), 8, hipMallocSignalMemory));
  *signal = 0;
  CHECK_HIP(hipStreamWaitValue32(two, signal, 7, hipStreamWaitValueEq, 0xffffffff));
  store<<<1, 64, 0, two>>>(value, 4242);
  CHECK(hipStreamQuery(two) == hipErrorNotReady);
  CHECK_HIP(hipStreamWriteValue32(one, signal, 7, 0));
  CHECK_HIP(hipStreamSynchronize(two));
  int host = 0;
  CHECK_HIP(hipMemcpy(&host, value, sizeof host, hipMemcpyDeviceToHost));
  CHECK(host == 4242);

  CHECK_HIP(hipFree(signal));
  CHECK_HIP(hipFree(value));
  for (hipEvent_t event : {begin, end, ready}) CHECK_HIP(hipEventDestroy(event));
  CHECK_HIP(hipStreamDestroy(one));
  CHECK_HIP(hipStreamDestroy(two));
  std::puts("ok");
}
