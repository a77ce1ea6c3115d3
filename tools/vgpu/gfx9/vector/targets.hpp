// SIMD targets for which the vector unit is compiled. Include before any Highway header.
//
// Each target costs compile time, so steps that are seldom the best of a machine are left out.
// table.cpp chooses at run time, because Highway's own dispatcher would make the preloaded library
// depend on libhwy.so.
#pragma once

#define HWY_DISABLE_PCLMUL_AES
#define HWY_BASELINE_TARGETS HWY_SSE4
// The build may leave out one of the other targets (UPTEMPO_VGPU_SIMD, CMakeLists.txt).
#ifdef UPTEMPO_VGPU_WITHOUT_AVX512
#define UPTEMPO_VGPU_AVX512 0
#define UPTEMPO_VGPU_AVX2 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3)
#elif defined(UPTEMPO_VGPU_WITHOUT_AVX2)
#define UPTEMPO_VGPU_AVX512 1
#define UPTEMPO_VGPU_AVX2 0
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX2)
#else
#define UPTEMPO_VGPU_AVX512 1
#define UPTEMPO_VGPU_AVX2 1
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#include <hwy/detect_targets.h>

// Names of a target that is left out refer to the baseline. table.cpp never chooses it.
namespace uptempo::vgpu::gfx9 {
namespace vector {
namespace N_SSE4 {}
#if !UPTEMPO_VGPU_AVX512
namespace N_AVX3 = N_SSE4;
#endif
#if !UPTEMPO_VGPU_AVX2
namespace N_AVX2 = N_SSE4;
#endif
}  // namespace vector
namespace memory {
namespace N_SSE4 {}
#if !UPTEMPO_VGPU_AVX512
namespace N_AVX3 = N_SSE4;
#endif
#if !UPTEMPO_VGPU_AVX2
namespace N_AVX2 = N_SSE4;
#endif
}  // namespace memory
}  // namespace uptempo::vgpu::gfx9
