// Pages with signals: each look is noticed, whatever the instruction, and no instruction behaves
// otherwise than on an open page.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "device/fault_chain.hpp"
#include "device/waits/redirectable_access.hpp"
#include "test/support/catch.hpp"
#include "watched_pages.hpp"

namespace uptempo::vgpu::test {
namespace {

constexpr uint64_t kValue = 8;  // offset of a signal's value
constexpr size_t kSignal = 64;

uint64_t& word(const Watched& watched, size_t offset) {
  return *reinterpret_cast<uint64_t*>(watched.memory.program + offset);
}
std::vector<GpuAddress> looked(Watched& watched) {
  std::vector<GpuAddress> signals;
  for (const HostEvent& event : watched.events()) {
    CHECK(event.kind == HostEvent::Kind::looked);
    signals.push_back(event.address - kGpu);
  }
  return signals;
}
using Looks = std::vector<GpuAddress>;

TEST_CASE("a load of the completed signal is one look, and opens the page") {
  Watched watched;
  REQUIRE(watched.host.watch_signal(kGpu + kSignal));
  CHECK(load(watched.memory.program + kSignal + kValue) == 0);
  CHECK(load(watched.memory.program + kSignal + kValue) == 0);
  CHECK(looked(watched) == Looks{kSignal});
}

TEST_CASE("accesses to neighbours, other fields and stores are no look") {
  Watched watched;
  REQUIRE(watched.host.watch_signal(kGpu + kSignal));
  load(watched.memory.program + 2 * kSignal + kValue);
  load(watched.memory.program + kSignal);       // the kind
  load(watched.memory.program + kSignal + 16);  // the mailbox
  *const_cast<volatile uint64_t*>(&word(watched, kSignal + kValue)) = 7;
  CHECK(looked(watched).empty());
  CHECK(word(watched, kSignal + kValue) == 7);
  CHECK(looked(watched) == Looks{kSignal});
}

TEST_CASE("each completed signal in a page needs a look of its own") {
  Watched watched;
  for (const size_t signal : {kSignal, 3 * kSignal})
    REQUIRE(watched.host.watch_signal(kGpu + signal));
  load(watched.memory.program + 3 * kSignal + kValue);
  CHECK(looked(watched) == Looks{3 * kSignal});
  load(watched.memory.program + kSignal + kValue);
  CHECK(looked(watched) == Looks{kSignal});
  REQUIRE(watched.host.watch_signal(kGpu + kSignal));
  load(watched.memory.program + kSignal + kValue);
  CHECK(looked(watched) == Looks{kSignal});
}

TEST_CASE("a system call on the page looks at all of its signals") {
  Watched watched;
  for (const size_t signal : {kSignal, 3 * kSignal})
    REQUIRE(watched.host.watch_signal(kGpu + signal));
  { const HostAccess access(watched.memory.program, 8, false); }
  CHECK(looked(watched) == Looks{kSignal, 3 * kSignal});
  CHECK(watched.host.waits.pages == 1);
}

TEST_CASE("a full queue of events is reported, and nothing is watched any more") {
  Watched watched(4, 2);
  for (const size_t page : {0u, 1u, 2u})
    REQUIRE(watched.host.watch_signal(kGpu + page * kPage + kSignal));
  for (const size_t page : {1u, 2u}) load(watched.memory.program + page * kPage + kSignal + kValue);
  CHECK_FALSE(watched.host.misses_looks());
  load(watched.memory.program + kSignal + kValue);
  CHECK(watched.host.misses_looks());
  CHECK_FALSE(watched.host.watch_signal(kGpu + kSignal));
}

// Instructions on the value of a signal. Each is executed on a page that a neighbour keeps closed,
// and on plain memory; memory, registers and flags must be equal.
struct Result {
  uint64_t memory, base_moved, rax, rcx, flags;
  bool operator==(const Result&) const = default;
};
using Execute = std::function<Result(uint64_t*)>;

// RBX is the base, RAX and RCX are operands.
#define EXECUTE(text)                                                                  \
  [](uint64_t* at) -> Result {                                                         \
    Result result{0, reinterpret_cast<uint64_t>(at), 0x1122334455667788, 5, 0};        \
    uint64_t base = result.base_moved;                                                 \
    asm volatile("lea -128(%%rsp), %%rsp\n\txor %%edx, %%edx\n\t" text                 \
                 "\n\tpushfq\n\tpop %%rdx\n\tlea 128(%%rsp), %%rsp"                    \
                 : "+b"(base), "+a"(result.rax), "+c"(result.rcx), "=&d"(result.flags) \
                 :                                                                     \
                 : "memory", "cc", "xmm0");                                            \
    result.base_moved = base == result.base_moved ? 0 : base;                          \
    result.memory = *at;                                                               \
    return result;                                                                     \
  }

TEST_CASE("instructions on a closed page have their usual results") {
  const std::pair<const char*, Execute> instructions[] = {
      {"mov load", EXECUTE("movq (%%rbx), %%rax")},
      {"mov load of the base", EXECUTE("movq (%%rbx), %%rbx")},
      {"mov load of 32 bits of the base", EXECUTE("movl (%%rbx), %%ebx")},
      {"mov load of 16 bits of the base", EXECUTE("movw (%%rbx), %%bx")},
      {"mov load of 8 bits", EXECUTE("movb (%%rbx), %%ah")},
      {"mov store", EXECUTE("movq %%rax, (%%rbx)")},
      {"mov store of the base's low byte", EXECUTE("movb %%bl, (%%rbx)")},
      {"mov of a constant", EXECUTE("movq $77, (%%rbx)")},
      {"movzx", EXECUTE("movzbl (%%rbx), %%ecx")},
      {"movsxd", EXECUTE("movslq (%%rbx), %%rbx")},
      {"cmp", EXECUTE("cmpq %%rcx, (%%rbx)")},
      {"cmp with the base", EXECUTE("xor %%rax, %%rax\n\tcmpq $0, (%%rbx)")},
      {"add", EXECUTE("lock addq %%rcx, (%%rbx)")},
      {"sub to a register", EXECUTE("subq (%%rbx), %%rcx")},
      {"inc", EXECUTE("incl (%%rbx)")},
      {"dec", EXECUTE("lock decq (%%rbx)")},
      {"test", EXECUTE("testq %%rcx, (%%rbx)")},
      {"xchg", EXECUTE("xchgq %%rcx, (%%rbx)")},
      {"xadd", EXECUTE("lock xaddq %%rcx, (%%rbx)")},
      {"cmpxchg", EXECUTE("lock cmpxchgq %%rcx, (%%rbx)")},
      {"movnti", EXECUTE("movnti %%rcx, (%%rbx)")},
      {"movq of SSE", EXECUTE("movq (%%rbx), %%xmm0\n\tmovq %%xmm0, %%rcx")},
      {"movq store of SSE", EXECUTE("movq %%rcx, %%xmm0\n\tmovq %%xmm0, (%%rbx)")},
      {"index", EXECUTE("xor %%eax, %%eax\n\tmovq (%%rbx,%%rax,8), %%rcx")},
      {"displacement", EXECUTE("movq 0x10(%%rbx), %%rcx")},
      {"bts, which is not known", EXECUTE("btsq $3, (%%rbx)")},
      {"cmpxchg8b, which is not known", EXECUTE("cmpxchg8b (%%rbx)")},
  };
  for (const auto& [name, execute] : instructions) {
    Watched watched;
    const auto at = [](std::byte* page) {
      return reinterpret_cast<uint64_t*>(page + kSignal + kValue);
    };
    alignas(256) std::array<std::byte, 256> plain{};  // addresses have the low byte of the page's
    for (std::byte* page : {plain.data(), watched.memory.device}) {
      *at(page) = 0x8877665544332211;
      *(at(page) + 2) = 42;
    }
    for (const size_t signal : {kSignal, 3 * kSignal})
      REQUIRE(watched.host.watch_signal(kGpu + signal));
    CAPTURE(name);
    Result expected = execute(at(plain.data()));
    const Result found = execute(at(watched.memory.program));
    if (std::string_view(name).find("16 bits") != std::string::npos) {
      expected.base_moved ^= reinterpret_cast<uint64_t>(at(plain.data())) >> 16 << 16;
      expected.base_moved ^= reinterpret_cast<uint64_t>(at(watched.memory.program)) >> 16 << 16;
    }
    CHECK(found == expected);
    const bool unknown = std::string_view(name).find("not known") != std::string::npos;
    if (unknown) CHECK(watched.host.waits.pages == 1);
  }
}
#undef EXECUTE

TEST_CASE("looks of several threads are noticed while others step") {
  Watched watched;
  constexpr unsigned kRounds = 200;
  std::atomic<bool> stop{false};
  REQUIRE(watched.host.watch_signal(kGpu));  // keeps the page closed
  std::thread spinner([&] {
    while (!stop) load(watched.memory.program + 5 * kSignal + kValue);
  });
  unsigned found = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    REQUIRE(watched.host.watch_signal(kGpu + kSignal));
    load(watched.memory.program + kSignal + kValue);
    for (const GpuAddress signal : looked(watched)) found += signal == kSignal;
  }
  stop = true;
  spinner.join();
  CHECK(found == kRounds);
}

struct Counter final : HostHolder {
  unsigned held = 0;
  void hold_until_rest() noexcept override { ++held; }
};

TEST_CASE("a thread that stores to an awaited signal is held after the store") {
  Watched watched;
  Counter counter;
  watched.host.hold_by(&counter);
  watched.host.await_signal(kGpu + kSignal, true);
  load(watched.memory.program + kSignal + kValue);
  store(watched.memory.program + 2 * kSignal + kValue, 1);
  CHECK(counter.held == 0);
  store(watched.memory.program + kSignal + kValue, 1);
  CHECK(counter.held == 1);
  watched.host.await_signal(kGpu + kSignal, false);
  store(watched.memory.program + kSignal + kValue, 2);
  CHECK(counter.held == 1);
  CHECK(load(watched.memory.device + kSignal + kValue) == 2);
}

// Does something after the next instruction that is executed on the device's mapping, and before
// the device notices the instruction's end: the processor may do it at any time in between.
class DuringStep {
 public:
  explicit DuringStep(std::function<void()> act) {
    action = std::move(act);
    install_fault_chain(FaultRank::doorbell, &trapped, FaultSignals::with_traps);
  }
  ~DuringStep() {
    install_fault_chain(FaultRank::doorbell, nullptr);
    CHECK(action == nullptr);
  }
  DuringStep(const DuringStep&) = delete;
  DuringStep& operator=(const DuringStep&) = delete;

