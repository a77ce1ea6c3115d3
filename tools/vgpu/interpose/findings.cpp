// The fence checker, as far as the program and its end are concerned: findings.h.
#include "findings.h"

#include "interpose/real.hpp"
#include "kfd/process.hpp"

namespace kfd = uptempo::vgpu::kfd;

UPTEMPO_VGPU_EXPORT int uptempo_vgpu_findings(uptempo_vgpu_finding_counts* counts) {
  const kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr || process->checker() == nullptr) return -1;
  const auto found = process->checker()->counts();
  *counts = {found.unordered, found.stale, found.unreleased};
  return 0;
}

namespace {

// After the program's own exit handlers: this library is the first to be loaded and the last to go.
[[gnu::destructor]] void finish() {
  if (kfd::Process* const process = kfd::Process::existing()) process->finish_checks();
}

}  // namespace
