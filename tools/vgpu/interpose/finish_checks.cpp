// Ends the fence checker, reports on --inject, and ends the process's part in its machine, after
// the program's own exit handlers. The order holds because this library is loaded first and
// unloaded last.
#include "kfd/process.hpp"

namespace {

namespace kfd = uptempo::vgpu::kfd;

[[gnu::destructor]] void finish() {
  kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return;
  process->finish_checks();
  process->report_injections();
  process->leave_machine();
}

}  // namespace
