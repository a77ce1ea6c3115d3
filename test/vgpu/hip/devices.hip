// Several devices: allocation and launches on each, peer access, copies between devices, streams and
// events across them.
#include <cstring>
#include <thread>
#include <vector>

#include "check.hpp"

constexpr int kCount = 100'000;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void fill(int* data, int seed) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kCount) data[i] = i * 7 + seed;
}
__global__ void add(int* sum, const int* one, const int* other) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kCount) sum[i] = one[i] + other[i];
}
__global__ void wait_for(volatile int* flag) {
  if (threadIdx.x == 0)
    while (*flag == 0) __builtin_amdgcn_s_sleep(1);
}

constexpr int kBlock = 256, kGrid = (kCount + kBlock - 1) / kBlock;

int devices = 0;

int* allocate(int device) {
  int* memory = nullptr;
  CHECK_HIP(hipSetDevice(device));
  CHECK_HIP(hipMalloc(&memory, kBytes));
  return memory;
}

void check_filled(int device, const int* memory, int seed) {
  std::vector<int> host(kCount);
  CHECK_HIP(hipSetDevice(device));
  CHECK_HIP(hipMemcpy(host.data(), memory, kBytes, hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) CHECK(host[static_cast<size_t>(i)] == i * 7 + seed);
}

void properties() {
  char bus[2][32] = {};
  for (int device = 0; device < 2; ++device) {
    hipDeviceProp_t found;
    CHECK_HIP(hipGetDeviceProperties(&found, device));
    CHECK(std::strncmp(found.gcnArchName, "gfx9", 4) == 0);
    CHECK_HIP(hipDeviceGetPCIBusId(bus[device], sizeof bus[device], device));
  }
  CHECK(std::strcmp(bus[0], bus[1]) != 0);
  CHECK(hipSetDevice(devices) == hipErrorInvalidDevice);
  (void)hipGetLastError();
}

void memory_of_each_device() {
  size_t free_before[2], free_after, total;
  for (int device = 0; device < 2; ++device) {
    CHECK_HIP(hipSetDevice(device));
    CHECK_HIP(hipMemGetInfo(&free_before[device], &total));
  }
  CHECK_HIP(hipSetDevice(1));
  void* large;
  CHECK_HIP(hipMalloc(&large, size_t{1} << 30));
  CHECK_HIP(hipMemGetInfo(&free_after, &total));
  CHECK(free_before[1] - free_after >= size_t{1} << 30);
  CHECK_HIP(hipSetDevice(0));
  CHECK_HIP(hipMemGetInfo(&free_after, &total));
  CHECK(free_before[0] == free_after);
  hipPointerAttribute_t attributes;
  CHECK_HIP(hipPointerGetAttributes(&attributes, large));
  CHECK(attributes.device == 1);
  CHECK_HIP(hipFree(large));
}

void launches_of_two_threads() {
  std::vector<std::thread> threads;
  for (int device = 0; device < 2; ++device)
    threads.emplace_back([device] {
      int* const memory = allocate(device);
      for (int round = 0; round < 20; ++round) {
        fill<<<kGrid, kBlock>>>(memory, 100 * device + round);
        CHECK_HIP(hipGetLastError());
        check_filled(device, memory, 100 * device + round);
      }
      CHECK_HIP(hipFree(memory));
    });
  for (std::thread& thread : threads) thread.join();
}

void copies_between_devices() {
  int* const one = allocate(0);
  int* const other = allocate(1);
  CHECK_HIP(hipSetDevice(0));
  fill<<<kGrid, kBlock>>>(one, 1);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK_HIP(hipMemcpyPeer(other, 1, one, 0, kBytes));
  check_filled(1, other, 1);
  CHECK_HIP(hipSetDevice(1));
  fill<<<kGrid, kBlock>>>(other, 2);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK_HIP(hipMemcpyDtoD(one, other, kBytes));
  check_filled(0, one, 2);
  hipStream_t stream;
  CHECK_HIP(hipSetDevice(0));
  CHECK_HIP(hipStreamCreate(&stream));
  fill<<<kGrid, kBlock, 0, stream>>>(one, 3);
  CHECK_HIP(hipMemcpyPeerAsync(other, 1, one, 0, kBytes, stream));
  CHECK_HIP(hipStreamSynchronize(stream));
  check_filled(1, other, 3);
  CHECK_HIP(hipStreamDestroy(stream));
  CHECK_HIP(hipFree(one));
  CHECK_HIP(hipFree(other));
}

void peer_access() {
  int may = 0;
  CHECK_HIP(hipDeviceCanAccessPeer(&may, 1, 0));
  CHECK(may == 1);
  int* const one = allocate(0);
  CHECK_HIP(hipSetDevice(0));
  fill<<<kGrid, kBlock>>>(one, 4);
  CHECK_HIP(hipDeviceSynchronize());
  int* const other = allocate(1);
  int* const sum = allocate(1);
  CHECK_HIP(hipSetDevice(1));
  CHECK_HIP(hipDeviceEnablePeerAccess(0, 0));
  CHECK(hipDeviceEnablePeerAccess(0, 0) == hipErrorPeerAccessAlreadyEnabled);
  (void)hipGetLastError();
  fill<<<kGrid, kBlock>>>(other, 5);
  add<<<kGrid, kBlock>>>(sum, one, other);
  CHECK_HIP(hipDeviceSynchronize());
  std::vector<int> host(kCount);
  CHECK_HIP(hipMemcpy(host.data(), sum, kBytes, hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) CHECK(host[static_cast<size_t>(i)] == i * 14 + 9);
  CHECK_HIP(hipDeviceDisablePeerAccess(0));
  for (int* memory : {one, other, sum}) CHECK_HIP(hipFree(memory));
}

// A stream of one device waits for an event of the other.
void events_across_devices() {
  int* const one = allocate(0);
  int* const other = allocate(1);
  int* flag;
  CHECK_HIP(hipHostMalloc(&flag, sizeof *flag, hipHostMallocCoherent | hipHostMallocPortable));
  *flag = 0;
  hipStream_t first, second;
  hipEvent_t done;
  CHECK_HIP(hipSetDevice(0));
  CHECK_HIP(hipStreamCreate(&first));
  CHECK_HIP(hipEventCreateWithFlags(&done, hipEventDisableTiming));
  wait_for<<<1, 64, 0, first>>>(flag);
  fill<<<kGrid, kBlock, 0, first>>>(one, 6);
  CHECK_HIP(hipEventRecord(done, first));
  CHECK_HIP(hipSetDevice(1));
  CHECK_HIP(hipStreamCreate(&second));
  CHECK_HIP(hipStreamWaitEvent(second, done, 0));
  CHECK_HIP(hipMemcpyPeerAsync(other, 1, one, 0, kBytes, second));
  CHECK(hipStreamQuery(second) == hipErrorNotReady);
  (void)hipGetLastError();
  __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  CHECK_HIP(hipStreamSynchronize(second));
  CHECK(hipEventQuery(done) == hipSuccess);
  check_filled(1, other, 6);
  CHECK_HIP(hipEventDestroy(done));
  CHECK_HIP(hipStreamDestroy(first));
  CHECK_HIP(hipStreamDestroy(second));
  CHECK_HIP(hipHostFree(flag));
  CHECK_HIP(hipFree(one));
  CHECK_HIP(hipFree(other));
}

int main() {
  CHECK_HIP(hipGetDeviceCount(&devices));
  CHECK(devices == 2);
  properties();
  memory_of_each_device();
  launches_of_two_threads();
  copies_between_devices();
  peer_access();
  events_across_devices();
  std::puts("devices: passed");
  return 0;
}
