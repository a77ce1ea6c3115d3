// Reports of QueueResources about its last submissions.
#include <fmt/format.h>

#include "engine/dispatch/queue_resources.hpp"

namespace uptempo::detail {

FlightLog QueueResources::flight_log(FlightScope scope) const {
  return read_flight_log({.records = flight_,
                          .writer = *writer_,
                          .timeline = timeline_,
                          .agent = agent_ ? agent_->handle() : hsa_agent_t{},
                          .agent_name = agent_ ? agent_->name() : std::string()},
                         scope);
}

std::string QueueResources::first_unfinished() const {
  const std::string text = timeline_.describe_unfinished();
  return text.empty() ? text : "; first unfinished: " + text;
}

std::string QueueResources::flight_name() const {
  const uint64_t number = handle()->id;
  return agent_ ? fmt::format("queue {} of {}", number, agent_->name())
                : fmt::format("queue {}", number);
}

}  // namespace uptempo::detail
