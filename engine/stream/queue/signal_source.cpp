#include "engine/stream/queue/signal_source.hpp"

#include "engine/runtime/error.hpp"

namespace uptempo::detail {

std::optional<SignalSource::Borrowed> SignalSource::borrow_in_time(uint64_t value, std::chrono::nanoseconds patience,
                                                     const std::function<void()>& ask) {
  for (std::optional<Deadline> deadline;;) {
    std::optional<Borrowed> signal = borrow(value);
    if (!signal || signal->signal.handle != 0) return signal;
    if (!deadline) deadline = Deadline::after(patience);
    if (deadline->passed()) {
      throw Error(
          {.status = HSA_STATUS_ERROR_OUT_OF_RESOURCES,
           .call = "Stream::wait",
           .asked = "a completion signal of another queue, for packets to wait for",
           .found = "packets of other queues wait for all those that it may lend, and have not come up",
           .remedy = "wait in the host, or make the Streams with more QueueOptions::publications"});
    }
    if (ask) ask();
    // None is needed when the event is complete.
    source_timeline().wait(value, {}, Deadline::after(std::chrono::milliseconds(1)));
  }
}

}  // namespace uptempo::detail
