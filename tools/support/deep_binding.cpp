// dlopen() and dlmopen() of a preloaded library: they open libraries without RTLD_DEEPBIND.
//
// With that flag, glibc looks up the names of a library, and of all that is loaded with it, among
// these libraries first, and the C library is one of them (_dl_new_object() in elf/dl-object.c). It
// then finds none of the functions by which a preloaded library replaces those of the C library or
// of HIP. Without the flag it finds them, and every library that it loads in turn does, too.
//
// A library in another namespace has a C library of its own and does not find them either. That is
// said, too.
//
// An audit library (LD_AUDIT, la_symbind64()) could leave the flag in place. It sees only calls
// through the procedure linkage table, so not those of code compiled with -fno-plt, and with it
// ThreadSanitizer's runtime does not load ("cannot allocate memory in static TLS block").
//
// The preloaded library compiles this file with its name, UPTEMPO_PRELOADED. It exports both
// functions.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>

namespace {

// Once in a process, because a program may open many libraries.
void say_once(std::atomic<bool>& said, const char* path, const char* what) noexcept {
  if (!said.exchange(true, std::memory_order_relaxed))
    std::fprintf(stderr,
                 UPTEMPO_PRELOADED ": %s is opened %s the functions of preloaded libraries\n",
                 path == nullptr ? "the program" : path, what);
}

constinit std::atomic<bool> flag_said{false}, namespace_said{false};

int without_deep_binding(const char* path, int flags) noexcept {
  if ((flags & RTLD_DEEPBIND) == 0) return flags;
  say_once(flag_said, path, "without RTLD_DEEPBIND, which would hide");
  return flags & ~RTLD_DEEPBIND;
}

// Without the guard of a function's static variable: sanitizers replace it before they can run.
void* next(std::atomic<void*>& known, const char* name) noexcept {
  // relaxed: the same in every thread
  void* address = known.load(std::memory_order_relaxed);
  if (address == nullptr) {
    address = dlsym(RTLD_NEXT, name);
    known.store(address, std::memory_order_relaxed);
  }
  return address;
}

constinit std::atomic<void*> next_dlopen{nullptr}, next_dlmopen{nullptr};

}  // namespace

extern "C" {

// In two registers: the next definition, to which the assembly below jumps, and its last argument.
struct UptempoOpening {
  void* function;
  long flags;
};

__attribute__((visibility("hidden"), used)) UptempoOpening uptempo_dlopen(const char* path,
                                                                          int flags) {
  return {next(next_dlopen, "dlopen"), without_deep_binding(path, flags)};
}

__attribute__((visibility("hidden"), used)) UptempoOpening uptempo_dlmopen(Lmid_t where,
                                                                           const char* path,
                                                                           int flags) {
  void* const function = next(next_dlmopen, "dlmopen");
  if (where == LM_ID_BASE) return {function, without_deep_binding(path, flags)};
  say_once(namespace_said, path, "in another namespace, which hides");
  return {function, flags};
}
}

// They jump to the next definition with the caller's return address, by which it finds the caller's
// namespace and search path.
#if !defined(__x86_64__)
#error "dlopen() is written for x86-64, the only host of ROCm"
#endif
__asm__(R"(
.pushsection .text
.globl dlopen
.type dlopen, @function
dlopen:
  endbr64
  pushq %rdi
  call uptempo_dlopen
  popq %rdi
  movl %edx, %esi
  jmpq *%rax
.size dlopen, . - dlopen
.globl dlmopen
.type dlmopen, @function
dlmopen:
  endbr64
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  call uptempo_dlmopen
  addq $8, %rsp
  popq %rsi
  popq %rdi
  jmpq *%rax
.size dlmopen, . - dlmopen
.popsection
)");
