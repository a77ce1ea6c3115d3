// HIP's functions that run kernels and copies in a stream, and where they find it: as the argument
// word of that number, from 0 on, or kDefault for the default stream.
//
// Argument words are those of the System V ABI for x86-64 (3.2.3): six registers, then eightbytes
// of the stack. A dim3 takes two registers, and a larger structure is on the stack.
// test/vgpu/interpose/hip_calls_test.cpp compares the numbers with HIP's header.
#pragma once

#include <cstddef>

namespace uptempo::vgpu::hip {

inline constexpr size_t kRegisters = 6;
inline constexpr size_t kMostWords = 14;  // of hipExtModuleLaunchKernel
inline constexpr size_t kDefault = kMostWords;

}  // namespace uptempo::vgpu::hip

// clang-format off
// CALL(name, word): a stream of 0 is the null stream.
#define UPTEMPO_HIP_CALLS(CALL)       \
  CALL(hipLaunchKernel, 7)            \
  CALL(hipExtLaunchKernel, 7)         \
  CALL(hipLaunchCooperativeKernel, 7) \
  CALL(hipModuleLaunchKernel, 8)      \
  CALL(hipGraphLaunch, 1)             \
  CALL(hipMemcpyAsync, 4)             \
  CALL(hipMemcpyWithStream, 4)        \
  CALL(hipMemcpyHtoDAsync, 3)         \
  CALL(hipMemcpyDtoHAsync, 3)         \
  CALL(hipMemcpyDtoDAsync, 3)         \
  CALL(hipMemcpyPeerAsync, 5)         \
  CALL(hipMemcpyToSymbolAsync, 5)     \
  CALL(hipMemcpyFromSymbolAsync, 5)   \
  CALL(hipMemcpy2DAsync, 7)           \
  CALL(hipMemcpy2DToArrayAsync, 8)    \
  CALL(hipMemcpy2DFromArrayAsync, 8)  \
  CALL(hipMemcpyParam2DAsync, 1)      \
  CALL(hipMemcpy3DAsync, 1)           \
  CALL(hipDrvMemcpy3DAsync, 1)        \
  CALL(hipMemsetAsync, 3)             \
  CALL(hipMemsetD8Async, 3)           \
  CALL(hipMemsetD16Async, 3)          \
  CALL(hipMemsetD32Async, 3)          \
  CALL(hipMemset2DAsync, 5)           \
  CALL(hipMemset3DAsync, 1)           \
  CALL(hipMemPrefetchAsync, 3)        \
  CALL(hipStreamWriteValue32, 0)      \
  CALL(hipStreamWriteValue64, 0)      \
  CALL(hipStreamWaitValue32, 0)       \
  CALL(hipStreamWaitValue64, 0)       \
  CALL(hipMemcpy, kDefault)           \
  CALL(hipMemcpyHtoD, kDefault)       \
  CALL(hipMemcpyDtoH, kDefault)       \
  CALL(hipMemcpyDtoD, kDefault)       \
  CALL(hipMemcpyHtoA, kDefault)       \
  CALL(hipMemcpyAtoH, kDefault)       \
  CALL(hipMemcpyPeer, kDefault)       \
  CALL(hipMemcpyToSymbol, kDefault)   \
  CALL(hipMemcpyFromSymbol, kDefault) \
  CALL(hipMemcpyToArray, kDefault)    \
  CALL(hipMemcpyFromArray, kDefault)  \
  CALL(hipMemcpy2D, kDefault)         \
  CALL(hipMemcpy2DToArray, kDefault)  \
  CALL(hipMemcpy2DFromArray, kDefault) \
  CALL(hipMemcpyParam2D, kDefault)    \
  CALL(hipMemcpy3D, kDefault)         \
  CALL(hipDrvMemcpy3D, kDefault)      \
  CALL(hipMemset, kDefault)           \
  CALL(hipMemsetD8, kDefault)         \
  CALL(hipMemsetD16, kDefault)        \
  CALL(hipMemsetD32, kDefault)        \
  CALL(hipMemset2D, kDefault)         \
  CALL(hipMemset3D, kDefault)

// A stream of 0 is the thread's default stream: programs that were compiled with
// -fgpu-default-stream=per-thread call these.
#define UPTEMPO_HIP_CALLS_PER_THREAD(CALL)  \
  CALL(hipLaunchKernel_spt, 7)              \
  CALL(hipLaunchCooperativeKernel_spt, 7)   \
  CALL(hipMemcpyAsync_spt, 4)               \
  CALL(hipMemcpy_spt, kDefault)             \
  CALL(hipMemcpyToSymbol_spt, kDefault)     \
  CALL(hipMemcpyFromSymbol_spt, kDefault)   \
  CALL(hipMemcpy2D_spt, kDefault)           \
  CALL(hipMemcpy2DToArray_spt, kDefault)    \
  CALL(hipMemcpy2DFromArray_spt, kDefault)  \
  CALL(hipMemcpy3D_spt, kDefault)           \
  CALL(hipMemset_spt, kDefault)             \
  CALL(hipMemset2D_spt, kDefault)           \
  CALL(hipMemset3D_spt, kDefault)

// Functions of later versions than 5.2, of both kinds.
#define UPTEMPO_LATER_HIP_CALLS(CALL) \
  CALL(hipModuleLaunchCooperativeKernel, 8)
#define UPTEMPO_LATER_HIP_CALLS_PER_THREAD(CALL) \
  CALL(hipGraphLaunch_spt, 1)                    \
  CALL(hipMemcpyFromArray_spt, kDefault)         \
  CALL(hipMemcpyToSymbolAsync_spt, 5)            \
  CALL(hipMemcpyFromSymbolAsync_spt, 5)          \
  CALL(hipMemcpy2DAsync_spt, 7)                  \
  CALL(hipMemcpy2DToArrayAsync_spt, 8)           \
  CALL(hipMemcpy2DFromArrayAsync_spt, 8)         \
  CALL(hipMemcpy3DAsync_spt, 1)                  \
  CALL(hipMemsetAsync_spt, 3)                    \
  CALL(hipMemset2DAsync_spt, 5)                  \
  CALL(hipMemset3DAsync_spt, 1)
// clang-format on
