// Observes by page protection which pages of device memory the host stores to, for --check memory.
//
// The program's mapping of an allocation of device memory begins read-only, with its redzone. The
// first store to a page faults: the whole page then counts as initialised, and stays open. System
// calls fail on a protected page instead, so HostAccess (device/host/host_pages.hpp) opens the
// pages of a buffer that the kernel fills.
//
// A page whose protection differs from its neighbour's costs the process a mapping, and Linux
// limits their number (vm.max_map_count). From three quarters of it on, an allocation that would
// need a further one stays open, or is opened with the closed ones before it: all its bytes count
// as initialised, and unobserved() counts it. So the program can still map memory itself.
//
// Restriction: the program must not change the protection of device memory itself.
// Processes: a fork child opens the pages that it inherits in the same way.
// Thread safety: any thread; stored() is async-signal-safe.
// Cost: a fault of some microseconds for each page that the host stores to. Near the limit, also
// reading /proc/self/maps once for kRefusals allocations or pages (0.4 us a mapping, measured with
// 50,000).
#pragma once

#include <ucontext.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "device/memory_check/checker.hpp"

namespace uptempo::vgpu::memory_check {

class HostStores {
 public:
  // Installs the fault handler (fault_chain.hpp). One object per process. `most_mappings`: of the
  // process, until which stores are observed; 0: three quarters of vm.max_map_count.
  explicit HostStores(Checker& checker, uint64_t most_mappings = 0);
  ~HostStores();
  HostStores(const HostStores&) = delete;
  HostStores& operator=(const HostStores&) = delete;

  // Null without --check memory.
  static HostStores* of_process() noexcept { return instance.load(std::memory_order_acquire); }

  // The program's new allocation of device memory, which the host can access.
  void watch(GpuAddress begin) noexcept;
  // Opens all its pages; call it before the memory is returned to ROCr.
  void unwatch(GpuAddress begin) noexcept;

  // The host stores, or is about to store, to these bytes. Returns whether any of them are device
  // memory of the program.
  bool stored(uintptr_t address, size_t bytes) noexcept;

  // Allocations that count as initialised, because there were too many mappings.
  uint64_t unobserved() const noexcept { return unobserved_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t kRefusals = 1024;

  static bool settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept;

  bool may_split() noexcept;
  int64_t count_splits() const noexcept;
  void give_up(Allocation& allocation) noexcept;
  bool open(Allocation& allocation, GpuAddress begin, GpuAddress end) noexcept;
  bool open_mapping(GpuAddress address) noexcept;

  static std::atomic<HostStores*> instance;
  Checker& checker_;
  const uint64_t most_mappings_;
  // Changes of protection until the mappings are counted again: positive, they are allowed;
  // negative, refused.
  std::atomic<int64_t> splits_{0};
  std::atomic<uint64_t> unobserved_{0};
};

}  // namespace uptempo::vgpu::memory_check
