// Stacks that a signal handler captures again and again.
#include "device/host/interrupted_stack.hpp"

#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <memory>
#include <thread>

#include "test/support/catch.hpp"

using namespace uptempo::vgpu;

namespace {

HostStacks* stacks = nullptr;
thread_local HostStackId interrupted = 0, direct = 0;
std::atomic<int> wrong{0};  // the test cases look at it, since CHECK is for one thread

void handle(int, siginfo_t*, void* context) {
  const auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const instruction = reinterpret_cast<const void*>(registers[REG_RIP]);
  interrupted =
      capture_interrupted(*stacks, instruction, reinterpret_cast<const void*>(registers[REG_RSP]));
  direct = stacks->capture(instruction);
}

// Returns the stack of the place that calls. The signal interrupts the same instruction each time,
// with the same stack pointer if the callers have frames of one size.
[[gnu::noinline]] HostStackId ring() {
  interrupted = 0;
  asm volatile("int3");  // a trap: ThreadSanitizer delivers other signals later
  if (interrupted == 0 || interrupted != direct) wrong.fetch_add(1, std::memory_order_relaxed);
  return interrupted;
}
[[gnu::noinline]] HostStackId from_one() {
  const HostStackId id = ring();
  std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
  return id;
}
[[gnu::noinline]] HostStackId from_another() {
  const HostStackId id = ring();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return id;
}
[[gnu::noinline]] HostStackId from_deep(unsigned depth) {
  const HostStackId id = depth == 0 ? ring() : from_deep(depth - 1);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return id;
}

class Handler {
 public:
  Handler() {
    stacks = stacks_.get();
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
    wrong = 0;
  }
  ~Handler() { sigaction(SIGTRAP, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  std::unique_ptr<HostStacks> stacks_ = std::make_unique<HostStacks>();
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("a remembered stack is the one that unwinding finds, for each caller") {
  // Objects follow one another, perhaps at one address.
  for (int object = 0; object < 3; ++object) {
    const Handler handler;
    HostStackId ones[2]{}, others[2]{};
    for (int i = 0; i < 2; ++i) {  // each line is a caller of its own in this function
      ones[i] = from_one();
      others[i] = from_another();
    }
    CHECK(ones[0] == ones[1]);
    CHECK(others[0] == others[1]);
    CHECK(ones[0] != others[0]);
    const HostStackId elsewhere = from_one();
    CHECK(elsewhere != ones[0]);
    for (const unsigned depth : {0u, 1u, 5u, 60u, 5u, 1u, 0u}) from_deep(depth);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a stack that has not changed is not unwound again") {
  const Handler handler;
  const auto remembered = [](auto&& calls, int rounds) {
    const uint64_t before = remembered_stacks();
    for (int i = 0; i < rounds; ++i) calls();
    return remembered_stacks() - before;
  };
  CHECK(remembered([] { from_one(); }, 10) >= 9);
  CHECK(remembered([] { from_deep(60); }, 10) >= 9);
  CHECK(wrong == 0);
}

TEST_CASE("threads have stacks of their own") {
  const Handler handler;
  from_one();
  for (int i = 0; i < 4; ++i) std::thread([] { from_one(), from_another(); }).join();
  std::thread threads[4];
  for (std::thread& thread : threads)
    thread = std::thread([] {
      for (int i = 0; i < 100; ++i) from_one(), from_another();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
