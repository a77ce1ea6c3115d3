#include "engine/stream/queue/signal_source.hpp"

#include "engine/runtime/error.hpp"

namespace uptempo::detail {

std::optional<SignalSource::Borrowed> SignalSource::borrow_in_time(
    uint64_t value, std::chrono::nanoseconds patience, const std::function<void()>& on_shortage) {
  for (std::optional<Deadline> deadline;;) {
    std::optional<Borrowed> signal = borrow(value);
    if (!signal || signal->signal.handle != 0) return signal;
    if (!deadline) deadline = Deadline::after(patience);
    if (deadline->passed()) {
      throw Error(
          {.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
           .call = "Stream::wait",
           .asked = "a completion signal of another queue, for packets to wait for",
           .found = "packets of other queues still wait on every signal that the queue may lend",
           .remedy =
               "wait on the host, or create the Streams with more QueueOptions::publications"});
    }
    if (on_shortage) on_shortage();
    // If the event completes, no signal is needed.
    source_timeline().wait(value, {}, Deadline::after(std::chrono::milliseconds(1)));
  }
}

}  // namespace uptempo::detail
