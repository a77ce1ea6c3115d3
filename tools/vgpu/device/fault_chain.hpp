// The device's handler of SIGSEGV and SIGBUS, and where a client needs it of SIGTRAP, which runs
// before the program's.
//
// Parts of the device depend on faults (host/host_pages.hpp, bar/lazy_bar.hpp,
// memory_check/host_stores.hpp; cp/doorbell/doorbell_watch.hpp, cp/lost_memory.hpp). They are
// clients of this one handler. A fault that no client resolves is delivered to the program's action
// as the kernel would deliver it: that action's mask is added to the interrupted one, SA_RESETHAND
// resets the action first, and SA_NODEFER leaves the signal unblocked. SA_ONSTACK and SA_RESTART
// always apply. For the default action, the handler removes itself, and the fault happens again. A
// trap does not happen again, so the handler raises the signal.
//
// An action that the program installs later must not displace the handler: interpose/signals.cpp
// interposes sigaction() and its relatives, which call replace_program_action(). As a second
// safeguard, install_fault_chain() reinstalls the handler when it finds another one.
//
// Processes: the handler belongs to the process that installed it. A fork child inherits it with
// the program's actions. A vfork child shares this memory but not the actions, so its sigaction()
// is the kernel's.
// Thread safety: any thread. replace_program_action() is async-signal-safe, like sigaction().
#pragma once

#include <ucontext.h>

#include <csignal>
#include <cstdint>

namespace uptempo::vgpu {

// Examines a fault (never a signal sent by a process) on the faulting thread, with all signals
// blocked except SIGSYS (a program may trap the system calls that clients make). Returns true when
// the fault is resolved; the thread then continues from `context`.
using FaultClient = bool (*)(int signal_number, const siginfo_t& info,
                             ucontext_t& context) noexcept;

// The order in which clients are called. Doorbells fault most often, and their check costs nothing.
enum class FaultRank : uint8_t { doorbell, lazy_bar, host_pages, memory_check, lost_memory };

// with_traps: also SIGTRAP, for a client that has a thread execute one instruction.
enum class FaultSignals : uint8_t { faults, with_traps };

// Sets the client of that rank and installs the handler if it is not the current one.
void install_fault_chain(FaultRank rank, FaultClient client,
                         FaultSignals signals = FaultSignals::faults) noexcept;

// The program's sigaction() of a signal that the handler receives: replaces and reads the action
// that receives the program's own faults. Both pointers may be null. Returns false, without effect,
// for another signal or when no handler is installed; the caller then uses the real sigaction().
bool replace_program_action(int signal_number, const struct sigaction* action,
                            struct sigaction* previous) noexcept;

// Returns `mask` without SIGSEGV, for masks that the program sets. A blocked fault ends the
// process, and ringing a sleeping device's doorbell is a fault.
sigset_t block_all_but_segv(const sigset_t& mask) noexcept;

}  // namespace uptempo::vgpu
