#include "device/memory_check/host_stores.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "device/fault_chain.hpp"

namespace uptempo::vgpu::memory_check {
namespace {

constexpr greg_t kStoreFault = 2;  // the page fault's error code: the access was a store

// The raw call, since the program may interpose mprotect().
bool protect(GpuAddress begin, uint64_t bytes, int protection) noexcept {
  const int saved = errno;
  const bool done = syscall(SYS_mprotect, begin, bytes, protection) == 0;
  errno = saved;
  return done;
}

uint64_t pages_of(uint64_t bytes) noexcept {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

constinit std::atomic<HostStores*> HostStores::instance{nullptr};

HostStores::HostStores(Checker& checker) : checker_(checker) {
  instance.store(this, std::memory_order_release);
  install_fault_chain(FaultRank::memory_check, &settle);
}

HostStores::~HostStores() { instance.store(nullptr, std::memory_order_release); }

void HostStores::watch(GpuAddress begin, uint64_t bytes) noexcept {
  if (protect(begin, pages_of(bytes), PROT_READ)) return;
  // Stores will not be noticed.
  if (Allocation* const allocation = checker_.find(begin)) mark(*allocation, begin, bytes);
}

void HostStores::unwatch(GpuAddress begin, uint64_t bytes) noexcept {
  protect(begin, pages_of(bytes), PROT_READ | PROT_WRITE);
  // From now on, faults there are the program's: it may map something else at the address.
  if (Allocation* const allocation = checker_.find(begin))
    allocation->watched.store(false, std::memory_order_relaxed);
}

bool HostStores::stored(uintptr_t address, size_t bytes) noexcept {
  bool any = false;
  for (uintptr_t page = address - address % kPageBytes; page < address + bytes;
       page += kPageBytes) {
    Allocation* const allocation = checker_.find(page);
    if (allocation == nullptr || allocation->kind != Allocation::Kind::program ||
        !allocation->watched.load(std::memory_order_relaxed))
      continue;
    const GpuAddress begin = allocation->begin.load(std::memory_order_relaxed);
    const GpuAddress end = allocation->end();
    if (page < begin || page >= end) continue;
    mark(*allocation, page, std::min<uint64_t>(kPageBytes, end - page));
    if (protect(page, kPageBytes, PROT_READ | PROT_WRITE)) {
      any = true;
      continue;
    }
    mark(*allocation, begin, end - begin);
    any = protect(begin, pages_of(end - begin), PROT_READ | PROT_WRITE) || any;
    allocation->watched.store(false, std::memory_order_relaxed);
  }
  return any;
}

bool HostStores::settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept {
  HostStores* const stores = of_process();
  if (stores == nullptr || signal_number != SIGSEGV || info.si_code != SEGV_ACCERR ||
      (context.uc_mcontext.gregs[REG_ERR] & kStoreFault) == 0)
    return false;
  return stores->stored(reinterpret_cast<uintptr_t>(info.si_addr), 1);
}

}  // namespace uptempo::vgpu::memory_check
