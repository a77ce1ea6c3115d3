// store_fence(): orders the host's earlier stores to write-combining memory before its later
// stores. store_load_fence(): before its later loads, too.
//
// The driver maps device memory write-combining for the host (Linux, amdgpu_ttm.c,
// amdgpu_ttm_io_mem_reserve(): ttm_write_combined). Such stores become visible in any order, and no
// release store orders them: a release is a plain store on x86. SFENCE drains them first (Intel SDM
// volume 3, 12.3.1; AMD64 APM volume 2, 7.4.1). It does not order loads; MFENCE does.
//
// Thread safety: any thread; it acts on the calling thread's stores only.
// Cost: tens of cycles; with stores to device memory outstanding, until the bus has taken them.
#pragma once

#include <atomic>

namespace uptempo::aql {

inline void store_fence() noexcept {
  // The compiler must not move stores either.
  std::atomic_signal_fence(std::memory_order_seq_cst);
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

inline void store_load_fence() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
#if defined(__x86_64__)
  __builtin_ia32_mfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace uptempo::aql
