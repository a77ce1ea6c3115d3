// Workgroups that are resident at once. HIP's occupancy query is the oracle: a grid of as many
// blocks as it counts, on all compute units, meets at a barrier, and a grid of one more block does
// not: that block starts when another one ends, and the hang report gives the reason.
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>
#include <regex>
#include <string>

#include <uptempo/vgpu/query.h>
#include "check.hpp"

struct Meeting {
  unsigned arrived;
  unsigned give_up;  // set by the host: the blocks wait no longer
};

// Each block waits until `blocks` have arrived.
__device__ void meet(Meeting* meeting, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __hip_atomic_fetch_add(&meeting->arrived, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  while (__hip_atomic_load(&meeting->arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) <
             blocks &&
         __hip_atomic_load(&meeting->give_up, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
}

__global__ void plain(Meeting* meeting, unsigned blocks) { meet(meeting, blocks); }

__global__ __launch_bounds__(256) void many_vgprs(Meeting* meeting, unsigned blocks) {
  asm volatile("v_mov_b32 v100, 0" ::: "v100");
  meet(meeting, blocks);
}

__global__ __launch_bounds__(64) void all_vgprs(Meeting* meeting, unsigned blocks) {
  asm volatile("v_mov_b32 v255, 0" ::: "v255");
  meet(meeting, blocks);
}

#if defined(__gfx90a__) || defined(__gfx942__) || !defined(__HIP_DEVICE_COMPILE__)
// 104 and 100 registers of one file: 2 waves a SIMD.
__global__ __launch_bounds__(128) void accumulation_vgprs(Meeting* meeting, unsigned blocks) {
  asm volatile("v_mov_b32 v101, 0\n\tv_accvgpr_write_b32 a99, 0" ::: "v101", "a99");
  meet(meeting, blocks);
}
#else
__global__ void accumulation_vgprs(Meeting*, unsigned) {}
#endif

__global__ __launch_bounds__(64) void many_sgprs(Meeting* meeting, unsigned blocks) {
  asm volatile("s_mov_b32 s95, 0" ::: "s95");
  meet(meeting, blocks);
}

using Kernel = void (*)(Meeting*, unsigned);

static std::string report() {
  const auto write_report =
      reinterpret_cast<uptempo_vgpu_report_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_report"));
  CHECK(write_report != nullptr);
  FILE* const file = std::tmpfile();
  CHECK(write_report(fileno(file)) == 0);
  std::rewind(file);
  std::string text;
  for (int letter; (letter = std::fgetc(file)) != EOF;) {
    const bool space = letter == ' ' || letter == '\n';
    if (!space || (!text.empty() && text.back() != ' ')) text.push_back(space ? ' ' : char(letter));
  }
  std::fclose(file);
  return text;
}

static void check_case(const char* name, Kernel kernel, unsigned threads, size_t lds, int per_unit,
                       const char* limit) {
  hipDeviceProp_t device;
  CHECK_HIP(hipGetDeviceProperties(&device, 0));
  const unsigned blocks = unsigned(per_unit * device.multiProcessorCount);
  std::printf("%s: %d blocks a unit\n", name, per_unit);
  std::fflush(stdout);
  Meeting* meeting = nullptr;
  CHECK_HIP(hipHostMalloc(&meeting, sizeof *meeting, hipHostMallocCoherent));
  *meeting = {};
  kernel<<<blocks, threads, lds>>>(meeting, blocks);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK(meeting->arrived == blocks);

  *meeting = {};
  kernel<<<blocks + 1, threads, lds>>>(meeting, blocks + 1);
  const std::string expected =
      std::to_string(blocks) +
      " running, 1 not started all that fit are running: " + std::to_string(per_unit) +
      " on each of " + std::to_string(device.multiProcessorCount) + " compute units (" + limit;
  std::string text;
  do {
    if (hipStreamQuery(nullptr) == hipSuccess) {
      std::printf("%s: %u blocks ran at once; HIP counts %u\n", name, blocks + 1, blocks);
      std::exit(1);
    }
    text = report();
  } while (text.find(expected) == std::string::npos);
  CHECK(__atomic_load_n(&meeting->arrived, __ATOMIC_RELAXED) == blocks);
  __atomic_store_n(&meeting->give_up, 1u, __ATOMIC_RELEASE);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK(meeting->arrived == blocks + 1);
  CHECK_HIP(hipHostFree(meeting));
}

static int counted_by_hip(Kernel kernel, unsigned threads, size_t lds) {
  int per_unit = 0;
  CHECK_HIP(hipOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_unit, reinterpret_cast<const void*>(kernel), int(threads), lds));
  return per_unit;
}

static void check_occupancy(const char* name, Kernel kernel, unsigned threads, size_t lds,
                            const char* limit) {
  check_case(name, kernel, threads, lds, counted_by_hip(kernel, threads, lds), limit);
}

// HIP 5.7 counts 256 registers of a SIMD of gfx942, which has 512 (getTotalNumVGPRs() of LLVM's
// AMDGPUBaseInfo.cpp). `per_unit`: what they suffice for.
static void check_vgprs(const char* name, Kernel kernel, unsigned threads, int per_unit,
                        bool hip_counts, const char* limit) {
  if (hip_counts) CHECK(counted_by_hip(kernel, threads, 0) == per_unit);
  check_case(name, kernel, threads, 0, per_unit, limit);
}

int main() {
  hipDeviceProp_t device;
  CHECK_HIP(hipGetDeviceProperties(&device, 0));
  check_occupancy("all LDS", plain, 64, 65536, "LDS: 64 of 64 KiB each)");
  check_occupancy("more than half of LDS", plain, 64, 33000, "LDS: 33280 of 65536 bytes each)");
  check_occupancy("a third of LDS", plain, 256, 21504, "LDS: 21 of 64 KiB each)");
  const std::string target = std::string(device.gcnArchName).substr(0, 6);
  const bool unified = target == "gfx90a" || target == "gfx942";
  const bool hip_counts = target != "gfx942" || HIP_VERSION >= 60000000;
  check_vgprs("many VGPRs", many_vgprs, 256, unified ? 4 : 2, hip_counts,
              unified ? "VGPRs: 104 of 512 of a SIMD for each wave)"
                      : "VGPRs: 104 of 256 of a SIMD for each wave)");
  check_vgprs("all VGPRs", all_vgprs, 64, unified ? 8 : 4, hip_counts,
              unified ? "VGPRs: 256 of 512 of a SIMD for each wave)"
                      : "VGPRs: 256 of 256 of a SIMD for each wave)");
  if (unified)
    check_vgprs("accumulation VGPRs", accumulation_vgprs, 128, 4, hip_counts,
                "VGPRs: 208 of 512 of a SIMD for each wave)");
  check_occupancy("many SGPRs", many_sgprs, 64, 0, "SGPRs: 112 of 800 of a SIMD for each wave)");
  // HIP's query counts at most 8 waves a SIMD, which is right for gfx90a and gfx942.
  check_case("wave slots", plain, 256, 0, device.maxThreadsPerMultiProcessor / 256,
             unified ? "wave slots: 4 of 32 each" : "wave slots: 4 of 40 each");
  std::puts("ok");
}
