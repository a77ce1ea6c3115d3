// Cooperative launches: all blocks of a grid meet at a barrier and see the others' earlier stores.
#include <utility>
#include <vector>

#include "check.hpp"

#include <hip/hip_cooperative_groups.h>  // needs declarations of hip_runtime.h

constexpr unsigned kGroup = 256, kGroups = 24, kCount = kGroup * kGroups;
constexpr int kRounds = 10;

// In each round, each element becomes another block's element plus one. A block that is a round
// early or late reads a wrong value.
__global__ void exchange(int* from, int* to, int rounds) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    to[i] = from[i] + from[(i + 5 * kGroup + 1) % kCount];
    cooperative_groups::this_grid().sync();
    int* const swapped = from;
    from = to;
    to = swapped;
  }
}

int main() {
  int supported = 0;
  CHECK_HIP(hipDeviceGetAttribute(&supported, hipDeviceAttributeCooperativeLaunch, 0));
  CHECK(supported == 1);
  std::vector<int> a(kCount), b(kCount);
  for (unsigned i = 0; i < kCount; ++i) a[i] = static_cast<int>(i * 7919 % 1000);
  int *from, *to;
  CHECK_HIP(hipMalloc(&from, kCount * sizeof(int)));
  CHECK_HIP(hipMalloc(&to, kCount * sizeof(int)));
  CHECK_HIP(hipMemcpy(from, a.data(), kCount * sizeof(int), hipMemcpyHostToDevice));

  // The second launch starts with the barrier's state after the first. An even number of rounds
  // ends in the original buffer.
  for (int launch = 0; launch < 2; ++launch) {
    int rounds = kRounds;
    void* arguments[] = {&from, &to, &rounds};
    CHECK_HIP(hipLaunchCooperativeKernel(reinterpret_cast<const void*>(&exchange), dim3(kGroups),
                                         dim3(kGroup), arguments, 0, nullptr));
    for (int round = 0; round < rounds; ++round) {
      for (unsigned i = 0; i < kCount; ++i) b[i] = a[i] + a[(i + 5 * kGroup + 1) % kCount];
      std::swap(a, b);
    }
  }
  CHECK_HIP(hipMemcpy(b.data(), from, kCount * sizeof(int), hipMemcpyDeviceToHost));
  CHECK(a == b);
  CHECK_HIP(hipFree(from));
  CHECK_HIP(hipFree(to));
  std::puts("ok");
}
