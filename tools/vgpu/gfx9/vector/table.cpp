// The table of each SIMD target, and the selection of the one in use.
#include "gfx9/vector/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gfx9/vector/table.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "gfx9/vector/entry.hpp"

HWY_BEFORE_NAMESPACE();
namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE {

std::span<const Entry> integer_entries();
std::span<const Entry> integer16_entries();
std::span<const Entry> bit_entries();
std::span<const Entry> compare_entries();
std::span<const Entry> compare64_entries();
std::span<const Entry> compare16_entries();
std::span<const Entry> float32_entries();
std::span<const Entry> float64_entries();
std::span<const Entry> float16_entries();
std::span<const Entry> convert_entries();
std::span<const Entry> transcendental_entries();
std::span<const Entry> division_entries();
std::span<const Entry> matrix_entries();

const Op* general(const Op& op, Wave& wave);

const Table& target_table() {
  static const Table kTable = [] {
    Table table{};
    for (const auto family :
         {integer_entries, integer16_entries, bit_entries, compare_entries, compare64_entries,
          compare16_entries, float32_entries, float64_entries, float16_entries, convert_entries,
          transcendental_entries, lane_entries, division_entries, media_entries, matrix_entries,
          convert8_entries, matrix_fused_entries}) {
      for (const Entry& entry : family()) table[static_cast<size_t>(entry.opcode)] = entry;
    }
    return table;
  }();
  return kTable;
}

}  // namespace uptempo::vgpu::gfx9::vector::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cpuid.h>

#include <atomic>
#include <stdexcept>

namespace uptempo::vgpu::gfx9::vector {
namespace {

// Clang 15 has no name for it in __builtin_cpu_supports().
bool has_f16c() noexcept {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2") && has_f16c();
}

// Whether this machine supports it and this build includes it.
bool supported(Simd simd) noexcept {
  switch (simd) {
    case Simd::avx512:
      return UPTEMPO_VGPU_AVX512 && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw") && has_avx2();
    case Simd::avx2:
      return UPTEMPO_VGPU_AVX2 && has_avx2();
    case Simd::baseline:
      return UPTEMPO_VGPU_SSE4;
  }
  return false;
}

struct Choice {
  Simd simd;
  const Table* table;
  Handler general;
};

// Makes one table at a time: code of the target itself fills its table, and only machines with that
// target can run it.
const Choice& choice_of(Simd simd) {
  switch (simd) {
    case Simd::avx512: {
      static const Choice kChoice{simd, &N_AVX3::target_table(), &N_AVX3::general};
      return kChoice;
    }
    case Simd::avx2: {
      static const Choice kChoice{simd, &N_AVX2::target_table(), &N_AVX2::general};
      return kChoice;
    }
    default: {
      static const Choice kChoice{simd, &N_SSE4::target_table(), &N_SSE4::general};
      return kChoice;
    }
  }
}

std::atomic<const Choice*>& in_use() {
  static std::atomic<const Choice*> choice{&choice_of(supported(Simd::avx512) ? Simd::avx512
                                                      : supported(Simd::avx2) ? Simd::avx2
                                                                              : Simd::baseline)};
  return choice;
}

}  // namespace

void require_simd() {
  __builtin_cpu_init();
  if (supported(Simd::avx512) || supported(Simd::avx2) || supported(Simd::baseline)) return;
  throw std::runtime_error(
      UPTEMPO_VGPU_AVX512
          ? "this virtual GPU was built for processors with AVX-512 (UPTEMPO_VGPU_SIMD=native), "
            "which this one lacks: build with -DUPTEMPO_VGPU_SIMD=all"
          : "this virtual GPU was built for processors with AVX2 (UPTEMPO_VGPU_SIMD=native), which "
            "this one lacks: build with -DUPTEMPO_VGPU_SIMD=all");
}

// Relaxed everywhere: the choices are constants made before the pointer, and only single-threaded
// tests change it.
const Table& table() noexcept { return *in_use().load(std::memory_order_relaxed)->table; }
Handler general_handler() noexcept { return in_use().load(std::memory_order_relaxed)->general; }
Simd simd_in_use() noexcept { return in_use().load(std::memory_order_relaxed)->simd; }

bool use_simd(Simd simd) noexcept {
  if (!supported(simd)) return false;
  in_use().store(&choice_of(simd), std::memory_order_relaxed);
  return true;
}

}  // namespace uptempo::vgpu::gfx9::vector
#endif
