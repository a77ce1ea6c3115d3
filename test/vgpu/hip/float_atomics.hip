// Floating-point atomics of the hardware on each kind of memory. Sources of the expected values:
// HIP's own tests for gfx90a (tests/catch/unit/deviceLib/AtomicAdd_withunsafeflag.cc and its
// neighbours), and ROCm's page "Hardware atomics operation support" for MI200 and MI100. On
// fine-grained memory these atomics have no effect and return 0.
//
// Arguments: "coarse" skips fine-grained memory.
#include <cstring>
#include <vector>

#include "check.hpp"

constexpr int kInitial = 5, kAddend = 10, kPoison = 99;

template <class T>
__global__ void unsafe_add(T* value, T* old) {
  *old = unsafeAtomicAdd(value, static_cast<T>(kAddend));
}
template <class T>
__global__ void safe_add(T* value, T* old) {
  *old = safeAtomicAdd(value, static_cast<T>(kAddend));
}
template <class T>
__global__ void plain_add(T* value, T* old) {
  *old = atomicAdd(value, static_cast<T>(kAddend));
}
// Deprecated, but the only function of HIP 5.2.3 that produces the instruction for gfx908 without
// an option.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
__global__ void add_without_return(float* value) {
  atomicAddNoRet(value, static_cast<float>(kAddend));
}
#pragma clang diagnostic pop

__global__ void add_in_lds(float* sum) {
  __shared__ float lds;
  if (threadIdx.x == 0) lds = kInitial;
  __syncthreads();
  unsafeAtomicAdd(&lds, 1.0f);
  __syncthreads();
  if (threadIdx.x == 0) *sum = lds;
}

// Memory that the host can access too. Fresh for each launch: HIP's launches acquire at agent
// scope, so they need not see the host's later stores to coarse-grained memory that the device has
// used.
template <class T>
struct Pair {
  explicit Pair(unsigned flags) {
    CHECK_HIP(hipHostMalloc(reinterpret_cast<void**>(&value), sizeof(T), flags));
    CHECK_HIP(hipHostMalloc(reinterpret_cast<void**>(&old), sizeof(T), flags));
    *value = kInitial;
    *old = kPoison;
  }
  ~Pair() {
    CHECK_HIP(hipHostFree(value));
    CHECK_HIP(hipHostFree(old));
  }
  T *value, *old;
};

template <class T>
void run(void (*kernel)(T*, T*), unsigned flags, bool works) {
  Pair<T> at(flags);
  kernel<<<1, 1>>>(at.value, at.old);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK(*at.value == (works ? kInitial + kAddend : kInitial));
  CHECK(*at.old == (works ? kInitial : 0));
}

// `unsafe_works`: the result of unsafeAtomicAdd, which is a hardware instruction on gfx90a only.
template <class T>
void floating(unsigned flags, bool unsafe_works) {
  run<T>(unsafe_add<T>, flags, unsafe_works);
  run<T>(safe_add<T>, flags, true);
  run<T>(plain_add<T>, flags, true);  // compiled without -munsafe-fp-atomics
}

void without_return(unsigned flags, bool works) {
  Pair<float> at(flags);
  add_without_return<<<1, 1>>>(at.value);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK(*at.value == (works ? kInitial + kAddend : kInitial));
}

template <class T>
void on_device() {
  T* device;
  CHECK_HIP(hipMalloc(reinterpret_cast<void**>(&device), 2 * sizeof(T)));
  T host[2] = {kInitial, kPoison};
  CHECK_HIP(hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice));
  unsafe_add<T><<<1, 1>>>(device, device + 1);
  CHECK_HIP(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
  CHECK(host[0] == kInitial + kAddend);
  CHECK(host[1] == kInitial);
  CHECK_HIP(hipFree(device));
}

int main(int count, char** arguments) {
  const bool only_coarse = count > 1 && std::strcmp(arguments[1], "coarse") == 0;
  hipDeviceProp_t properties;
  CHECK_HIP(hipGetDeviceProperties(&properties, 0));
  const auto is = [&](const char* target) {
    return std::strncmp(properties.gcnArchName, target, std::strlen(target)) == 0;
  };
  const bool unsafe_is_instruction = is("gfx90a"),
             no_return_is_instruction = is("gfx90a") || is("gfx908");

  on_device<float>();
  on_device<double>();
  floating<float>(hipHostMallocNonCoherent, true);
  floating<double>(hipHostMallocNonCoherent, true);
  without_return(hipHostMallocNonCoherent, true);

  Pair<float> sum(hipHostMallocNonCoherent);
  add_in_lds<<<1, 256>>>(sum.value);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK(*sum.value == kInitial + 256);

  if (!only_coarse) {
    floating<float>(hipHostMallocCoherent, !unsafe_is_instruction);
    floating<double>(hipHostMallocCoherent, !unsafe_is_instruction);
    without_return(hipHostMallocCoherent, !no_return_is_instruction);
    run<int>(plain_add<int>, hipHostMallocCoherent, true);
  }
  std::puts("ok");
}
