// Which SIMD targets the vector unit is compiled for; include before any Highway header.
//
// Each target costs compile time, so the steps that are seldom the best of a machine are left out. The choice at run time is table.cpp's: Highway's
// own dispatcher would make the preloaded library depend on libhwy.so.
#pragma once

#define HWY_DISABLE_PCLMUL_AES
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/detect_targets.h>
