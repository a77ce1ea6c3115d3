#include "device/memory_check/host_stores.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "device/fault_chain.hpp"

namespace uptempo::vgpu::memory_check {
namespace {

constexpr greg_t kStoreFault = 2;  // the page fault's error code: the access was a store
constexpr uint64_t kLinuxDefault = 65530;

// Raw calls, since the program and this library may interpose the functions.
bool protect(GpuAddress begin, uint64_t bytes, int protection) noexcept {
  const int saved = errno;
  const bool done = syscall(SYS_mprotect, begin, bytes, protection) == 0;
  errno = saved;
  return done;
}

uint64_t pages_of(uint64_t bytes) noexcept {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

GpuAddress begin_of_pages(const Allocation& allocation) noexcept {
  return allocation.begin.load(std::memory_order_relaxed);
}

bool is_watched(const Allocation* allocation) noexcept {
  return allocation != nullptr && allocation->kind == Allocation::Kind::program &&
         allocation->watched.load(std::memory_order_relaxed);
}

bool is_closed(const Allocation* allocation) noexcept {
  return is_watched(allocation) && !allocation->open.load(std::memory_order_relaxed);
}

// Calls visit(begin, end) for each mapping of the process, until it returns true. Returns false if
// they cannot be read. Async-signal-safe.
template <typename Visit>
bool for_mappings(Visit visit) noexcept {
  const int saved = errno;
  const auto file =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0));
  bool read_all = file >= 0, found = false;
  // A line begins with "7f0000000000-7f0000001000 ".
  uint64_t numbers[2] = {0, 0};
  int field = 0;
  char text[2048];
  while (read_all && !found) {
    const long size = syscall(SYS_read, file, text, sizeof text);
    read_all = size >= 0;
    if (size <= 0) break;
    for (long i = 0; i < size && !found; ++i) {
      const char letter = text[i];
      if (letter == '\n') {
        found = visit(numbers[0], numbers[1]);
        numbers[0] = numbers[1] = 0;
        field = 0;
      } else if (field < 2 && (letter == '-' || letter == ' ')) {
        ++field;
      } else if (field < 2) {
        const int digit = letter <= '9' ? letter - '0' : letter - 'a' + 10;
        numbers[field] = numbers[field] << 4 | static_cast<uint64_t>(digit);
      }
    }
  }
  if (file >= 0) syscall(SYS_close, file);
  errno = saved;
  return read_all;
}

uint64_t default_limit() {
  uint64_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  return (most == 0 ? kLinuxDefault : most) / 4 * 3;
}

}  // namespace

constinit std::atomic<HostStores*> HostStores::instance{nullptr};

HostStores::HostStores(Checker& checker, uint64_t most_mappings)
    : checker_(checker), most_mappings_(most_mappings == 0 ? default_limit() : most_mappings) {
  instance.store(this, std::memory_order_release);
  install_fault_chain(FaultRank::memory_check, &settle);
}

HostStores::~HostStores() { instance.store(nullptr, std::memory_order_release); }

int64_t HostStores::count_splits() const noexcept {
  uint64_t mappings = 0;
  const bool counted = for_mappings([&](uint64_t, uint64_t) { return ++mappings, false; });
  if (!counted) return kRefusals;  // mprotect() refuses what is too much
  // A change of protection inside a mapping makes it three.
  const int64_t left =
      mappings < most_mappings_ ? static_cast<int64_t>(most_mappings_ - mappings) / 2 : 0;
  return left > 0 ? left : -kRefusals;
}

bool HostStores::may_split() noexcept {
  int64_t left = splits_.load(std::memory_order_relaxed);
  do {
    if (left != 0) continue;
    const int64_t counted = count_splits();
    if (splits_.compare_exchange_strong(left, counted, std::memory_order_relaxed)) left = counted;
  } while (left == 0 || !splits_.compare_exchange_weak(left, left > 0 ? left - 1 : left + 1,
                                                       std::memory_order_relaxed));
  return left > 0;
}

// Stores will not be noticed.
void HostStores::give_up(Allocation& allocation) noexcept {
  if (allocation.open.exchange(true, std::memory_order_relaxed)) return;
  const uint64_t accessible = allocation.accessible.load(std::memory_order_relaxed);
  if (accessible == 0) return;  // freed
  mark(allocation, begin_of_pages(allocation), accessible);
  unobserved_.fetch_add(1, std::memory_order_relaxed);
}

void HostStores::watch(GpuAddress begin) noexcept {
  Allocation* const allocation = checker_.find(begin);
  if (allocation == nullptr) return;
  if (may_split() && protect(begin, allocation->reserved_bytes, PROT_READ)) return;
  protect(begin, allocation->reserved_bytes, PROT_READ | PROT_WRITE);
  give_up(*allocation);
}

void HostStores::unwatch(GpuAddress begin) noexcept {
  Allocation* const allocation = checker_.find(begin);
  if (!is_watched(allocation)) return;
  if (is_closed(allocation)) open(*allocation, begin, begin + allocation->reserved_bytes);
  // From now on, faults there are the program's: it may map something else at the address.
  allocation->watched.store(false, std::memory_order_relaxed);
}

// Opens these pages of the allocation, which is watched.
bool HostStores::open(Allocation& allocation, GpuAddress begin, GpuAddress end) noexcept {
  if (may_split() && protect(begin, end - begin, PROT_READ | PROT_WRITE)) return true;
  // With all closed memory before it, no further mapping is necessary.
  give_up(allocation);
  GpuAddress first = begin_of_pages(allocation);
  const GpuAddress last = first + allocation.reserved_bytes;
  for (Allocation* before = checker_.find(first - kPageBytes);
       is_closed(before) && begin_of_pages(*before) + before->reserved_bytes == first;
       before = checker_.find(first - kPageBytes)) {
    give_up(*before);
    first = begin_of_pages(*before);
  }
  return protect(first, last - first, PROT_READ | PROT_WRITE) || open_mapping(begin);
}

// Opens the whole mapping, which always works.
bool HostStores::open_mapping(GpuAddress address) noexcept {
  GpuAddress first = 0, last = 0;
  for_mappings([&](uint64_t begin, uint64_t end) {
    if (address < begin || address >= end) return false;
    first = begin;
    last = end;
    return true;
  });
  if (first == last || !protect(first, last - first, PROT_READ | PROT_WRITE)) return false;
  for (GpuAddress page = first; page < last; page += kPageBytes)
    if (Allocation* const allocation = checker_.find(page); is_closed(allocation))
      give_up(*allocation);
  return true;
}

bool HostStores::stored(uintptr_t address, size_t bytes) noexcept {
  bool any = false;
  for (uintptr_t page = address - address % kPageBytes; page < address + bytes;
       page += kPageBytes) {
    Allocation* const allocation = checker_.find(page);
    if (!is_watched(allocation)) continue;
    const GpuAddress begin = begin_of_pages(*allocation), end = allocation->end();
    const GpuAddress redzone = begin + pages_of(end - begin);
    const GpuAddress last = begin + allocation->reserved_bytes;
    if (page < begin || page >= last) continue;
    if (page < end) mark(*allocation, page, std::min<uint64_t>(kPageBytes, end - page));
    // The redzone with the last page, so that they do not part the mappings of their neighbours.
    const GpuAddress open_end = page + kPageBytes >= redzone ? last : page + kPageBytes;
    // Another thread may have opened them since the fault.
    any = open(*allocation, page, open_end) || any;
    if (page == begin && open_end == last) allocation->open.store(true, std::memory_order_relaxed);
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
