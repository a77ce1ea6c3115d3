// Two processes share device memory and events (uptempo-vgpu --gpus 2 --join NAME). The program
// starts itself again as the other process and talks to it through a pair of pipes.
#include <hip/hip_runtime.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "check.hpp"

constexpr int kItems = 1 << 18;

__global__ void fill(int* out, int start) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = start + i;
}

__global__ void twice(int* out, const int* in) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = 2 * in[i];
}

struct Pipes {
  int in, out;
  template <class T>
  void send(const T& value) const {
    if (write(out, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
      std::fprintf(stderr, "the other process has ended\n");
      std::exit(1);
    }
  }
  template <class T>
  T receive() const {
    T value;
    if (read(in, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
      std::fprintf(stderr, "the other process has ended\n");
      std::exit(1);
    }
    return value;
  }
};

bool holds(const int* device_memory, int factor, int start) {
  std::vector<int> host(kItems);
  CHECK_HIP(hipMemcpy(host.data(), device_memory, kItems * sizeof(int), hipMemcpyDeviceToHost));
  for (int i = 0; i < kItems; ++i)
    if (host[static_cast<size_t>(i)] != factor * (start + i)) return false;
  return true;
}

// Reads the memory with the GPU of this number, doubles it in memory of its own and writes to it.
int importer(const Pipes& other) {
  int can = 0;
  CHECK_HIP(hipDeviceCanAccessPeer(&can, 1, 0));
  CHECK(can == 1);
  // Before memory is opened: ROCr 5.2 does not extend the access to it (a null pointer).
  CHECK_HIP(hipSetDevice(1));
  CHECK_HIP(hipDeviceEnablePeerAccess(0, 0));
  for (int gpu = 0; gpu < 2; ++gpu) {
    CHECK_HIP(hipSetDevice(0));  // where the memory is
    void* theirs = nullptr;
    const auto handle = other.receive<hipIpcMemHandle_t>();
    CHECK_HIP(hipIpcOpenMemHandle(&theirs, handle, hipIpcMemLazyEnablePeerAccess));
    CHECK_HIP(hipSetDevice(gpu));
    int* own = nullptr;
    CHECK_HIP(hipMalloc(&own, kItems * sizeof(int)));
    if (gpu == 0) {
      twice<<<kItems / 256, 256>>>(own, static_cast<const int*>(theirs));
      CHECK_HIP(hipDeviceSynchronize());
    } else {
      CHECK_HIP(hipMemcpyPeer(own, 1, theirs, 0, kItems * sizeof(int)));
      twice<<<kItems / 256, 256>>>(own, own);
      CHECK_HIP(hipDeviceSynchronize());
    }
    CHECK(holds(own, 2, 10 + gpu));
    CHECK_HIP(hipSetDevice(0));
    fill<<<kItems / 256, 256>>>(static_cast<int*>(theirs), 1000 + gpu);
    CHECK_HIP(hipDeviceSynchronize());
    CHECK_HIP(hipFree(own));
    CHECK_HIP(hipIpcCloseMemHandle(theirs));
    other.send(true);
  }

  CHECK_HIP(hipSetDevice(0));
  hipEvent_t event{};
  CHECK_HIP(hipIpcOpenEventHandle(&event, other.receive<hipIpcEventHandle_t>()));
  void* theirs = nullptr;
  CHECK_HIP(hipIpcOpenMemHandle(&theirs, other.receive<hipIpcMemHandle_t>(),
                                hipIpcMemLazyEnablePeerAccess));
  other.send(true);
  (void)other.receive<bool>();  // recorded
  // The wait of HIP 5.7 sometimes returns at once.
  constexpr bool kWaits = HIP_VERSION < 50300000;
  if (!kWaits) (void)other.receive<bool>();  // the exporter has waited
  CHECK_HIP(hipEventSynchronize(event));
  CHECK(holds(static_cast<const int*>(theirs), 1, 77));
  if (kWaits) (void)other.receive<bool>();
  CHECK_HIP(hipIpcCloseMemHandle(theirs));
  CHECK_HIP(hipEventDestroy(event));
  return 0;
}

void exporter(const Pipes& other) {
  int* memory = nullptr;
  CHECK_HIP(hipMalloc(&memory, kItems * sizeof(int)));
  for (int gpu = 0; gpu < 2; ++gpu) {
    fill<<<kItems / 256, 256>>>(memory, 10 + gpu);
    CHECK_HIP(hipDeviceSynchronize());
    hipIpcMemHandle_t handle;
    CHECK_HIP(hipIpcGetMemHandle(&handle, memory));
    other.send(handle);
    (void)other.receive<bool>();
    CHECK(holds(memory, 1, 1000 + gpu));
  }
  hipEvent_t event{};
  CHECK_HIP(hipEventCreateWithFlags(&event, hipEventDisableTiming | hipEventInterprocess));
  hipIpcEventHandle_t event_handle;
  CHECK_HIP(hipIpcGetEventHandle(&event_handle, event));
  other.send(event_handle);
  hipIpcMemHandle_t handle;
  CHECK_HIP(hipIpcGetMemHandle(&handle, memory));
  other.send(handle);
  (void)other.receive<bool>();  // opened
  fill<<<kItems / 256, 256>>>(memory, 77);
  CHECK_HIP(hipEventRecord(event, nullptr));
  other.send(true);
  CHECK_HIP(hipDeviceSynchronize());
  other.send(true);
  CHECK_HIP(hipEventDestroy(event));
  // HIP leaves the event's shared memory, /hip_eventXXXXXX, and the file /tmp/eventXXXXXX behind.
  const std::string shared_memory = event_handle.reserved;
  (void)shm_unlink(shared_memory.c_str());
  std::remove(("/tmp/" + shared_memory.substr(shared_memory.find('_') + 1)).c_str());
  CHECK_HIP(hipFree(memory));
}

int main(int argc, char** argv) {
  if (argc == 3) return importer({std::atoi(argv[1]), std::atoi(argv[2])});
  int to_child[2], to_parent[2];
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  const pid_t child = fork();
  if (child == 0) {
    close(to_child[1]);
    close(to_parent[0]);
    execl("/proc/self/exe", argv[0], std::to_string(to_child[0]).c_str(),
          std::to_string(to_parent[1]).c_str(), nullptr);
    return 121;
  }
  close(to_child[0]);
  close(to_parent[1]);
  exporter({to_parent[0], to_child[1]});
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::puts("ok");
  return 0;
}
