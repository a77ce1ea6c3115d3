// The device's handler of SIGSEGV and SIGBUS, in front of the program's.
//
// Parts of the device live on faults (host_pages.hpp; cp/doorbell_watch.hpp, cp/lost_memory.hpp); they are clients of one handler. A fault that no client settles goes to the
// action that the program has installed, as the kernel would have delivered it: with that action's mask on top of the interrupted one,
// reset first under SA_RESETHAND, the signal itself unblocked under SA_NODEFER. SA_ONSTACK and SA_RESTART are always as if they were set. The
// default action is taken by removing the handler and letting the fault happen again.
//
// A program that installs an action later must not displace the handler: sigaction() and its relatives are interposed (interpose/signals.cpp) and end in
// replace_program_action(). As a second line, install_fault_chain() puts the handler back in front when it finds another one there.
//
// Processes. The handler belongs to the process that installed it. A fork child inherits it with the program's actions. In a vfork child, which shares this
// memory but not the actions, sigaction() is the kernel's.
//
// Thread safety: any thread. replace_program_action() is async-signal-safe, as sigaction() is.
#pragma once

#include <ucontext.h>

#include <csignal>
#include <cstdint>

namespace uptempo::vgpu {

// Looks at a fault (never at a signal that somebody sent) on the thread that faulted, with every signal blocked but SIGSYS (a program may trap
// the system calls that clients make). True: it is settled, and the thread goes on as the context says.
using FaultClient = bool (*)(int signal_number, const siginfo_t& info, ucontext_t& context) noexcept;

// The order in which clients are asked. A doorbell rings most often, and finding out that a fault is not one costs nothing.
enum class FaultRank : uint8_t { doorbell, host_pages, lost_memory };

// The client of that rank from now on; makes sure that the handler is in front.
void install_fault_chain(FaultRank rank, FaultClient client) noexcept;

// sigaction(SIGSEGV or SIGBUS) of the program: replaces and reads the action that faults of its own go to. Either pointer may be null.
// False: nothing done, the signal is another one or no handler is installed; the caller uses the real sigaction().
bool replace_program_action(int signal_number, const struct sigaction* action,
                            struct sigaction* previous) noexcept;

// A copy of `mask` without SIGSEGV, for what the program wants blocked: a fault that is blocked ends the process, and ringing a sleeping device is a fault.
sigset_t block_all_but_segv(const sigset_t& mask) noexcept;

}  // namespace uptempo::vgpu
