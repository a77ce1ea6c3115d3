// SIMD targets for which the vector unit is compiled. Include before any Highway header.
//
// Each target costs compile time, so steps that are seldom the best of a machine are left out.
// table.cpp chooses at run time, because Highway's own dispatcher would make the preloaded library
// depend on libhwy.so.
#pragma once

#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
// The build may include one target alone (UPTEMPO_VGPU_SIMD, CMakeLists.txt). As the baseline it
// excludes those below it; the disabled ones above it are listed here.
#if defined(UPTEMPO_VGPU_AVX512_ALONE)
#define UPTEMPO_VGPU_AVX512 1
#define UPTEMPO_VGPU_AVX2 0
#define UPTEMPO_VGPU_SSE4 0
#define HWY_BASELINE_TARGETS HWY_AVX3
#elif defined(UPTEMPO_VGPU_AVX2_ALONE)
#define UPTEMPO_VGPU_AVX512 0
#define UPTEMPO_VGPU_AVX2 1
#define UPTEMPO_VGPU_SSE4 0
#define HWY_BASELINE_TARGETS HWY_AVX2
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_AVX3)
#elif defined(UPTEMPO_VGPU_SSE4_ALONE)
#define UPTEMPO_VGPU_AVX512 0
#define UPTEMPO_VGPU_AVX2 0
#define UPTEMPO_VGPU_SSE4 1
#define HWY_BASELINE_TARGETS HWY_SSE4
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_AVX3 | HWY_AVX2)
#else
#define UPTEMPO_VGPU_AVX512 1
#define UPTEMPO_VGPU_AVX2 1
#define UPTEMPO_VGPU_SSE4 1
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
#include <hwy/detect_targets.h>

// Names of a target that is left out refer to one that is built. table.cpp never chooses them.
namespace uptempo::vgpu::gfx9 {
namespace vector {
#if UPTEMPO_VGPU_AVX512
namespace N_AVX3 {}
#elif UPTEMPO_VGPU_AVX2
namespace N_AVX2 {}
namespace N_AVX3 = N_AVX2;
#else
namespace N_SSE4 {}
namespace N_AVX3 = N_SSE4;
#endif
#if !UPTEMPO_VGPU_AVX2
namespace N_AVX2 = N_AVX3;
#endif
#if !UPTEMPO_VGPU_SSE4
namespace N_SSE4 = N_AVX3;
#endif
}  // namespace vector
namespace memory {
#if UPTEMPO_VGPU_AVX512
namespace N_AVX3 {}
#elif UPTEMPO_VGPU_AVX2
namespace N_AVX2 {}
namespace N_AVX3 = N_AVX2;
#else
namespace N_SSE4 {}
namespace N_AVX3 = N_SSE4;
#endif
#if !UPTEMPO_VGPU_AVX2
namespace N_AVX2 = N_AVX3;
#endif
#if !UPTEMPO_VGPU_SSE4
namespace N_SSE4 = N_AVX3;
#endif
}  // namespace memory
}  // namespace uptempo::vgpu::gfx9
