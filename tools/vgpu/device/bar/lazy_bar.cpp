#include "device/bar/lazy_bar.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "device/bar/mov_instruction.hpp"
#include "device/fault_chain.hpp"
#include "device/host/interrupted_registers.hpp"
#include "device/host/page_changes.hpp"
#include "device/inject/injector.hpp"

namespace uptempo::vgpu {
namespace {

constexpr size_t kPageSize = 4096;
constexpr size_t kLineSize = 64;
constexpr int kReadWrite = PROT_READ | PROT_WRITE;
// HDP_MEM_FLUSH_CNTL is the first register of the page, HDP_REG_FLUSH_CNTL the second (Linux,
// kfd_ioctl.h, KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL).
constexpr uintptr_t kMemFlushBytes = 4;
constexpr greg_t kWriteFault = 2;  // of the page fault's error code
constexpr std::array<uint64_t, 4> kEarly{0, 256, 16, 2};

constexpr uint64_t kTrapBit = uint64_t{1} << (SIGTRAP - 1);

std::byte* page_of(std::byte* at) noexcept {
  return at - reinterpret_cast<uintptr_t>(at) % kPageSize;
}

void* map_shared(size_t bytes) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_DONTFORK);
  madvise(memory, bytes, MADV_DONTDUMP);
  return memory;
}

// Gives `at` a second mapping of the pages at `of`, atomically.
bool map_again(std::byte* of, std::byte* at, size_t bytes) noexcept {
  if (mremap(of, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) return false;
  madvise(at, bytes, MADV_DONTFORK);
  return true;
}

// Stores the bytes that `mask` selects. The device may load them at the same time, so the largest
// aligned pieces are stored at once.
[[gnu::no_sanitize_thread]] void store_bytes(std::byte* to, const std::byte* from,
                                             uint64_t mask) noexcept {
  for (size_t word = 0; word < kLineSize / 8; ++word) {
    const uint64_t bits = mask >> word * 8 & 0xff;
    std::byte* const at = to + word * 8;
    const std::byte* const data = from + word * 8;
    if (bits == 0xff) {
      uint64_t value;
      std::memcpy(&value, data, sizeof value);
      __atomic_store_n(reinterpret_cast<uint64_t*>(at), value, __ATOMIC_RELAXED);
      continue;
    }
    for (size_t half = 0; half < 2; ++half) {
      const uint64_t part = bits >> half * 4 & 0xf;
      if (part == 0xf) {
        uint32_t value;
        std::memcpy(&value, data + half * 4, sizeof value);
        __atomic_store_n(reinterpret_cast<uint32_t*>(at + half * 4), value, __ATOMIC_RELAXED);
        continue;
      }
      for (size_t byte = half * 4; byte < half * 4 + 4; ++byte)
        if ((bits >> byte & 1) != 0)
          __atomic_store_n(reinterpret_cast<uint8_t*>(at + byte), static_cast<uint8_t>(data[byte]),
                           __ATOMIC_RELAXED);
    }
  }
}

[[gnu::no_sanitize_thread]] void copy_line(std::byte* to, const std::byte* from) noexcept {
  for (size_t byte = 0; byte < kLineSize; ++byte)
    to[byte] = static_cast<std::byte>(
        __atomic_load_n(reinterpret_cast<const uint8_t*>(from + byte), __ATOMIC_RELAXED));
}

}  // namespace

std::atomic<LazyBar*> LazyBar::instance{nullptr};

struct LazyBar::Buffer {
  std::byte* const program;
  std::byte* const device;
  std::byte* const shadow;  // the pages that the program has mapped
  const size_t bytes;
  std::byte* const twins;  // the pages as they were opened
  bool passes_through = false;
  bool has_held_arguments = false;
  std::unique_ptr<uint16_t[]> users = std::make_unique<uint16_t[]>(bytes / kPageSize);

