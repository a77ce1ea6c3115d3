// A HIP program: heat flows along a rod. A time step of 120 small kernels is captured once as a
// graph and launched 200 times. after.hip has three lines of Uptempo instead of three of HIP.
#include <hip/hip_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

constexpr uint32_t kCells = 1024, kThreads = 256, kSubsteps = 60, kSteps = 200;

__global__ void flow(float* flux, const float* heat, float conductivity, uint32_t cells) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells) flux[i] = conductivity * (heat[(i + 1) % cells] - heat[i]);
}

__global__ void update(float* heat, const float* flux, float dt, uint32_t cells) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < cells) heat[i] += dt * (flux[i] - flux[(i + cells - 1) % cells]);
}

static void check(hipError_t status, const char* call) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "from_hip: %s: %s\n", call, hipGetErrorString(status));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

// CPU time of this thread.
static double cpu_us() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

int main() {
  std::vector<float> host(kCells, 0.0f);
  host[kCells / 2] = 1024.0f;
  float *heat = nullptr, *flux = nullptr;
  CHECK(hipMalloc(&heat, kCells * sizeof(float)));
  CHECK(hipMalloc(&flux, kCells * sizeof(float)));
  CHECK(hipMemcpy(heat, host.data(), kCells * sizeof(float), hipMemcpyHostToDevice));
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));

  hipGraph_t graph = nullptr;
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  for (uint32_t substep = 0; substep < kSubsteps; ++substep) {
    flow<<<kCells / kThreads, kThreads, 0, stream>>>(flux, heat, 0.5f, kCells);
    update<<<kCells / kThreads, kThreads, 0, stream>>>(heat, flux, 0.5f, kCells);
  }
  CHECK(hipStreamEndCapture(stream, &graph));

  hipGraphExec_t step = nullptr;
  CHECK(hipGraphInstantiate(&step, graph, nullptr, nullptr, 0));

  using Clock = std::chrono::steady_clock;
  double launch_us = 0;
  const auto begin = Clock::now();
  for (uint32_t i = 0; i < kSteps; ++i) {
    const double called = cpu_us();
    CHECK(hipGraphLaunch(step, stream));
    launch_us += cpu_us() - called;
    if (i % 20 == 19) CHECK(hipStreamSynchronize(stream));
  }
  const auto all = Clock::now() - begin;

  CHECK(hipMemcpy(host.data(), heat, kCells * sizeof(float), hipMemcpyDeviceToHost));
  uint64_t checksum = 0;
  for (const float value : host) checksum = checksum * 31 + static_cast<uint64_t>(value * 65536);
  const std::chrono::duration<double, std::micro> all_us = all;
  std::printf("checksum %016llx, %.2f us of CPU time in each launch, %.1f us a step\n",
              static_cast<unsigned long long>(checksum), launch_us / kSteps,
              all_us.count() / kSteps);
  CHECK(hipFree(flux));
  CHECK(hipFree(heat));
}
