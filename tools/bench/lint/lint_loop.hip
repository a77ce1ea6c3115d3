// A loop of hipLaunchKernel, for lint_bench. Prints the CPU time of the launching thread per launch
// in nanoseconds: the lower quartile of the rounds, since interruptions only add time. Verifies that
// every launch has run.
#include <hip/hip_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

__global__ void count(uint32_t* launches) {
  if (threadIdx.x == 0) atomicAdd(launches, 1u);
}

void check(hipError_t status) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "lint_loop: %s\n", hipGetErrorString(status));
  std::exit(1);
}

double cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0,
            launches = argc > 2 ? std::atoi(argv[2]) : 0;
  if (rounds < 1 || launches < 1) {
    std::fprintf(stderr, "usage: lint_loop ROUNDS LAUNCHES\n");
    return 2;
  }
  uint32_t* counter = nullptr;
  hipStream_t stream = nullptr;
  check(hipMalloc(reinterpret_cast<void**>(&counter), sizeof *counter));
  check(hipMemset(counter, 0, sizeof *counter));
  check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  void* arguments[] = {&counter};
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double start = cpu_ns();
    for (int i = 0; i < launches; ++i)
      check(
          hipLaunchKernel(reinterpret_cast<void*>(count), dim3(1), dim3(64), arguments, 0, stream));
    times.push_back((cpu_ns() - start) / launches);
    check(hipStreamSynchronize(stream));
  }
  uint32_t counted = 0;
  check(hipMemcpy(&counted, counter, sizeof counted, hipMemcpyDeviceToHost));
  if (counted != static_cast<uint32_t>(rounds) * static_cast<uint32_t>(launches)) {
    std::fprintf(stderr, "lint_loop: %u launches have run\n", counted);
    return 1;
  }
  std::sort(times.begin(), times.end());
  std::printf("%.1f\n", times[times.size() / 4]);
}
