#include "cost_meter.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UPTEMPO_TEST_SANITIZED 1
#else
#define UPTEMPO_TEST_SANITIZED 0
#endif

namespace {

thread_local uint64_t allocations = 0;
thread_local uint64_t locks = 0;

void* allocate(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void* allocate(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto a = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(a, (size + a - 1) / a * a)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#if defined(__x86_64__) && !UPTEMPO_TEST_SANITIZED

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return real(mutex);
}

namespace {

// Values of linux/prctl.h (5.11), which Debian's libc headers may not have.
constexpr int set_user_dispatch = 59, dispatch_off = 0, dispatch_on = 1;
constexpr char allow = 0, block = 1;

thread_local volatile char selector = allow;
thread_local volatile uint64_t caught = 0;

// Counts the call, lets calls pass from now on, and goes back to the caught one: to SYSCALL, two bytes, with the registers it had. Not
// a call in its name, because it may be the return of another handler.
void on_system_call(int, siginfo_t*, void* context) {
  selector = allow;
  caught = caught + 1;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] -= 2;
}

bool trap_system_calls(bool on) noexcept {
  return prctl(set_user_dispatch, on ? dispatch_on : dispatch_off, 0, 0,
               on ? const_cast<char*>(&selector) : nullptr) == 0;
}

}  // namespace

namespace uptempo::test {

bool sees_system_calls() noexcept {
  static const bool available = trap_system_calls(true) && trap_system_calls(false);
  return available;
}

Cost cost_of(const std::function<void()>& work) {
  struct sigaction action {
  }, before{};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  const bool trapping =
      sees_system_calls() && sigaction(SIGSYS, &action, &before) == 0 && trap_system_calls(true);
  const uint64_t allocations_before = allocations, locks_before = locks, caught_before = caught;
  if (trapping) selector = block;
  work();
  selector = allow;
  const Cost cost{allocations - allocations_before, locks - locks_before, caught - caught_before};
  if (trapping) {
    trap_system_calls(false);
    sigaction(SIGSYS, &before, nullptr);
  }
  return cost;
}

}  // namespace uptempo::test

#else

namespace uptempo::test {

bool sees_system_calls() noexcept { return false; }

Cost cost_of(const std::function<void()>& work) {
  const uint64_t before = allocations;
  work();
  return {.allocations = allocations - before, .locks = locks, .system_calls = 0};
}

}  // namespace uptempo::test

#endif