  Buffer(std::byte* program_view, std::byte* device_view, std::byte* own, std::byte* copies,
         size_t size)
      : program(program_view), device(device_view), shadow(own), bytes(size), twins(copies) {}
  ~Buffer() {
    munmap(shadow, bytes);
    munmap(twins, bytes);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
};

struct LazyBar::Line {
  std::byte* home;  // of the device
  uint64_t mask;    // 0: the device has seen the store, but not all stores before it
  alignas(8) std::array<std::byte, kLineSize> data;
};

namespace {

// A page that the thread's current instruction uses.
struct Step {
  uintptr_t address;  // of the fault
  bool write;
};
// One instruction touches at most four pages: two operands that cross a page each.
constexpr size_t kSteps = 4;
struct StepsOfThread {
  std::array<Step, kSteps> step{};
  size_t count = 0;
  bool unblocked = false;  // SIGTRAP, for the step
};
thread_local StepsOfThread steps;

}  // namespace

class LazyBar::Lock {
 public:
  explicit Lock(LazyBar& bar) noexcept : bar_(bar) {
    const uint64_t all = ~uint64_t{0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof all);
    while (bar_.lock_.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~Lock() {
    bar_.lock_.clear(std::memory_order_release);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  LazyBar& bar_;
  uint64_t before_ = 0;
};

LazyBar::LazyBar(uint64_t seed, Injector* injector)
    : lines_(std::make_unique<Line[]>(kPending)),
      random_(seed),
      injector_(injector),
      early_(kEarly[random() % kEarly.size()]) {
  instance.store(this, std::memory_order_release);
  install_fault_chain(FaultRank::lazy_bar, &settle, FaultSignals::with_traps);
}

LazyBar::~LazyBar() {
  LazyBar* self = this;
  instance.compare_exchange_strong(self, nullptr);
  const Lock lock(*this);
  drain_first(pending_);
  for (const auto& buffer : buffers_) map_again(buffer->device, buffer->program, buffer->bytes);
  if (registers_ != nullptr) mprotect(registers_, kPageSize, kReadWrite);
}

// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t LazyBar::random() noexcept {
  uint64_t z = random_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

LazyBar::Buffer* LazyBar::find(uintptr_t address) noexcept {
  for (const auto& buffer : buffers_) {
    const auto begin = reinterpret_cast<uintptr_t>(buffer->program);
    if (address >= begin && address - begin < buffer->bytes) return buffer.get();
  }
  return nullptr;
}

LazyBar::Buffer* LazyBar::find_device(const std::byte* at) noexcept {
  for (const auto& buffer : buffers_)
    if (at >= buffer->device && at < buffer->device + buffer->bytes) return buffer.get();
  return nullptr;
}

void LazyBar::note_arguments(const std::byte* device) noexcept {
  const Lock lock(*this);
  if (Buffer* const buffer = find_device(device); buffer != nullptr)
    buffer->has_held_arguments = true;
}

void LazyBar::acquire() noexcept {
  const Lock lock(*this);
  size_t kept = 0;
  for (size_t i = 0; i < pending_; ++i) {
    const Buffer* const buffer = find_device(lines_[i].home);
    if (buffer == nullptr || !buffer->has_held_arguments) show(lines_[i]);
    if (lines_[i].mask != 0 || kept != 0) lines_[kept++] = lines_[i];
  }
  pending_ = kept;
}

bool LazyBar::add(std::byte* program, std::byte* device, size_t bytes) {
  const Lock lock(*this);
  if (find(reinterpret_cast<uintptr_t>(program)) != nullptr) return true;
  auto* const shadow = static_cast<std::byte*>(map_shared(bytes));
  auto* const twins = static_cast<std::byte*>(map_shared(bytes));
  if (shadow != nullptr && twins != nullptr) {
    auto buffer = std::make_unique<Buffer>(program, device, shadow, twins, bytes);
    buffers_.reserve(buffers_.size() + 1);
    // A failure after this leaves the pages open: their content is the shadow's.
    if (map_again(shadow, program, bytes) && mprotect(program, bytes, PROT_NONE) == 0) {
      buffers_.push_back(std::move(buffer));
      return true;
    }
    map_again(device, program, bytes);
    return false;
  }
  if (shadow != nullptr) munmap(shadow, bytes);
  if (twins != nullptr) munmap(twins, bytes);
  return false;
}

void LazyBar::remove(const std::byte* program) {
  const Lock lock(*this);
  const auto found = std::ranges::find(buffers_, program, [](const auto& buffer) {
    return static_cast<const std::byte*>(buffer->program);
  });
  if (found == buffers_.end()) return;
  drain_first(pending_);
  buffers_.erase(found);
}

void LazyBar::pass_through(const std::byte* program) {
  const Lock lock(*this);
  Buffer* const buffer = find(reinterpret_cast<uintptr_t>(program));
  if (buffer == nullptr || buffer->passes_through) return;
  drain_first(pending_);
  // The device's own pages: it sees each store whole, and the host what the device stores.
  if (map_again(buffer->device, buffer->program, buffer->bytes) &&
      mprotect(buffer->program, buffer->bytes, PROT_NONE) == 0)
    buffer->passes_through = true;
}

void LazyBar::watch_registers(std::byte* page) {
  const Lock lock(*this);
  if (registers_ != nullptr) mprotect(registers_, kPageSize, kReadWrite);
  registers_ = page;
  register_users_ = 0;
  if (page != nullptr) mprotect(page, kPageSize, PROT_NONE);
}

bool LazyBar::open(Buffer& buffer, size_t page) noexcept {
  if (buffer.users[page]++ != 0) return true;
  const size_t at = page * kPageSize;
  if (!buffer.passes_through) {
    std::byte* const home = buffer.device + at;
    std::byte* const shadow = buffer.shadow + at;
    copy_page(shadow, home);
    for (const Line& line : std::span(lines_.get(), pending_))
      if (page_of(line.home) == home)
        store_bytes(shadow + (line.home - home), line.data.data(), line.mask);
    copy_page(buffer.twins + at, shadow);
  }
  if (mprotect(buffer.program + at, kPageSize, kReadWrite) == 0) return true;
  --buffer.users[page];
  return false;
}

void LazyBar::close(Buffer& buffer, size_t page, uintptr_t stored_at) noexcept {
  const size_t at = page * kPageSize;
  std::byte* const shadow = buffer.shadow + at;
  if (--buffer.users[page] == 0) mprotect(buffer.program + at, kPageSize, PROT_NONE);
  if (buffer.passes_through) return;
  // A snapshot, because another thread's instruction may store to the page at this moment. What it
  // stores after the snapshot is found when that instruction ends.
  copy_page(snapshot_.data(), shadow);
  PageMask changes;
  find_changes(snapshot_.data(), buffer.twins + at, changes);
  // A store of the present value is a store, too.
  if (stored_at != 0)
    changes[stored_at % kPageSize / kLineSize] |= uint64_t{1} << stored_at % kLineSize;
  for (size_t line = 0; line < changes.size(); ++line) {
    if (changes[line] == 0) continue;
    std::byte* const home = buffer.device + at + line * kLineSize;
    store(home, snapshot_.data() + line * kLineSize, changes[line]);
  }
  copy_page(buffer.twins + at, snapshot_.data());
}

void LazyBar::store(std::byte* device_line, const std::byte* data, uint64_t mask) noexcept {
  if (pending_ == kPending) drain_first(kPending / 2);
  Line& line = lines_[pending_++];
  line.home = device_line;
  line.mask = mask;
  copy_line(line.data.data(), data);
  if (early_ != 0 && random() % early_ == 0) drain_line(lines_[random() % pending_].home);
}

void LazyBar::show(Line& line) noexcept {
  store_bytes(line.home, line.data.data(), line.mask);
  line.mask = 0;
}

void LazyBar::drain_first(size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) show(lines_[i]);
  std::copy(lines_.get() + count, lines_.get() + pending_, lines_.get());
  pending_ -= count;
}

void LazyBar::drain_line(const std::byte* device_line) noexcept {
  size_t kept = 0;
  for (size_t i = 0; i < pending_; ++i) {
    if (lines_[i].home == device_line) show(lines_[i]);
    if (lines_[i].mask != 0 || kept != 0) lines_[kept++] = lines_[i];
  }
  pending_ = kept;
}

void LazyBar::read_back(const std::byte* device_line) noexcept {
  for (size_t i = pending_; i-- > 0;) {
    if (lines_[i].home != device_line) continue;
    if (!is_lost()) drain_first(i + 1);
    return;
  }
}

void LazyBar::flush() noexcept {
  hdp_flushes_.fetch_add(1, std::memory_order_relaxed);
  if (!is_lost()) drain_first(pending_);
}

bool LazyBar::is_lost() noexcept { return injector_ != nullptr && injector_->hdp(); }

// Executes the access here, so that the page stays closed: another thread's flush at that moment
// must not pass unseen. Returns false for an instruction that it does not know.
bool LazyBar::access_registers(uintptr_t offset, ucontext_t& context) noexcept {
  auto& registers = context.uc_mcontext.gregs;
  const auto mov = decode_mov(reinterpret_cast<const uint8_t*>(registers[REG_RIP]));
  if (!mov) return false;
  registers[REG_RIP] += mov->length_bytes;
  if (mov->stores) {
    if (offset < kMemFlushBytes) flush();
  } else {
    registers[kRegisters[*mov->reg]] = 0;  // as the hardware's registers read after the flush
  }
  return true;
}

bool LazyBar::fault(uintptr_t address, bool write, ucontext_t& context) noexcept {
  const Lock lock(*this);
  if (registers_ != nullptr && address - reinterpret_cast<uintptr_t>(registers_) < kPageSize) {
    if (access_registers(address - reinterpret_cast<uintptr_t>(registers_), context)) return true;
    if (steps.count == kSteps) return false;
    if (register_users_++ == 0) mprotect(registers_, kPageSize, kReadWrite);
  } else {
    Buffer* const buffer = find(address);
    if (buffer == nullptr || steps.count == kSteps) return false;
    const size_t offset = address - reinterpret_cast<uintptr_t>(buffer->program);
    if (!write) {
      host_reads_.fetch_add(1, std::memory_order_relaxed);
      read_back(buffer->device + offset / kLineSize * kLineSize);
    }
    if (!open(*buffer, offset / kPageSize)) return false;
  }
  steps.step[steps.count++] = {address, write};
  context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
  // The kernel ends a process whose trap is blocked.
  if ((mask_of(context) & kTrapBit) != 0) {
    mask_of(context) &= ~kTrapBit;
    steps.unblocked = true;
  }
  return true;
}

bool LazyBar::finish_steps(ucontext_t& context) noexcept {
  context.uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  if (steps.unblocked) mask_of(context) |= kTrapBit;
  steps.unblocked = false;
  const Lock lock(*this);
  for (const Step& step : std::span(steps.step.data(), steps.count)) {
    const uintptr_t in_registers = step.address - reinterpret_cast<uintptr_t>(registers_);
    if (registers_ != nullptr && in_registers < kPageSize) {
      if (--register_users_ == 0) mprotect(registers_, kPageSize, PROT_NONE);
      if (step.write && in_registers < kMemFlushBytes) flush();
    } else if (Buffer* const buffer = find(step.address); buffer != nullptr) {
      close(*buffer, (step.address - reinterpret_cast<uintptr_t>(buffer->program)) / kPageSize,
            step.write ? step.address : 0);
    }
  }
  steps.count = 0;
  return true;
}

bool LazyBar::settle(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept {
  LazyBar* const bar = of_process();
  if (bar == nullptr) return false;
  // A thread with open pages executes one instruction, so the trap is its end, whatever si_code is.
  if (signal_number == SIGTRAP) return steps.count != 0 && bar->finish_steps(context);
  if (signal_number != SIGSEGV) return false;
  return bar->fault(reinterpret_cast<uintptr_t>(info.si_addr),
                    (context.uc_mcontext.gregs[REG_ERR] & kWriteFault) != 0, context);
}

bool LazyBar::hold(uintptr_t address, size_t bytes) noexcept {
  bool any = false, lost = false;
  const Lock lock(*this);
  for (uintptr_t at = address - address % kPageSize; at < address + bytes; at += kPageSize) {
    Buffer* const buffer = find(at);
    if (buffer == nullptr) continue;
    const size_t page = (at - reinterpret_cast<uintptr_t>(buffer->program)) / kPageSize;
    if (pending_ != 0 && !lost) {
      lost = is_lost();  // the call's loads read back
      if (!lost) drain_first(pending_);
    }
    any = open(*buffer, page) || any;
  }
  if (any) host_reads_.fetch_add(1, std::memory_order_relaxed);
  return any;
}

void LazyBar::release(uintptr_t address, size_t bytes) noexcept {
  const Lock lock(*this);
  for (uintptr_t at = address - address % kPageSize; at < address + bytes; at += kPageSize) {
    Buffer* const buffer = find(at);
    if (buffer == nullptr) continue;
    const size_t page = (at - reinterpret_cast<uintptr_t>(buffer->program)) / kPageSize;
    if (buffer->users[page] != 0) close(*buffer, page, 0);
  }
}

}  // namespace uptempo::vgpu
