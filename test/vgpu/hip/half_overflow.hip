// MODE.FP16_OVFL, as compilers of kernels set it (Triton: at the entry of kernels that convert to
// 8-bit floats). Overflowing float16 and 8-bit results become the largest number of their sign.
// Sources of the expected values: LLVM's AMDGPU usage guide, COMPUTE_PGM_RSRC1.FP16_OVFL, and the
// table "FP16_OVFL rule" in AMD's CDNA ISA manual.
#include <cmath>
#include <cstring>
#include <vector>

#include "check.hpp"

// 1 of 1 bit at bit 23 of hardware register 1 (MODE).
constexpr int kFp16Ovfl = 1 | 23 << 6;

// The loads are volatile, so that none moves to before the change of MODE.
template <bool kClamps>
__global__ void narrow(const volatile float* in, unsigned short* half, unsigned* bytes) {
  if (kClamps) __builtin_amdgcn_s_setreg(kFp16Ovfl, 1);
  const float x = in[threadIdx.x];
  const _Float16 narrowed = static_cast<_Float16>(x);
  __builtin_memcpy(&half[threadIdx.x], &narrowed, sizeof narrowed);
#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
  const int fp8 = __builtin_amdgcn_cvt_pk_fp8_f32(x, x, 0, false);
  bytes[threadIdx.x] = static_cast<unsigned>(__builtin_amdgcn_cvt_pk_bf8_f32(x, x, fp8, true));
#else
  bytes[threadIdx.x] = 0;
#endif
}

struct Number {
  float x;
  unsigned half, clamped_half;    // float16
  unsigned bytes, clamped_bytes;  // fp8 twice, then bf8 twice
};
const Number kNumbers[] = {
    {1.0f, 0x3c00, 0x3c00, 0x40404040, 0x40404040},
    {65504.0f, 0x7bff, 0x7bff, 0x80808080, 0x7f7f7f7f},
    {65520.0f, 0x7c00, 0x7bff, 0x80808080, 0x7f7f7f7f},
    {-1e6f, 0xfc00, 0xfbff, 0x80808080, 0xffffffff},
    {INFINITY, 0x7c00, 0x7c00, 0x80808080, 0x7f7f7f7f},
    {-INFINITY, 0xfc00, 0xfc00, 0x80808080, 0xffffffff},
    {240.0f, 0x5b80, 0x5b80, 0x60607f7f, 0x60607f7f},
    {-256.0f, 0xdc00, 0xdc00, 0xe0e08080, 0xe0e0ffff},
};
constexpr unsigned kCount = sizeof kNumbers / sizeof kNumbers[0];

template <bool kClamps>
void check(bool has_bytes) {
  float* in;
  unsigned short* half;
  unsigned* bytes;
  CHECK_HIP(hipMalloc(&in, kCount * sizeof *in));
  CHECK_HIP(hipMalloc(&half, kCount * sizeof *half));
  CHECK_HIP(hipMalloc(&bytes, kCount * sizeof *bytes));
  std::vector<float> numbers;
  for (const Number& number : kNumbers) numbers.push_back(number.x);
  CHECK_HIP(hipMemcpy(in, numbers.data(), kCount * sizeof *in, hipMemcpyHostToDevice));
  narrow<kClamps><<<1, kCount>>>(in, half, bytes);
  CHECK_HIP(hipGetLastError());
  std::vector<unsigned short> halves(kCount);
  std::vector<unsigned> got(kCount);
  CHECK_HIP(hipMemcpy(halves.data(), half, kCount * sizeof *half, hipMemcpyDeviceToHost));
  CHECK_HIP(hipMemcpy(got.data(), bytes, kCount * sizeof *bytes, hipMemcpyDeviceToHost));
  for (unsigned i = 0; i < kCount; ++i) {
    const Number& number = kNumbers[i];
    CHECK(halves[i] == (kClamps ? number.clamped_half : number.half));
    CHECK(got[i] == (!has_bytes ? 0 : kClamps ? number.clamped_bytes : number.bytes));
  }
  CHECK_HIP(hipFree(in));
  CHECK_HIP(hipFree(half));
  CHECK_HIP(hipFree(bytes));
}

int main() {
  hipDeviceProp_t properties;
  CHECK_HIP(hipGetDeviceProperties(&properties, 0));
  const bool has_bytes = std::strncmp(properties.gcnArchName, "gfx94", 5) == 0;
  check<false>(has_bytes);
  check<true>(has_bytes);
  check<false>(has_bytes);  // the bit ends with its wave
  std::puts("ok");
  return 0;
}
