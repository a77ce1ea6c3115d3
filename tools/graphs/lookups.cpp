#include "tools/graphs/lookups.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

namespace uptempo::graphs {
namespace {

// Without allocation and locks, because memory allocators look functions up, too.
struct Lookup {
  std::atomic<const void*> caller{nullptr};
  std::array<char, 64> name{};
};
std::array<Lookup, 64> lookups;
std::atomic<size_t> next{0};

// Functions without which no graph is launched. Those that tools look up for other reasons do not
// count.
bool is_of_interest(std::string_view name) {
  return name.starts_with("hipGraphInstantiate") || name.starts_with("hipGraphLaunch") ||
         name.starts_with("hipGraphExec");
}

}  // namespace
}  // namespace uptempo::graphs

using namespace uptempo::graphs;

extern "C" {

// Called by dlsym() below. Returns the C library's dlsym().
__attribute__((visibility("hidden"), used)) void* uptempo_graphs_note_lookup(const char* name,
                                                                             const void* caller) {
  if (name != nullptr && is_of_interest(name)) {
    const size_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index < lookups.size()) {
      std::strncpy(lookups[index].name.data(), name, lookups[index].name.size() - 1);
      lookups[index].caller.store(caller, std::memory_order_release);
    }
  }
  // The oldest version of x86-64, which every C library has.
  static void* const real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  return real;
}
}

// Replaces the C library's function. It jumps there with the caller's return address, by which
// dlsym() finds the object that RTLD_NEXT and RTLD_DEFAULT are relative to.
#if !defined(__x86_64__)
#error "dlsym() is written for x86-64, the only host of ROCm"
#endif
__asm__(R"(
.pushsection .text
.globl dlsym
.type dlsym, @function
dlsym:
  endbr64
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  movq %rsi, %rdi
  movq 24(%rsp), %rsi
  call uptempo_graphs_note_lookup
  addq $8, %rsp
  popq %rsi
  popq %rdi
  jmpq *%rax
.size dlsym, . - dlsym
.popsection
)");

namespace uptempo::graphs {

std::vector<std::string> looked_up() {
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&uptempo_graphs_note_lookup), &own);
  std::vector<std::string> sentences;
  for (const Lookup& each : lookups) {
    const void* const caller = each.caller.load(std::memory_order_acquire);
    Dl_info info{};
    if (caller == nullptr || (dladdr(caller, &info) != 0 && info.dli_fbase == own.dli_fbase))
      continue;
    const char* const object = info.dli_fname == nullptr || *info.dli_fname == '\0'
                                   ? "code outside of any library"
                                   : info.dli_fname;
    sentences.push_back(std::string(object) + " looked up " + each.name.data() +
                        " by dlsym: calls by that pointer were out of reach");
  }
  return sentences;
}

}  // namespace uptempo::graphs
