#include "engine/stream/queue/event.hpp"

#include "engine/completion/timeline/kept_times.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {

TimedEvent::TimedEvent() : time_(std::make_shared<detail::EventTime>()) {}

uint64_t TimedEvent::ns() const {
  const bool is_complete = ready();  // throws if its queue has failed
  // times() reads the times of an epoch that has not been reclaimed.
  if (is_complete && !time_->ns()) completion().times();
  const std::optional<uint64_t> ns = time_->ns();
  if (ns == uint64_t{0}) detail::throw_no_times("TimedEvent::ns", "the time of an event");
  if (ns && is_complete) return *ns;
  throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
               .call = "TimedEvent::ns",
               .asked = "the time of an event",
               .found = is_complete ? "it was never recorded" : "it is not complete",
               .remedy = "record it, and wait for it first"});
}

}  // namespace uptempo
