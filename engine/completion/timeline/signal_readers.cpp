#include "engine/completion/timeline/signal_readers.hpp"

#include "aql/pause.hpp"

namespace uptempo::detail {

bool SignalReaders::enter() noexcept {
  // First check without counting, so that threads that poll in a loop cannot delay
  // wait_for_last().
  if (closed()) return false;
  // Sequentially consistent, like the store in close() and the load in wait_for_last(): one of the
  // two sees the other.
  inside_.fetch_add(1, std::memory_order_seq_cst);
  if (!closed_.load(std::memory_order_seq_cst)) return true;
  leave();
  return false;
}

void SignalReaders::wait_for_last() const noexcept {
  for (aql::Pause pause(Deadline::never()); inside_.load(std::memory_order_seq_cst) != 0;)
    pause.wait();
}

}  // namespace uptempo::detail