 private:
  static bool trapped(int signal_number, const siginfo_t&, ucontext_t&) noexcept {
    if (signal_number == SIGTRAP && action != nullptr) std::exchange(action, nullptr)();
    return false;  // other clients handle the trap
  }
  static inline std::function<void()> action;
};

TEST_CASE("a completion that a step may have loaded is looked at") {
  Watched watched;
  REQUIRE(watched.host.watch_signal(kGpu + 3 * kSignal));  // keeps the page closed
  const DuringStep completes([&] { CHECK(watched.host.watch_signal(kGpu + kSignal)); });
  SECTION("its value") {
    load(watched.memory.program + kSignal + kValue);
    CHECK(looked(watched) == Looks{kSignal});
  }
  SECTION("nothing of it") {
    load(watched.memory.program + kSignal);  // the kind
    CHECK(looked(watched).empty());
  }
}

TEST_CASE("a thread is held if a queue begins to wait for a signal during the store") {
  Watched watched;
  Counter counter;
  watched.host.hold_by(&counter);
  REQUIRE(watched.host.watch_signal(kGpu + 3 * kSignal));  // keeps the page closed
  SECTION("and still waits") {
    const DuringStep waits([&] { watched.host.await_signal(kGpu + kSignal, true); });
    store(watched.memory.program + kSignal + kValue, 1);
  }
  SECTION("and has seen the store") {
    const DuringStep waits([&] {
      watched.host.await_signal(kGpu + kSignal, true);
      watched.host.await_signal(kGpu + kSignal, false);
    });
    store(watched.memory.program + kSignal + kValue, 1);
  }
  CHECK(counter.held == 1);
}

TEST_CASE("a breakpoint ends a program that does not handle SIGTRAP") {
  const pid_t child = fork();
  if (child == 0) {
    auto& watched = *new Watched;
    watched.host.watch_signal(kGpu + kSignal);
    asm volatile("int3");
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTRAP);
}

TEST_CASE("instructions whose base has another role are not redirected") {
  const auto decoded = [](std::vector<uint8_t> code) {
    code.resize(16);
    return decode_redirectable(code.data()).has_value();
  };
  CHECK(decoded({0x48, 0x8b, 0x03}));                    // mov (%rbx), %rax
  CHECK_FALSE(decoded({0x48, 0x89, 0x1b}));              // mov %rbx, (%rbx)
  CHECK_FALSE(decoded({0x88, 0x3b}));                    // mov %bh, (%rbx)
  CHECK(decoded({0x40, 0x88, 0x3b}));                    // mov %dil, (%rbx)
  CHECK_FALSE(decoded({0x66, 0x8b, 0x1b}));              // mov (%rbx), %bx
  CHECK_FALSE(decoded({0x48, 0x03, 0x1b}));              // add (%rbx), %rbx
  CHECK_FALSE(decoded({0x48, 0x8b, 0x04, 0x24}));        // mov (%rsp), %rax
  CHECK(decoded({0x49, 0x8b, 0x04, 0x24}));              // mov (%r12), %rax
  CHECK_FALSE(decoded({0x48, 0x8b, 0x05}));              // mov 0(%rip), %rax
  CHECK_FALSE(decoded({0x48, 0x8b, 0x04, 0x1b}));        // mov (%rbx,%rbx), %rax
  CHECK_FALSE(decoded({0xf0, 0x48, 0x0f, 0xb1, 0x08}));  // lock cmpxchg %rcx, (%rax)
  CHECK_FALSE(decoded({0x64, 0x48, 0x8b, 0x03}));        // mov %fs:(%rbx), %rax
  CHECK_FALSE(decoded({0x67, 0x48, 0x8b, 0x03}));        // mov (%ebx), %rax
  CHECK_FALSE(decoded({0xf3, 0x48, 0xa5}));              // rep movsq
  CHECK_FALSE(decoded({0x48, 0x8b, 0xc3}));              // mov %rbx, %rax
}

}  // namespace
}  // namespace uptempo::vgpu::test
