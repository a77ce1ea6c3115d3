#include "test/support/single_step.hpp"

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

namespace uptempo::test {
namespace {

constexpr uint64_t kMostSteps = 10'000'000;
constexpr uint8_t kBreakpoint = 0xcc;  // INT3

// Keeps this thread, and children that it then makes, on its present processor: a step is two
// switches between parent and child, which cost a third there of what they cost across two.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_{};
};

class Child {
 public:
  explicit Child(const std::function<void()>& run) : pid_(fork()) {
    if (pid_ < 0) fail("fork");
    if (pid_ != 0) return;
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    __asm__ volatile("int3" ::: "memory");
    run();
    __asm__ volatile("int3" ::: "memory");
    _exit(0);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns the signal that stopped the child.
  int await_stop() {
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) fail("waitpid");
    if (WIFSTOPPED(status)) return WSTOPSIG(status);
    throw std::runtime_error("single_step: the child ended early; is tracing permitted?");
  }
  void step(int signal_number) {
    if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal_number) != 0) fail("PTRACE_SINGLESTEP");
  }
  user_regs_struct registers() {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, pid_, nullptr, &registers) != 0) fail("PTRACE_GETREGS");
    return registers;
  }
  void read(const void* from, void* to, size_t bytes) {
    const iovec local{to, bytes}, remote{const_cast<void*>(from), bytes};
    if (process_vm_readv(pid_, &local, 1, &remote, 1, 0) < 0) fail("process_vm_readv");
  }
  void write(void* to, const void* from, size_t bytes) {
    const iovec local{const_cast<void*>(from), bytes}, remote{to, bytes};
    if (process_vm_writev(pid_, &local, 1, &remote, 1, 0) < 0) fail("process_vm_writev");
  }

 private:
  [[noreturn]] static void fail(const char* call) {
    throw std::system_error(errno, std::generic_category(), call);
  }
  pid_t pid_;
};

uint64_t value_of(const user_regs_struct& registers, unsigned number) {
  const std::array<uint64_t, 16> values{registers.rax, registers.rcx, registers.rdx, registers.rbx,
                                        registers.rsp, registers.rbp, registers.rsi, registers.rdi,
                                        registers.r8,  registers.r9,  registers.r10, registers.r11,
                                        registers.r12, registers.r13, registers.r14, registers.r15};
  return values[number];
}

// The address that the instruction loads from, if it is MOV (8A, 8B) or MOVZX (0F B6, 0F B7) from
// memory.
std::optional<uint64_t> loaded_address(const uint8_t* code, const user_regs_struct& registers) {
  const uint8_t* at = code;
  uint8_t rex = 0;
  if ((*at & 0xf0) == 0x40) rex = *at++;
  if (*at == 0x0f) {
    ++at;
    if (*at != 0xb6 && *at != 0xb7) return {};
  } else if (*at != 0x8a && *at != 0x8b) {
    return {};
  }
  ++at;
  const uint8_t modrm = *at++;
  const unsigned mode = modrm >> 6, base = modrm & 7u;
  if (mode == 3) return {};
  uint64_t address = 0;
  bool has_base = true;
  unsigned base_register = base | (rex & 1u) << 3;
  if (base == 4) {
    const uint8_t sib = *at++;
    const unsigned index = (sib >> 3 & 7u) | (rex & 2u) << 2;
    if (index != 4) address += value_of(registers, index) << (sib >> 6);
    base_register = (sib & 7u) | (rex & 1u) << 3;
    has_base = mode != 0 || (sib & 7u) != 5;
  } else if (mode == 0 && base == 5) {
    int32_t displacement;
    std::memcpy(&displacement, at, sizeof displacement);
    return registers.rip + static_cast<uint64_t>(at + 4 - code) +
           static_cast<uint64_t>(int64_t{displacement});
  }
  if (has_base) address += value_of(registers, base_register);
  if (mode == 1) {
    address += static_cast<uint64_t>(int64_t{static_cast<int8_t>(*at)});
  } else if (mode == 2 || !has_base) {
    int32_t displacement;
    std::memcpy(&displacement, at, sizeof displacement);
    address += static_cast<uint64_t>(int64_t{displacement});
  }
  return address;
}

std::optional<Kind> fence_of(const uint8_t* code) {
  if (code[0] != 0x0f || code[1] != 0xae) return {};
  if (code[2] == 0xf8) return Kind::fence;
  if (code[2] == 0xf0) return Kind::full_fence;
  return {};
}

