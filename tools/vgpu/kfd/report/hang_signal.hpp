// SIGQUIT asks for a hang report, as in a Go program, while the program leaves the signal its
// default action. It then does not end the program; SIGTERM and SIGKILL do.
//
// A program that sets an action of its own, SIG_DFL and SIG_IGN included, has that action from then
// on. It reads back the default action while the handler is here. A fork child inherits the handler
// without a device; SIGQUIT ends it as the default action does, until the child has a queue of its
// own.
//
// Not covered: actions set by raw system calls, which displace the handler unseen.
// Thread safety: any thread.
#pragma once

#include <semaphore.h>

#include <csignal>

namespace uptempo::vgpu::kfd {

// Installs the handler if SIGQUIT has its default action. The handler posts `wake`, which must exist
// until remove_hang_signal(). Returns whether it is installed.
bool install_hang_signal(sem_t& wake) noexcept;
void remove_hang_signal() noexcept;

// The program's sigaction(). Returns false, without effect, for other signals.
bool replace_hang_signal(int signal_number, const struct sigaction* action,
                         struct sigaction* previous) noexcept;

}  // namespace uptempo::vgpu::kfd
