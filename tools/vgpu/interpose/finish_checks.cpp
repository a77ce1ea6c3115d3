// The end of a process: ends the checks, reports on --inject, and ends the process's part in its
// machine. Without a GPU opened: says whether ROCr is missing.
//
// Order: exit() runs the functions of atexit() and its like in reverse order of their registration.
// One of them runs the destructors of the program and of all libraries. libc registers it when it
// starts the program, so after the constructor below, and therefore finish() runs after them all.
// It is registered without a library's handle, since it would else run with the destructors of this
// library, which come before those of libraries that the program needs.
//
// --error-exitcode replaces the status of exit() here. exit() within exit() is undefined in C, and
// defined in glibc (stdlib/exit.c): the remaining functions run, stdio is flushed, and the last
// status counts. _exit(), _Exit() and quick_exit() run no such functions. Their status is replaced
// if something has been found by then.
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>

#include "interpose/real.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/process.hpp"
#include "tools/support/launch/rocm_libraries.hpp"

extern "C" int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept;

namespace {

namespace kfd = uptempo::vgpu::kfd;
namespace vgpu = uptempo::vgpu::interpose;

constexpr std::string_view kNoRocr =
    "this process has opened no GPU, and this system has no ROCr; if its children have opened none "
    "either, install libhsa-runtime64-1 (Debian) or hsa-rocr (AMD's ROCm)";
static_assert(kNoRocr.ends_with(uptempo::support::kRocrPackages));

// The launcher has found no ROCr on this system. The launched process says so, not its children.
// Allocates nothing, because a signal handler may call _exit().
void report_missing_rocr() noexcept {
  const char* const variable = std::getenv("UPTEMPO_VGPU_NO_ROCR");
  const std::string_view text = variable == nullptr ? "" : variable;
  pid_t launched = 0;
  std::from_chars(text.data(), text.data() + text.size(), launched);
  if (launched == getpid()) kfd::report(kNoRocr);
}

void finish(void*) {
  kfd::Process* const process = kfd::Process::existing();
  if (process == nullptr) return report_missing_rocr();
  std::optional<int> status;
  try {
    status = process->finish_checks();
    process->report_injections();
  } catch (const std::exception& error) {  // the program ends with its own status
    kfd::report("the reports of the end are incomplete, because of the next line");
    kfd::report(error.what());
    status = kfd::Process::exit_status();
  }
  process->leave_machine();
  if (status) std::exit(*status);
}

[[gnu::constructor]] void finish_at_exit() { __cxa_atexit(&finish, nullptr, nullptr); }

}  // namespace

UPTEMPO_VGPU_EXPORT __attribute__((noreturn)) void _exit(int status) {
  static constinit vgpu::Next<void (*)(int)> next{"_exit"};
  if (kfd::Process::existing() == nullptr) report_missing_rocr();
  next(kfd::Process::exit_status().value_or(status));
  __builtin_unreachable();
}

UPTEMPO_VGPU_EXPORT __attribute__((noreturn)) void _Exit(int status) noexcept { _exit(status); }

UPTEMPO_VGPU_EXPORT __attribute__((noreturn)) void quick_exit(int status) noexcept {
  static constinit vgpu::Next<void (*)(int)> next{"quick_exit"};
  next(kfd::Process::exit_status().value_or(status));
  __builtin_unreachable();
}
