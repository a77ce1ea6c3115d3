#include "tools/support/cost_meter.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UPTEMPO_COST_METER_WHOLE 0
#else
#define UPTEMPO_COST_METER_WHOLE 1
#endif

namespace {

// initial-exec: in a preloaded library, the general model calls a function that may allocate.
[[gnu::tls_model("initial-exec")]] thread_local uint64_t allocations = 0;
[[gnu::tls_model("initial-exec")]] thread_local uint64_t locks = 0;

}  // namespace

#if UPTEMPO_COST_METER_WHOLE

// glibc's own names for the functions that this file replaces.
extern "C" {
void* __libc_malloc(size_t size) noexcept;
void* __libc_calloc(size_t count, size_t size) noexcept;
void* __libc_realloc(void* memory, size_t size) noexcept;
void* __libc_memalign(size_t alignment, size_t size) noexcept;

void* malloc(size_t size) noexcept {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  ++allocations;
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  ++allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
    return EINVAL;
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return real(mutex);
}

// The kernel does not trap system calls made from this address range.
[[gnu::visibility("hidden")]] extern const char uptempo_meter_begin[], uptempo_meter_return[],
    uptempo_meter_end[];
}

// uptempo_meter_begin makes the trapped call with its original registers, then jumps to the address
// in RCX; the kernel destroys RCX and R11 in any system call. The stub keeps that address beyond
// the red zone, where signal handlers do not overwrite it. uptempo_meter_return returns from a
// handler.
asm(R"(
  .pushsection .text.uptempo_meter, "ax", @progbits
  .globl uptempo_meter_begin, uptempo_meter_return, uptempo_meter_end
  .hidden uptempo_meter_begin, uptempo_meter_return, uptempo_meter_end
uptempo_meter_begin:
  leaq -128(%rsp), %rsp
  pushq %rcx
  syscall
  popq %rcx
  leaq 128(%rsp), %rsp
  jmpq *%rcx
uptempo_meter_return:
  movl $15, %eax
  syscall
  ud2
uptempo_meter_end:
  .popsection
)");

namespace {

// Values of linux/prctl.h (5.11), which Debian's libc headers may not have.
constexpr int kSetUserDispatch = 59, kDispatchOff = 0, kDispatchOn = 1;
constexpr char kAllow = 0, kBlock = 1;

[[gnu::tls_model("initial-exec")]] thread_local volatile char selector = kAllow;
[[gnu::tls_model("initial-exec")]] thread_local volatile uint64_t caught = 0;

// The stub's stack is not valid in the new thread or process.
bool makes_a_thread_or_process(greg_t call) noexcept {
  return call == SYS_clone || call == SYS_clone3 || call == SYS_fork || call == SYS_vfork;
}

// With SIGSYS blocked, the next trapped call ends the process.
bool blocks_sigsys(const gregset_t& registers) noexcept {
  if (registers[REG_RAX] != SYS_rt_sigprocmask || registers[REG_RDI] == SIG_UNBLOCK) return false;
  const auto* const mask = reinterpret_cast<const uint64_t*>(registers[REG_RSI]);
  return mask != nullptr && ((*mask >> (SIGSYS - 1)) & 1) != 0;
}

void on_system_call(int, siginfo_t*, void* raw) {
  auto& context = *static_cast<ucontext_t*>(raw);
  auto& registers = context.uc_mcontext.gregs;
  if (sigismember(&context.uc_sigmask, SIGSEGV) == 0) caught = caught + 1;
  if (makes_a_thread_or_process(registers[REG_RAX]) || blocks_sigsys(registers)) {
    selector = kAllow;  // repeat SYSCALL (two bytes), not trapped
    registers[REG_RIP] -= 2;
    return;
  }
  // rt_sigreturn finds its frame by the stack pointer, which uptempo_meter_begin moves.
  const bool returns = registers[REG_RAX] == SYS_rt_sigreturn;
  registers[REG_RCX] = registers[REG_RIP];
  registers[REG_RIP] =
      reinterpret_cast<greg_t>(returns ? uptempo_meter_return : uptempo_meter_begin);
}

bool trap_system_calls(bool on) noexcept {
  if (!on) return prctl(kSetUserDispatch, kDispatchOff, 0, 0, nullptr) == 0;
  return prctl(kSetUserDispatch, kDispatchOn, uptempo_meter_begin,
               uptempo_meter_end - uptempo_meter_begin, const_cast<char*>(&selector)) == 0;
}

// The kernel's struct sigaction. The C library's has no field for the code that returns from the
// handler.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*) = nullptr;
  unsigned long flags = 0;
  const char* restorer = nullptr;
  uint64_t mask = 0;
};
constexpr unsigned long kHasRestorer = 0x04000000;

bool exchange_action(const KernelAction& action, KernelAction* before) noexcept {
  return syscall(SYS_rt_sigaction, SIGSYS, &action, before, sizeof action.mask) == 0;
}

}  // namespace

namespace uptempo::support {

bool sees_system_calls() noexcept {
  static const bool available = trap_system_calls(true) && trap_system_calls(false);
  return available;
}

Cost cost_of(const std::function<void()>& work) {
  KernelAction before;
  const bool trapping =
      sees_system_calls() &&
      exchange_action({on_system_call, SA_SIGINFO | kHasRestorer, uptempo_meter_return, 0},
                      &before) &&
      trap_system_calls(true);
  const Cost first{allocations, locks, caught};
  if (trapping) selector = kBlock;
  work();
  selector = kAllow;
  const Cost cost{allocations - first.allocations, locks - first.locks,
                  caught - first.system_calls};
  if (trapping) {
    trap_system_calls(false);
    exchange_action(before, nullptr);
  }
  return cost;
}

}  // namespace uptempo::support

#else

namespace {

void* allocate(size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void* allocate(size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto a = static_cast<size_t>(alignment);
  if (void* const memory = std::aligned_alloc(a, (size + a - 1) / a * a)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new[](size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace uptempo::support {

bool sees_system_calls() noexcept { return false; }

Cost cost_of(const std::function<void()>& work) {
  const uint64_t before = allocations;
  work();
  return {.allocations = allocations - before, .locks = locks, .system_calls = 0};
}

}  // namespace uptempo::support

#endif
