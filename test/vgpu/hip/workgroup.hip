// Cooperation of work-items in a group and in a grid: LDS and barriers, shuffles and votes,
// atomics, private arrays, divergence.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"

constexpr unsigned kGroup = 256;

__global__ void reduce(const int* in, int* sums, int count) {
  __shared__ int partial[kGroup];
  const unsigned i = blockIdx.x * kGroup + threadIdx.x;
  partial[threadIdx.x] = static_cast<int>(i) < count ? in[i] : 0;
  __syncthreads();
  for (unsigned half = kGroup / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}
__global__ void histogram(const int* in, int count, unsigned* bins) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) atomicAdd(&local[in[i] & 15], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
__global__ void lanes(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane * lane;
  for (int offset = 32; offset > 0; offset /= 2) value += __shfl_xor(value, offset);
  const unsigned long long odd = __ballot(lane & 1);
  out[lane] =
      value + __popcll(odd) + (__all(lane < 64) ? 1000000 : 0) + (__any(lane == 63) ? 10000000 : 0);
}
__global__ void collatz(int* steps, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  int taken = 0;
  for (unsigned n = static_cast<unsigned>(i) + 1; n != 1; ++taken)
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  steps[i] = taken;
}
__global__ void private_memory(int* out, int seed) {
  int table[64];
  for (int i = 0; i < 64; ++i) table[i] = i * i + seed;
  int index = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 10; ++i) index = table[index & 63] % 64;
  out[threadIdx.x] = index;
}
__global__ void mathematics(const float* in, float* out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = sqrtf(in[i]) * expf(-in[i]) + sinf(in[i]) / (1.0f + in[i]);
}

template <typename T>
std::vector<T> fetch(const T* device, size_t count) {
  std::vector<T> host(count);
  CHECK_HIP(hipMemcpy(host.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
  return host;
}

int main() {
  constexpr int kCount = 20000;
  constexpr unsigned kGroups = (kCount + kGroup - 1) / kGroup;
  std::vector<int> in(kCount);
  for (int i = 0; i < kCount; ++i) in[static_cast<size_t>(i)] = (i * 7919) % 1000;
  int *data, *out;
  CHECK_HIP(hipMalloc(&data, kCount * sizeof(int)));
  CHECK_HIP(hipMalloc(&out, kCount * sizeof(int)));
  CHECK_HIP(hipMemcpy(data, in.data(), kCount * sizeof(int), hipMemcpyHostToDevice));

  reduce<<<kGroups, kGroup>>>(data, out, kCount);
  const auto sums = fetch(out, kGroups);
  CHECK(std::accumulate(sums.begin(), sums.end(), 0) == std::accumulate(in.begin(), in.end(), 0));

  unsigned* bins;
  CHECK_HIP(hipMalloc(&bins, 16 * sizeof(unsigned)));
  CHECK_HIP(hipMemset(bins, 0, 16 * sizeof(unsigned)));
  histogram<<<kGroups, kGroup>>>(data, kCount, bins);
  const auto counted = fetch(bins, 16);
  for (int bin = 0; bin < 16; ++bin)
    CHECK(counted[static_cast<size_t>(bin)] ==
          std::count_if(in.begin(), in.end(), [bin](int each) { return (each & 15) == bin; }));

  lanes<<<1, 64>>>(out);
  int squares = 0;
  for (int lane = 0; lane < 64; ++lane) squares += lane * lane;
  for (const int each : fetch(out, 64)) CHECK(each == squares + 32 + 11000000);

  collatz<<<kGroups, kGroup>>>(out, kCount);
  const auto steps = fetch(out, kCount);
  CHECK(steps[0] == 0 && steps[26] == 111 && steps[6170] == 261);

  private_memory<<<1, 64>>>(out, 3);
  const auto chased = fetch(out, 64);
  for (int item = 0; item < 64; ++item) {
    int index = item;
    for (int i = 0; i < 10; ++i) index = ((index & 63) * (index & 63) + 3) % 64;
    CHECK(chased[static_cast<size_t>(item)] == index);
  }

  std::vector<float> numbers(kCount);
  for (int i = 0; i < kCount; ++i) numbers[static_cast<size_t>(i)] = static_cast<float>(i) * 0.001f;
  float *x, *y;
  CHECK_HIP(hipMalloc(&x, kCount * sizeof(float)));
  CHECK_HIP(hipMalloc(&y, kCount * sizeof(float)));
  CHECK_HIP(hipMemcpy(x, numbers.data(), kCount * sizeof(float), hipMemcpyHostToDevice));
  mathematics<<<kGroups, kGroup>>>(x, y, kCount);
  const auto values = fetch(y, kCount);
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = numbers[i];
    const double expected = std::sqrt(v) * std::exp(-v) + std::sin(v) / (1 + v);
    CHECK(std::abs(values[i] - expected) < 1e-5);
  }
  for (void* each : {static_cast<void*>(data), static_cast<void*>(out), static_cast<void*>(bins),
                     static_cast<void*>(x), static_cast<void*>(y)})
    CHECK_HIP(hipFree(each));
  std::puts("ok");
}
