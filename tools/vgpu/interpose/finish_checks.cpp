// Ends the fence checker after the program's own exit handlers. The order holds because this
// library is loaded first and unloaded last.
#include "kfd/process.hpp"

namespace {

namespace kfd = uptempo::vgpu::kfd;

[[gnu::destructor]] void finish() {
  if (kfd::Process* const process = kfd::Process::existing()) process->finish_checks();
}

}  // namespace
