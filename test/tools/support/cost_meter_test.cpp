// The meter counts what it claims to count; without this test, a count of zero would prove nothing.
#include "tools/support/cost_meter.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include "test/support/catch.hpp"

using uptempo::support::Cost;
using uptempo::support::cost_of;
using uptempo::support::sees_system_calls;

namespace {

// The compiler may omit malloc() if its result is unused.
void* volatile kept = nullptr;

void* page = nullptr;

void unprotect(int, siginfo_t*, void*) { mprotect(page, 4096, PROT_READ | PROT_WRITE); }
void on_signal(int) { syscall(SYS_getppid); }

struct sigaction set_action(int signal_number, const struct sigaction& action) {
  struct sigaction before {};
  sigaction(signal_number, &action, &before);
  return before;
}

}  // namespace

TEST_CASE("an empty function costs nothing", "[cost_meter]") {
  CHECK(cost_of([] {}) == Cost{});
}

TEST_CASE("allocations are counted", "[cost_meter]") {
  CHECK(cost_of([] { kept = ::operator new(8); }).allocations == 1);
  ::operator delete(kept);
  if (!sees_system_calls()) return;
  CHECK(cost_of([] { kept = std::malloc(8); }).allocations == 1);
  CHECK(cost_of([] { kept = std::realloc(kept, 80); }).allocations == 1);
  CHECK(cost_of([] { std::free(kept); }).allocations == 0);
  CHECK(cost_of([] { kept = std::calloc(2, 8); }).allocations == 1);
  std::free(kept);
  CHECK(cost_of([] { kept = std::aligned_alloc(64, 64); }).allocations == 1);
  CHECK(reinterpret_cast<uintptr_t>(kept) % 64 == 0);
  std::free(kept);
  void* aligned = nullptr;
  CHECK(posix_memalign(&aligned, 24, 64) == EINVAL);
  CHECK(cost_of([&] { posix_memalign(&aligned, 4096, 64); }).allocations == 1);
  CHECK(reinterpret_cast<uintptr_t>(aligned) % 4096 == 0);
  std::free(aligned);
}

TEST_CASE("locks are counted", "[cost_meter]") {
  if (!sees_system_calls()) return;
  std::mutex mutex;
  CHECK(cost_of([&] { const std::lock_guard lock(mutex); }).locks == 1);
}

TEST_CASE("every system call is counted and has its normal effect", "[cost_meter]") {
  if (!sees_system_calls()) return;
  long id = 0, failed = 0;
  int error = 0;
  CHECK(cost_of([&] {
          for (int i = 0; i < 3; ++i) id = syscall(SYS_getpid);
          failed = syscall(SYS_close, -1);
          error = errno;
        }).system_calls == 4);
  CHECK(id == getpid());
  CHECK(failed == -1);
  CHECK(error == EBADF);
  CHECK(cost_of([&] { id = 0; }).system_calls == 0);

  void* mapped = nullptr;  // six arguments
  CHECK(cost_of([&] {
          mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }).system_calls == 1);
  REQUIRE(mapped != MAP_FAILED);
  *static_cast<int*>(mapped) = 1;
  munmap(mapped, 4096);

  sigset_t one, before, after;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  sigprocmask(SIG_SETMASK, nullptr, &before);
  CHECK(cost_of([&] { sigprocmask(SIG_BLOCK, &one, nullptr); }).system_calls == 1);
  sigprocmask(SIG_SETMASK, &before, &after);
  CHECK(sigismember(&after, SIGUSR2) == 1);  // the mask is the program's, not the handler's
}

TEST_CASE("calls of a signal handler are counted for its thread, and the handler returns normally",
          "[cost_meter]") {
  if (!sees_system_calls()) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  const struct sigaction before = set_action(SIGUSR1, action);
  const pid_t process = getpid(), thread = gettid();
  // tgkill, getppid, rt_sigreturn
  CHECK(cost_of([&] { syscall(SYS_tgkill, process, thread, SIGUSR1); }).system_calls == 3);
  set_action(SIGUSR1, before);
}

TEST_CASE(
    "calls of a fault handler are not counted, since on the virtual GPU they belong to the device",
    "[cost_meter]") {
  if (!sees_system_calls()) return;
  page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  struct sigaction action {};
  action.sa_sigaction = unprotect;
  action.sa_flags = SA_SIGINFO;
  const struct sigaction before = set_action(SIGSEGV, action);
  CHECK(cost_of([] {
          *static_cast<volatile int*>(page) = 1;
          syscall(SYS_getpid);
        }).system_calls == 1);
  CHECK(*static_cast<int*>(page) == 1);
  set_action(SIGSEGV, before);
  munmap(page, 4096);
}

TEST_CASE("a thread may be created during the measurement, and runs", "[cost_meter]") {
  if (!sees_system_calls()) return;
  bool ran = false;
  CHECK(cost_of([&] { std::thread([&] { ran = true; }).join(); }).system_calls >= 1);
  CHECK(ran);
  CHECK(cost_of([] { syscall(SYS_getpid); }).system_calls == 1);
}
