#include "device/waits/redirected_step.hpp"

#include <csignal>

#include "device/host/interrupted_registers.hpp"

namespace uptempo::vgpu {
namespace {

constexpr uint64_t bit(int signal_number) { return uint64_t{1} << (signal_number - 1); }

struct Step {
  bool active = false;
  bool restores = false;
  unsigned base = 0;
  uint64_t distance = 0;
  uint64_t mask = 0;  // the thread's signals before the step
  SteppedAccess stepped;
};
thread_local Step step;

greg_t& base_of(ucontext_t& context) noexcept {
  return context.uc_mcontext.gregs[kRegisters[step.base]];
}

}  // namespace

bool begin_redirected_step(const RedirectableAccess& access, uint64_t distance,
                           const SteppedAccess& stepped, ucontext_t& context) noexcept {
  if (step.active) return false;
  step = {true, !access.base_result, access.base, distance, mask_of(context), stepped};
  base_of(context) = static_cast<greg_t>(static_cast<uint64_t>(base_of(context)) + distance);
  context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
  // No handler of the program runs before the instruction, since it would see the register. The
  // kernel ends a process whose trap or fault is blocked.
  mask_of(context) = ~(bit(SIGTRAP) | bit(SIGSEGV) | bit(SIGBUS));
  return true;
}

std::optional<SteppedAccess> end_redirected_step(ucontext_t& context) noexcept {
  if (!step.active) return std::nullopt;
  step.active = false;
  context.uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
  if (step.restores)
    base_of(context) = static_cast<greg_t>(static_cast<uint64_t>(base_of(context)) - step.distance);
  mask_of(context) = step.mask;
  return step.stepped;
}

}  // namespace uptempo::vgpu
