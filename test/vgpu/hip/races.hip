// Kernels with and without the order that they need inside, for --check races.
//
//   hip_races NAME           as it should be: the race detector is silent
//   hip_races NAME MISTAKE   the same without one barrier, fence or atomic: a race
//   hip_races NAME MISTAKE N the same N times
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "check.hpp"

#include <hip/hip_cooperative_groups.h>  // needs declarations of hip_runtime.h

constexpr unsigned kGroup = 256, kGroups = 16, kCount = kGroup * kGroups;

// Barriers. Each kernel stores one word per work-item to `out`.

template <bool Barrier>
__global__ void reduce(const unsigned* in, unsigned* out) {
  __shared__ unsigned partial[kGroup];
  partial[threadIdx.x] = in[blockIdx.x * kGroup + threadIdx.x];
  __syncthreads();
  for (unsigned half = kGroup / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    if (Barrier) __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

// Two buffers need one barrier in each step, one buffer needs two.
template <bool TwoBuffers>
__global__ void rotate(const unsigned* in, unsigned* out) {
  __shared__ unsigned buffer[2][kGroup];
  unsigned value = in[blockIdx.x * kGroup + threadIdx.x];
  for (unsigned step = 0; step < 8; ++step) {
    unsigned* const now = buffer[TwoBuffers ? step % 2 : 0];
    now[threadIdx.x] = value;
    __syncthreads();
    value = now[(threadIdx.x + 65) % kGroup];
  }
  out[blockIdx.x * kGroup + threadIdx.x] = value;
}

template <bool Barrier>
__global__ void histogram(const unsigned* in, unsigned* out) {
  __shared__ unsigned bins[kGroup];
  bins[threadIdx.x] = 0;
  if (Barrier) __syncthreads();
  atomicAdd(&bins[in[blockIdx.x * kGroup + threadIdx.x] % kGroup], 1u);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

// Without a barrier: right in a workgroup of one wave.
__global__ void neighbour_in_lds(const unsigned* in, unsigned* out) {
  extern __shared__ unsigned word[];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  word[threadIdx.x] = in[i];
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "wavefront");
  out[i] = word[(threadIdx.x + blockDim.x / 2) % blockDim.x];
}

template <bool Barrier>
__global__ void neighbour_in_global(const unsigned* in, unsigned* out) {
  const unsigned i = blockIdx.x * kGroup + threadIdx.x;
  out[i] = in[i];
  if (Barrier) __syncthreads();
  const unsigned other = blockIdx.x * kGroup + (threadIdx.x + 64) % kGroup;
  out[kCount + i] = out[other];
}

// Each wave stores all of the block's values, as Triton's replicated layouts do. Without `Same`,
// each stores its own.
template <bool Same>
__global__ void replicated(const unsigned* in, unsigned* out) {
  __shared__ unsigned shared[64];
  const unsigned lane = threadIdx.x % 64, wave = threadIdx.x / 64;
  const unsigned value = in[blockIdx.x * 64 + lane] + (Same ? 0 : wave);
  shared[lane] = value;
  out[blockIdx.x * 64 + lane] = value;
  __syncthreads();
  out[kCount + blockIdx.x * 64 + lane] = shared[63 - lane];
}

// Order between workgroups.

template <bool Atomic>
__global__ void total(const unsigned* in, unsigned* out) {
  const unsigned value = in[blockIdx.x * kGroup + threadIdx.x];
  if (threadIdx.x != 0) return;
  if (Atomic)
    atomicAdd(out, value);
  else
    *out += value;
}

// Clang 15 compiles the addition for gfx90a into a load and a loop of compare-and-swaps. A load
// without the loop is a race.
template <bool Loops>
__global__ void total_of_floats(const unsigned* in, unsigned* out) {
  auto* const sum = reinterpret_cast<float*>(out);
  const auto value = static_cast<float>(in[blockIdx.x * kGroup + threadIdx.x]);
  if (Loops)
    atomicAdd(sum + threadIdx.x % 3, value);
  else if (sum[threadIdx.x % 3] < 1e9f)
    atomicCAS(out + 4 + threadIdx.x % 3, 0u, 1u), atomicExch(sum + threadIdx.x % 3, value);
}

// The last workgroup adds what all have stored.
template <bool Release, bool Acquire, int Order = __ATOMIC_RELAXED>
__global__ void last_block(const unsigned* in, unsigned* out) {
  __shared__ bool is_last;
  unsigned* const partial = out + 2;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x * kGroup];
    if (Release) __threadfence();
    is_last = __hip_atomic_fetch_add(out + 1, 1u, Order, __HIP_MEMORY_SCOPE_AGENT) == gridDim.x - 1;
    if (Acquire) __threadfence();
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
  out[0] = sum;
}

// The CUDA idiom: the fence precedes the counter.
template <bool Fence>
__global__ void last_block_fence_first(const unsigned* in, unsigned* out) {
  __shared__ bool is_last;
  unsigned* const partial = out + 2;
  if (threadIdx.x == 0) partial[blockIdx.x] = in[blockIdx.x * kGroup];
  if (Fence) __threadfence();
  if (threadIdx.x == 0) is_last = atomicInc(out + 1, gridDim.x) == gridDim.x - 1;
  __syncthreads();
  if (is_last && threadIdx.x < gridDim.x) atomicAdd(out, partial[threadIdx.x]);
}

// All waves store. The one that counts must not do so before the others have stored: a barrier
// after the counter is too late.
template <bool Barrier>
__global__ void last_block_of_waves(const unsigned* in, unsigned* out) {
  __shared__ bool is_last;
  unsigned* const partial = out + kCount;
  partial[blockIdx.x * kGroup + threadIdx.x] = in[blockIdx.x * kGroup + threadIdx.x];
  __threadfence();
  if (Barrier) __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(out + 1, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  for (unsigned i = threadIdx.x; i < kCount; i += kGroup) atomicAdd(out, partial[i]);
}

// A chain of workgroups: each waits for the one before it. Tickets make sure that that one runs.
template <int Store, int Load>
__global__ void look_back(const unsigned* in, unsigned* out) {
  if (threadIdx.x != 0) return;
  unsigned* const flags = out + 1;
  unsigned* const sums = out + 1 + kGroups;
  const unsigned mine = atomicAdd(out, 1u);
  unsigned sum = in[mine * kGroup];
  if (mine != 0) {
    while (__hip_atomic_load(&flags[mine - 1], Load, __HIP_MEMORY_SCOPE_AGENT) == 0) {
    }
    sum += sums[mine - 1];
  }
  sums[mine] = sum;
  __hip_atomic_store(&flags[mine], 1u, Store, __HIP_MEMORY_SCOPE_AGENT);
}

// One workgroup, the first that runs, tells all others.
template <int Store>
__global__ void broadcast(const unsigned* in, unsigned* out) {
  if (threadIdx.x != 0) return;
  unsigned* const flag = out + 1;
  unsigned* const value = out + 2;
  const unsigned mine = atomicAdd(out, 1u);
  if (mine == 0) {
    *value = in[0];
    __hip_atomic_store(flag, 1u, Store, __HIP_MEMORY_SCOPE_AGENT);
    return;
  }
  while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {
  }
  out[3 + mine] = *value;
}

// All waves of the first workgroup store before one of them tells the other workgroups.
template <bool Barrier>
__global__ void broadcast_of_waves(const unsigned* in, unsigned* out) {
  __shared__ unsigned mine;
  unsigned* const flag = out + 1;
  unsigned* const values = out + kGroup;
  if (threadIdx.x == 0) mine = atomicAdd(out, 1u);
  __syncthreads();
  if (mine == 0) {
    values[threadIdx.x] = in[threadIdx.x];
    if (Barrier) __syncthreads();
    if (threadIdx.x == 0) __hip_atomic_store(flag, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    __syncthreads();
    return;
  }
  while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {
  }
  out[kCount + blockIdx.x * kGroup + threadIdx.x] = values[threadIdx.x];
}

// Waves of a workgroup tell each other by an atomic in LDS, which needs no wait: LDS is in order.
__global__ void tell_in_lds(const unsigned* in, unsigned* out) {
  __shared__ unsigned value, flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    value = in[blockIdx.x * kGroup];
    __hip_atomic_fetch_add(&flag, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
  if (threadIdx.x == 64) {
    unsigned told = 1;
    while (!__hip_atomic_compare_exchange_strong(&flag, &told, 2u, __ATOMIC_ACQUIRE,
                                                 __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP))
      told = 1;
    out[blockIdx.x] = value;
  }
}

// Stores of the flag by an atomic operation.
template <bool Fence>
__global__ void spin_lock(const unsigned* in, unsigned* out) {
  if (threadIdx.x != 0) return;
  const unsigned value = in[blockIdx.x * kGroup];
  for (bool done = false; !done;) {
    if (atomicCAS(out, 0u, 1u) != 0) continue;
    if (Fence) __threadfence();
    out[1] += value;
    if (Fence) __threadfence();
    atomicExch(out, 0u);
    done = true;
  }
}

enum class Unlock { release, relaxed, plain };

template <Unlock How>
__global__ void unlock_by_store(const unsigned* in, unsigned* out) {
  if (threadIdx.x != 0) return;
  const unsigned value = in[blockIdx.x * kGroup];
  for (bool done = false; !done;) {
    unsigned free = 0;
    if (!__hip_atomic_compare_exchange_strong(out, &free, 1u, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                              __HIP_MEMORY_SCOPE_AGENT))
      continue;
    out[1] += value;
    if (How == Unlock::plain)
      out[0] = 0;
    else
      __hip_atomic_store(out, 0u, How == Unlock::release ? __ATOMIC_RELEASE : __ATOMIC_RELAXED,
                         __HIP_MEMORY_SCOPE_AGENT);
    done = true;
  }
}

template <bool OfGrid>
__global__ void exchange(const unsigned* in, unsigned* out) {
  const unsigned i = blockIdx.x * kGroup + threadIdx.x;
  for (unsigned round = 0; round < 4; ++round) {
    const unsigned* const from = round == 0 ? in : out + (round - 1) % 2 * kCount;
    (out + round % 2 * kCount)[i] = from[(i + kGroup) % kCount] + 1;
    if (OfGrid)
      cooperative_groups::this_grid().sync();
    else
      __syncthreads();
  }
}

using Kernel = void (*)(const unsigned*, unsigned*);
struct Case {
  std::string_view name, mistake;
  Kernel kernel;
  unsigned group = kGroup;
  bool cooperative = false;
};

constexpr int kRelaxed = __ATOMIC_RELAXED, kAcquire = __ATOMIC_ACQUIRE, kRelease = __ATOMIC_RELEASE;
const Case kCases[] = {
    {"reduce", "", reduce<true>},
    {"reduce", "no-barrier", reduce<false>},
    {"rotate", "", rotate<true>},
    {"rotate", "one-buffer", rotate<false>},
    {"histogram", "", histogram<true>},
    {"histogram", "no-barrier", histogram<false>},
    {"wave", "", neighbour_in_lds, 64},
    {"wave", "two-waves", neighbour_in_lds, 128},
    {"replicated", "", replicated<true>},
    {"replicated", "own-values", replicated<false>},
    {"neighbour", "", neighbour_in_global<true>},
    {"neighbour", "no-barrier", neighbour_in_global<false>},
    {"total", "", total<true>},
    {"total", "no-atomic", total<false>},
    {"total-of-floats", "", total_of_floats<true>},
    {"total-of-floats", "no-loop", total_of_floats<false>},
    {"last-block", "", last_block<true, true>},
    {"last-block", "no-fence", last_block<false, false>},
    {"last-block", "no-release", last_block<false, true>},
    {"last-block", "no-acquire", last_block<false, false, kRelease>},
    {"last-block-of-order", "", last_block<false, false, __ATOMIC_ACQ_REL>},
    {"last-block-fence-first", "", last_block_fence_first<true>},
    {"last-block-fence-first", "no-fence", last_block_fence_first<false>},
    {"last-block-of-waves", "", last_block_of_waves<true>},
    {"last-block-of-waves", "no-barrier", last_block_of_waves<false>},
    {"look-back", "", look_back<kRelease, kAcquire>},
    {"look-back", "relaxed-store", look_back<kRelaxed, kAcquire>},
    {"look-back", "relaxed-load", look_back<kRelease, kRelaxed>},
    {"broadcast", "", broadcast<kRelease>},
    {"broadcast", "relaxed-store", broadcast<kRelaxed>},
    {"broadcast-of-waves", "", broadcast_of_waves<true>},
    {"broadcast-of-waves", "no-barrier", broadcast_of_waves<false>},
    {"tell-in-lds", "", tell_in_lds},
    {"spin-lock", "", spin_lock<true>},
    {"spin-lock", "no-fence", spin_lock<false>},
    {"unlock-by-store", "", unlock_by_store<Unlock::release>},
    {"unlock-by-store", "relaxed-store", unlock_by_store<Unlock::relaxed>},
    {"unlock-by-store", "plain-store", unlock_by_store<Unlock::plain>},
    {"exchange", "", exchange<true>, kGroup, true},
    {"exchange", "no-grid-sync", exchange<false>, kGroup, true},
};

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "", mistake = argc > 2 ? argv[2] : "";
  const Case* found = nullptr;
  for (const Case& each : kCases)
    if (each.name == name && each.mistake == mistake) found = &each;
  if (found == nullptr) {
    std::fprintf(stderr, "hip_races: use one of\n");
    for (const Case& each : kCases)
      std::fprintf(stderr, "  %s %s\n", each.name.data(), each.mistake.data());
    return 2;
  }
  std::vector<unsigned> input(kCount);
  for (unsigned i = 0; i < kCount; ++i) input[i] = i * 7919 % 1000;
  unsigned *in, *out;
  CHECK_HIP(hipMalloc(&in, kCount * sizeof(unsigned)));
  CHECK_HIP(hipMalloc(&out, 2 * kCount * sizeof(unsigned)));
  CHECK_HIP(hipMemcpy(in, input.data(), kCount * sizeof(unsigned), hipMemcpyHostToDevice));
  void* arguments[] = {&in, &out};
  const auto kernel = reinterpret_cast<const void*>(found->kernel);
  const dim3 groups(kCount / found->group), group(found->group);
  for (int times = argc > 3 ? std::atoi(argv[3]) : 1; times > 0; --times) {
    CHECK_HIP(hipMemset(out, 0, 2 * kCount * sizeof(unsigned)));
    // The device takes the kernel's packet because of its own doorbell, whose stream a finding
    // names, and not because of one before it.
    CHECK_HIP(hipDeviceSynchronize());
    CHECK_HIP(found->cooperative
                  ? hipLaunchCooperativeKernel(kernel, groups, group, arguments, 0, nullptr)
                  : hipLaunchKernel(kernel, groups, group, arguments, kGroup * sizeof(unsigned),
                                    nullptr));
    CHECK_HIP(hipDeviceSynchronize());
  }
  CHECK_HIP(hipFree(in));
  CHECK_HIP(hipFree(out));
  std::puts("ok");
}