struct Copy {
  const Watched& watched;
  std::vector<std::byte> before, now;
};

void note_stores(Copy& copy, uint64_t number, std::vector<Step>& all) {
  if (copy.before == copy.now) return;
  if (copy.watched.place != Place::ring) {
    all.push_back({.number = number, .kind = Kind::store, .place = copy.watched.place});
  } else {
    for (size_t at = 0; at < copy.now.size(); at += 64) {
      const auto differs = [&](size_t begin, size_t end) {
        return std::memcmp(&copy.before[at + begin], &copy.now[at + begin], end - begin) != 0;
      };
      if (differs(4, 64))
        all.push_back(
            {.number = number, .kind = Kind::store, .place = Place::ring_body, .slot = at / 64});
      if (differs(0, 4))
        all.push_back(
            {.number = number, .kind = Kind::store, .place = Place::ring_header, .slot = at / 64});
    }
  }
  copy.before = copy.now;
}

}  // namespace

size_t Steps::count(Kind kind, Place place) const {
  return static_cast<size_t>(std::ranges::count_if(
      all, [&](const Step& step) { return step.kind == kind && step.place == place; }));
}

uint64_t Steps::first(Kind kind, Place place, size_t slot) const {
  const auto found = std::ranges::find_if(all, [&](const Step& step) {
    return step.kind == kind && step.place == place && (slot == SIZE_MAX || step.slot == slot);
  });
  return found == all.end() ? kNever : found->number;
}

uint64_t Steps::last(Kind kind, Place place) const {
  uint64_t number = kNever;
  for (const Step& step : all)
    if (step.kind == kind && step.place == place) number = step.number;
  return number;
}

bool Steps::has_fence(uint64_t after, uint64_t before) const {
  return has_full_fence(after, before) || std::ranges::any_of(all, [&](const Step& step) {
           return step.kind == Kind::fence && step.number > after && step.number < before;
         });
}

bool Steps::has_full_fence(uint64_t after, uint64_t before) const {
  return std::ranges::any_of(all, [&](const Step& step) {
    return step.kind == Kind::full_fence && step.number > after && step.number < before;
  });
}

Steps single_step(const std::vector<Watched>& watched, const std::function<void()>& run) {
  std::vector<Copy> copies;
  for (const Watched& each : watched) {
    const auto* const begin = static_cast<const std::byte*>(each.begin);
    copies.push_back({each, {begin, begin + each.bytes}, std::vector<std::byte>(each.bytes)});
  }
  const auto place_at = [&](uint64_t address) -> std::optional<Place> {
    for (const Watched& each : watched)
      if (address - reinterpret_cast<uint64_t>(each.begin) < each.bytes) return each.place;
    return {};
  };
  const OneProcessor one;
  Child child(run);
  int signal_number = child.await_stop();
  if (signal_number != SIGTRAP) throw std::runtime_error("single_step: no first breakpoint");
  signal_number = 0;
  Steps steps;
  for (uint64_t number = 1; number < kMostSteps; ++number) {
    const user_regs_struct registers = child.registers();
    std::array<uint8_t, 16> code{};
    child.read(reinterpret_cast<const void*>(registers.rip), code.data(), code.size());
    if (code[0] == kBreakpoint) return steps;
    if (const auto fence = fence_of(code.data()))
      steps.all.push_back({.number = number, .kind = *fence});
    if (const auto address = loaded_address(code.data(), registers)) {
      const auto place = place_at(*address);
      if (place == Place::hdp || place == Place::line)
        steps.all.push_back({.number = number, .kind = Kind::load, .place = *place});
    }
    child.step(signal_number);
    signal_number = child.await_stop();
    if (signal_number == SIGTRAP) signal_number = 0;
    for (Copy& copy : copies) {
      child.read(copy.watched.begin, copy.now.data(), copy.now.size());
      const bool stored = copy.before != copy.now;
      note_stores(copy, number, steps.all);
      if (!stored || copy.watched.place != Place::hdp) continue;
      std::ranges::fill(copy.before, std::byte{0});
      child.write(const_cast<void*>(copy.watched.begin), copy.before.data(), copy.before.size());
    }
  }
  throw std::runtime_error("single_step: no second breakpoint");
}

}  // namespace uptempo::test
