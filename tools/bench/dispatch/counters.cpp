// The counting library; see counters.h.
#include "tools/bench/dispatch/counters.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "tools/support/cost_meter.hpp"

// One thunk for each entry of ROCr's tables, independent of the function's arguments: it increments
// the thread's counter and jumps to the original function. R11 is free at the start of any
// function.
extern "C" {
[[gnu::visibility("hidden"), gnu::tls_model("initial-exec")]] __thread uint64_t uptempo_hsa_calls =
    0;
[[gnu::visibility("hidden")]] void* uptempo_hsa_next[512] = {};
[[gnu::visibility("hidden")]] extern const char uptempo_hsa_thunks[];
}

asm(R"(
  .pushsection .text.uptempo_hsa_thunks, "ax", @progbits
  .globl uptempo_hsa_thunks
  .hidden uptempo_hsa_thunks
  .p2align 5
uptempo_hsa_thunks:
  .set uptempo_hsa_entry, 0
  .rept 512
  .p2align 5
  movq uptempo_hsa_calls@gottpoff(%rip), %r11
  incq %fs:(%r11)
  jmpq *uptempo_hsa_next+8*uptempo_hsa_entry(%rip)
  .set uptempo_hsa_entry, uptempo_hsa_entry+1
  .endr
  .popsection
)");

namespace {

constexpr size_t kThunkBytes = 32, kThunks = std::size(uptempo_hsa_next);
size_t used = 0;

// ROCr's tables begin with their version, whose minor number is their size, followed by pointers
// (hsa_api_trace.cpp). Larger tables of newer versions work too. Defined here because Debian's
// hsa_api_trace.h includes files that the package lacks.
struct TableVersion {
  uint32_t major, size_bytes, step, reserved;
};

size_t entries_of(const void* table) {
  TableVersion version{};
  std::memcpy(&version, table, sizeof version);
  return version.size_bytes <= sizeof version
             ? 0
             : (version.size_bytes - sizeof version) / sizeof(void*);
}
void** entries(void* table) {
  return reinterpret_cast<void**>(static_cast<std::byte*>(table) + sizeof(TableVersion));
}

bool is_thunk(const void* function) {
  const auto* const byte = static_cast<const char*>(function);
  return byte >= uptempo_hsa_thunks && byte < uptempo_hsa_thunks + kThunks * kThunkBytes;
}

template <class F>
void for_each_function(void* tables, F&& f) {
  for (size_t t = 0; t < entries_of(tables); ++t) {
    void* const functions = entries(tables)[t];
    if (functions == nullptr) continue;
    for (size_t i = 0; i < entries_of(functions); ++i)
      if (void*& function = entries(functions)[i]; function != nullptr && !is_thunk(function))
        f(function);
  }
}

}  // namespace

// ROCr calls this in a library that HSA_TOOLS_LIB names. Returns false if ROCr's tables have more
// entries than there are thunks: no call is counted then.
extern "C" __attribute__((visibility("default"))) bool OnLoad(void* tables, uint64_t, uint64_t,
                                                              const char* const*) {
  size_t functions = 0;
  for_each_function(tables, [&](void*&) { ++functions; });
  if (used + functions > kThunks) return false;
  for_each_function(tables, [](void*& function) {
    uptempo_hsa_next[used] = function;
    function = const_cast<char*>(uptempo_hsa_thunks + used * kThunkBytes);
    ++used;
  });
  return true;
}

extern "C" __attribute__((visibility("default"))) void uptempo_dispatch_bench_count(
    void (*work)(void*), void* argument, uptempo_counts* counts) {
  const uint64_t calls = uptempo_hsa_calls;
  const uptempo::support::Cost cost = uptempo::support::cost_of([=] { work(argument); });
  counts->allocations += cost.allocations;
  counts->system_calls += cost.system_calls;
  counts->hsa_calls += uptempo_hsa_calls - calls;
}
