#include "tools/graphs/lookups.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "tools/graphs/original.hpp"
#include "tools/graphs/replacement.hpp"

namespace uptempo::graphs {
namespace {

// Without allocation and locks, because memory allocators look functions up, too. So do sanitizers
// before they can run: this file and original.cpp are compiled without them (CMakeLists.txt).
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

namespace {

void note(const char* name, const void* caller) noexcept {
  const size_t index = next.fetch_add(1, std::memory_order_relaxed);
  if (index >= lookups.size()) return;
  std::strncpy(lookups[index].name.data(), name, lookups[index].name.size() - 1);
  lookups[index].caller.store(caller, std::memory_order_release);
}

// The program's function for what the C library's has found. Null stays null, with dlerror().
void* answer(void* found, const char* name, const void* caller) noexcept {
  if (found == nullptr) return nullptr;
  void* const replaced = replacement(found);
  Dl_info own{}, other{};
  const bool is_own = dladdr(reinterpret_cast<const void*>(&looked_up), &own) != 0 &&
                      dladdr(replaced, &other) != 0 && own.dli_fbase == other.dli_fbase;
  if (!is_own && is_of_interest(name)) note(name, caller);
  return replaced;
}

// Whether this library may have a function of this name. The handles that are relative to the
// caller find it in the order of the libraries.
bool may_replace(void* handle, const char* name) noexcept {
  return handle != RTLD_NEXT && handle != RTLD_DEFAULT && name != nullptr &&
         std::string_view(name).find("hip") != std::string_view::npos;
}

}  // namespace

extern "C" {

// In two registers: the C library's function, to which the assembly below jumps; or null and the
// result.
struct Answer {
  void* jump;
  void* result;
};

__attribute__((visibility("hidden"), used)) Answer uptempo_graphs_dlsym(void* handle,
                                                                        const char* name,
                                                                        const void* caller) {
  if (!may_replace(handle, name)) return {original_dlsym(), nullptr};
  const auto call = reinterpret_cast<void* (*)(void*, const char*)>(original_dlsym());
  return {nullptr, answer(call(handle, name), name, caller)};
}
}

// Replaces the C library's function. For handles that are relative to the caller it jumps there
// with the caller's return address, by which dlsym() finds the object that they are relative to.
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
  movq 24(%rsp), %rdx
  call uptempo_graphs_dlsym
  addq $8, %rsp
  popq %rsi
  popq %rdi
  testq %rax, %rax
  jz 1f
  jmpq *%rax
1:
  movq %rdx, %rax
  ret
.size dlsym, . - dlsym
.popsection
)");

namespace uptempo::graphs {

std::vector<std::string> looked_up() {
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&looked_up), &own);
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
                        " in another libamdhip64: calls by that pointer were out of reach");
  }
  return sentences;
}

}  // namespace uptempo::graphs
