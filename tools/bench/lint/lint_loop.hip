// A loop of hipLaunchKernel, for lint_bench. Takes a turn for each byte of standard input, and
// prints the CPU time of the launching thread per launch in nanoseconds. At the end it verifies
// that every launch has run.
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

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
  const int launches = argc == 2 ? std::atoi(argv[1]) : 0;
  if (launches < 1) {
    std::fprintf(stderr, "usage: lint_loop LAUNCHES\n");
    return 2;
  }
  uint32_t* counter = nullptr;
  hipStream_t stream = nullptr;
  check(hipMalloc(reinterpret_cast<void**>(&counter), sizeof *counter));
  check(hipMemset(counter, 0, sizeof *counter));
  check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  void* arguments[] = {&counter};
  uint32_t turns = 0;
  for (char turn = 0; read(STDIN_FILENO, &turn, 1) == 1; ++turns) {
    const double start = cpu_ns();
    for (int i = 0; i < launches; ++i)
      check(
          hipLaunchKernel(reinterpret_cast<void*>(count), dim3(1), dim3(64), arguments, 0, stream));
    const double taken = (cpu_ns() - start) / launches;
    check(hipStreamSynchronize(stream));
    std::printf("%.1f\n", taken);
    std::fflush(stdout);
  }
  uint32_t counted = 0;
  check(hipMemcpy(&counted, counter, sizeof counted, hipMemcpyDeviceToHost));
  if (counted != turns * static_cast<uint32_t>(launches)) {
    std::fprintf(stderr, "lint_loop: %u launches have run\n", counted);
    return 1;
  }
}
