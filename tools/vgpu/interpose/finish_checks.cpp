// The end of a process: ends the checks, reports on --inject, and ends the process's part in its
// machine, after the program's own exit handlers. The order holds because this library is loaded
// first and unloaded last.
//
// --error-exitcode replaces the status of exit() here. exit() within exit() is undefined in C, and
// defined in glibc (stdlib/exit.c): the remaining handlers run, stdio is flushed, and the last
// status counts. _exit(), _Exit() and quick_exit() run no such handlers. Their status is replaced if
// something has been found by then.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>

#include "interpose/real.hpp"
#include "kfd/process.hpp"

namespace {

namespace kfd = uptempo::vgpu::kfd;
namespace vgpu = uptempo::vgpu::interpose;

[[gnu::destructor]] void finish() {
  kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return;
  const std::optional<int> status = process->finish_checks();
  process->report_injections();
  process->leave_machine();
  if (!status) return;
  // libstdc++ would flush these after this library.
  for (std::ostream* const stream : {&std::cout, &std::cerr, &std::clog}) stream->flush();
  std::exit(*status);
}

}  // namespace

UPTEMPO_VGPU_EXPORT __attribute__((noreturn)) void _exit(int status) {
  static constinit vgpu::Next<void (*)(int)> next{"_exit"};
  next(kfd::Process::exit_status().value_or(status));
  __builtin_unreachable();
}

UPTEMPO_VGPU_EXPORT __attribute__((noreturn)) void _Exit(int status) noexcept { _exit(status); }

UPTEMPO_VGPU_EXPORT __attribute__((noreturn)) void quick_exit(int status) noexcept {
  static constinit vgpu::Next<void (*)(int)> next{"quick_exit"};
  next(kfd::Process::exit_status().value_or(status));
  __builtin_unreachable();
}
