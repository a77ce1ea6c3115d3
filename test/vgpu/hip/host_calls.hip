// Kernels that call the host while they run: printf, assert, memory of the device library, and
// mailboxes in coherent host memory. Each way ends with status 0 if what the host saw is right.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

// The device library asks the host for `bytes` at 0, or to free an address.
extern "C" __device__ uint64_t __ockl_devmem_request(uint64_t address, uint64_t bytes);

namespace {

template <class Value>
__device__ Value load(const Value* value) {
  return __hip_atomic_load(value, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
template <class Value>
__device__ void wait_until(const Value* value, Value wanted) {
  while (load(value) != wanted) __builtin_amdgcn_s_sleep(1);
}

__global__ void print() { printf("%u\n", blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void require(const int* value) { assert(*value == 42); }

__global__ void use_memory(unsigned* out, bool frees) {
  auto* const words = reinterpret_cast<unsigned*>(__ockl_devmem_request(0, 256));
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  words[threadIdx.x % 64] = thread;
  out[thread] = words[threadIdx.x % 64];
  if (frees) __ockl_devmem_request(reinterpret_cast<uint64_t>(words), 0);
}

// Doubles what the host puts into `in`, until that is negative.
__global__ void serve(int* turn, const volatile int* in, int* out) {
  for (int call = 1;; call += 2) {
    wait_until(turn, call);
    if (*in < 0) return;
    *out = 2 * *in;
    __hip_atomic_store(turn, call + 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
  }
}

// Plain stores and a fence, and then some time in which the host may see them.
__global__ void publish(int* out) {
  out[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
  __threadfence_system();
  for (int i = 0; i < 10000; ++i) __builtin_amdgcn_s_sleep(127);
}

__global__ void hold(int* out, const int* end) {
  *out = 1;
  printf("ready\n");
  wait_until(end, 1);
}

int* coherent(size_t count) {
  int* values;
  CHECK_HIP(hipHostMalloc(&values, count * sizeof(int), hipHostMallocCoherent));
  std::memset(values, 0, count * sizeof(int));
  return values;
}

// Every thread's line must be there once.
void call_printf(unsigned threads, unsigned blocks) {
  const int file = memfd_create("lines", 0);
  CHECK(dup2(file, STDOUT_FILENO) == STDOUT_FILENO);
  print<<<blocks, threads>>>();
  CHECK_HIP(hipDeviceSynchronize());
  std::fflush(stdout);
  std::FILE* const lines = fdopen(file, "r");
  std::rewind(lines);
  std::vector<unsigned> seen(threads * blocks);
  unsigned count = 0;
  for (unsigned thread; std::fscanf(lines, "%u\n", &thread) == 1; ++count) {
    CHECK(thread < seen.size());
    CHECK(seen[thread]++ == 0);
  }
  CHECK(count == seen.size());
}

// HIP prints what the kernel asserts and then aborts.
void call_assert() {
  std::signal(SIGABRT, [](int) { _exit(0); });
  int* value;
  CHECK_HIP(hipMalloc(&value, sizeof(int)));
  CHECK_HIP(hipMemset(value, 0, sizeof(int)));
  require<<<1, 1>>>(value);
  CHECK_HIP(hipDeviceSynchronize());
}

void call_memory(bool frees) {
  constexpr unsigned kThreads = 128, kBlocks = 3;
  std::vector<unsigned> back(kThreads * kBlocks);
  unsigned* out;
  CHECK_HIP(hipMalloc(&out, back.size() * sizeof(unsigned)));
  use_memory<<<kBlocks, kThreads>>>(out, frees);
  CHECK_HIP(hipMemcpy(back.data(), out, back.size() * sizeof(unsigned), hipMemcpyDeviceToHost));
  for (unsigned i = 0; i < back.size(); ++i) CHECK(back[i] == i);
  CHECK_HIP(hipFree(out));
}

void call_kernel() {
  int* const turn = coherent(1);
  int* const in = coherent(1);
  int* const out = coherent(1);
  serve<<<1, 1>>>(turn, in, out);
  for (int call = 0; call < 20; ++call) {
    *in = call;
    __atomic_store_n(turn, 2 * call + 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != 2 * call + 2) continue;
    CHECK(*out == 2 * call);
  }
  *in = -1;
  __atomic_store_n(turn, 41, __ATOMIC_RELEASE);
  CHECK_HIP(hipDeviceSynchronize());
  for (int* const each : {turn, in, out}) CHECK_HIP(hipHostFree(each));
}

void poll_stores() {
  constexpr int kCount = 64;
  int* const out = coherent(kCount);
  publish<<<1, kCount>>>(out);
  for (int i = 0; i < kCount; ++i)
    while (*const_cast<volatile int*>(out + i) != i + 1) continue;
  CHECK_HIP(hipDeviceSynchronize());
  CHECK_HIP(hipHostFree(out));
}

// A mistake: this thread reads the result of a running kernel without a wait. That the kernel calls
// the host, and that another thread ends it, orders nothing for this thread.
void read_early() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  CHECK(dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  int* const out = coherent(1);
  int* const end = coherent(1);
  hold<<<1, 1>>>(out, end);
  char line[6];
  for (size_t bytes = 0; bytes < sizeof line;) {
    const ssize_t got = read(ends[0], line + bytes, sizeof line - bytes);
    CHECK(got > 0);
    bytes += static_cast<size_t>(got);
  }
  CHECK(*const_cast<volatile int*>(out) == 1);
  // That thread waits, too: HIP 6.4 has the signal of a call and that of the kernel's end in one
  // page, and a thread that looks at either while the kernel runs counts as part of the calls.
  std::thread([end] {
    __atomic_store_n(end, 1, __ATOMIC_RELEASE);
    CHECK_HIP(hipDeviceSynchronize());
  }).join();
  for (int* const each : {out, end}) CHECK_HIP(hipHostFree(each));
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, void (*)()> ways{
      {"printf-1", [] { call_printf(1, 1); }},
      {"printf-64", [] { call_printf(64, 1); }},
      {"printf-1024", [] { call_printf(1024, 1); }},
      {"printf-blocks", [] { call_printf(256, 200); }},
      {"assert", &call_assert},
      {"memory", [] { call_memory(false); }},
      {"memory-freed", [] { call_memory(true); }},
      {"mailbox", &call_kernel},
      {"polled-stores", &poll_stores},
      {"early", &read_early},
  };
  const auto way = ways.find(count > 1 ? arguments[1] : "");
  if (way == ways.end()) return 2;
  way->second();
}
