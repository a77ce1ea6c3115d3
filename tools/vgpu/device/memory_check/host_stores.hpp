// Observes by page protection which pages of device memory the host stores to, for --check memory.
//
// The program's mapping of an allocation of device memory begins read-only. The first store to a
// page faults: the whole page then counts as initialised, and stays open. System calls fail on a
// protected page instead, so HostAccess (device/host/host_pages.hpp) opens the pages of a buffer
// that the kernel fills. Where the system splits no more mappings, the whole allocation is opened.
//
// Restriction: the program must not change the protection of device memory itself.
// Processes: a fork child opens the pages that it inherits in the same way.
// Thread safety: any thread; stored() is async-signal-safe.
// Cost: a fault of some microseconds for each page that the host stores to.
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
  // Installs the fault handler (fault_chain.hpp). One object per process.
  explicit HostStores(Checker& checker);
  ~HostStores();
  HostStores(const HostStores&) = delete;
  HostStores& operator=(const HostStores&) = delete;

  // Null without --check memory.
  static HostStores* of_process() noexcept { return instance.load(std::memory_order_acquire); }

  // The program's new allocation of device memory, which the host can access.
  void watch(GpuAddress begin, uint64_t bytes) noexcept;
  // Opens all its pages; call it before the memory is returned to ROCr.
  void unwatch(GpuAddress begin, uint64_t bytes) noexcept;

  // The host stores, or is about to store, to these bytes. Returns whether any of them are device
  // memory of the program.
  bool stored(uintptr_t address, size_t bytes) noexcept;

 private:
  static bool settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept;

  static std::atomic<HostStores*> instance;
  Checker& checker_;
};

}  // namespace uptempo::vgpu::memory_check
