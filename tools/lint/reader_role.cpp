#include "tools/lint/reader_role.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uptempo::lint {
namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

bool has_membarrier() noexcept {
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return registered;
}

}  // namespace

ReaderRole::ReaderRole(bool biased) noexcept
    : phase_(biased && has_membarrier() ? Phase::owned : Phase::shared) {}

// True once all threads use the exchange.
bool ReaderRole::share() noexcept {
  Phase phase = phase_.load(std::memory_order_acquire);
  if (phase == Phase::owned &&
      phase_.compare_exchange_strong(phase, Phase::changing, std::memory_order_seq_cst)) {
    const bool done = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    // Without it the owner stays the only reader.
    phase_.store(done ? Phase::shared : Phase::owned, std::memory_order_seq_cst);
    return done;
  }
  return phase == Phase::shared;
}

ReaderRole::Taken ReaderRole::take_slowly() noexcept {
  Thread nobody = nullptr;
  if (phase_.load(std::memory_order_relaxed) == Phase::owned &&
      (owner_.compare_exchange_strong(nobody, this_thread(), std::memory_order_relaxed) ||
       nobody == this_thread()))
    return take_owned();
  if (!share()) return Taken::no;
  if (reads_.load(std::memory_order_relaxed) || reads_.exchange(true, std::memory_order_acquire))
    return Taken::no;
  if (owner_reads_.load(std::memory_order_acquire)) {  // it has not yet seen the new phase
    reads_.store(false, std::memory_order_release);
    return Taken::no;
  }
  return Taken::shared;
}

}  // namespace uptempo::lint
