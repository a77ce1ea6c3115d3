// Output of the programs under test: one line for each way to pass a message.
//
// Thread safety: none.
#pragma once

#include <dlfcn.h>

#include <cstdio>

#include <uptempo/vgpu/query.h>

namespace uptempo::vgpu::test {

// Fills the present counts of the fence checker. Returns false if fences are not checked.
inline bool find(uptempo_vgpu_finding_counts& found) {
  static const auto query =
      reinterpret_cast<uptempo_vgpu_findings_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_findings"));
  return query != nullptr && query(&found) == 0;
}

// Prints the name and "right" or "wrong". If fences are checked, the numbers of unordered, stale
// and unreleased findings since the last call follow. `settle()` makes the checker judge the host's
// last loads and stores: it does so at the device's next action.
template <typename Settle>
void report(const char* name, bool right, Settle settle) {
  static uptempo_vgpu_finding_counts before{};
  std::printf("%s %s", name, right ? "right" : "wrong");
  if (uptempo_vgpu_finding_counts now; find(now)) {
    settle();
    find(now);
    std::printf(" %llu %llu %llu",
                static_cast<unsigned long long>(now.unordered - before.unordered),
                static_cast<unsigned long long>(now.stale - before.stale),
                static_cast<unsigned long long>(now.unreleased - before.unreleased));
    before = now;
  }
  std::printf("\n");
}

}  // namespace uptempo::vgpu::test
