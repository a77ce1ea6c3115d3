#include "cp/lost_memory.hpp"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "cp/device_thread.hpp"
#include "cp/doorbell/doorbell_watch.hpp"
#include "device/fault_chain.hpp"
#include "device/host/page_changes.hpp"
#include "device/options.hpp"

namespace uptempo::vgpu {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr uintptr_t kNeverRegistered = 64 * 1024;  // below: an error of the device itself

enum class Loss : uint64_t { none, unmapped, is_protected, truncated };

// Address, kind of access and cause of the loss, in one word that a handler can store. 0: nothing.
// One for each GPU.
std::array<std::atomic<uint64_t>, Options::kMostGpus> lost{};

constexpr uint64_t encode(uintptr_t address, bool write, Loss loss) {
  return uint64_t{address} << 3 | (write ? 4u : 0u) | static_cast<uint64_t>(loss);
}

bool put_zeros(void* page, int placement) noexcept {
  return mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | placement, -1,
              0) == page ||
         errno == EEXIST;  // another device thread was faster
}

// For a page of a read-only file.
bool put_private_copy(void* page) noexcept {
  if (mprotect(page, kPage, PROT_READ) != 0) return false;
  void* const copy =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  copy_page(static_cast<std::byte*>(copy), static_cast<const std::byte*>(page));
  return mremap(copy, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page;
}

Loss let_through(int signal_number, int code, void* page) noexcept {
  if (signal_number == SIGSEGV && code == SEGV_MAPERR)
    return put_zeros(page, MAP_FIXED_NOREPLACE) ? Loss::unmapped : Loss::none;
  if (signal_number == SIGSEGV && code == SEGV_ACCERR)
    return mprotect(page, kPage, PROT_READ | PROT_WRITE) == 0 || put_private_copy(page)
               ? Loss::is_protected
               : Loss::none;
  if (signal_number == SIGBUS && code == BUS_ADRERR)
    return put_zeros(page, MAP_FIXED) ? Loss::truncated : Loss::none;
  return Loss::none;
}

bool settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept {
  if (!on_device_thread()) return false;
  const auto address = reinterpret_cast<uintptr_t>(info.si_addr);
  if (address < kNeverRegistered) return false;
  const Loss loss =
      let_through(signal_number, info.si_code, reinterpret_cast<void*>(address / kPage * kPage));
  if (loss == Loss::none) return false;
  const bool write = (context.uc_mcontext.gregs[REG_ERR] & 2) != 0;  // page fault error code, bit 1
  uint64_t nothing = 0;
  lost[gpu_of_thread()].compare_exchange_strong(
      nothing, encode(address, write, loss), std::memory_order_release, std::memory_order_relaxed);
  DoorbellWatch::wake_all();
  return true;
}

const char* description(Loss loss) {
  switch (loss) {
    case Loss::is_protected:
      return "host memory that the program has protected while it was registered for the GPU";
    case Loss::truncated:
      return "host memory whose file the program has truncated while it was registered for the GPU";
    case Loss::unmapped:
    case Loss::none:
      break;
  }
  return "host memory that the program has unmapped while it was registered for the GPU";
}

}  // namespace

void catch_lost_host_memory() noexcept { install_fault_chain(FaultRank::lost_memory, &settle); }

bool host_memory_was_lost(uint32_t gpu) noexcept {
  return lost[gpu].load(std::memory_order_relaxed) != 0;
}

std::optional<MemoryFault> take_lost_host_memory(uint32_t gpu) {
  if (!host_memory_was_lost(gpu)) return std::nullopt;
  const uint64_t word = lost[gpu].exchange(0, std::memory_order_acquire);
  const auto loss = static_cast<Loss>(word & 3);
  MemoryFault fault;
  fault.address = word >> 3;
  fault.access = (word & 4) != 0 ? Access::write : Access::read;
  fault.present = loss == Loss::is_protected;
  fault.where = description(loss);
  return fault;
}

}  // namespace uptempo::vgpu
