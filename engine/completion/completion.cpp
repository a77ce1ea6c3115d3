#include <uptempo/completion/completion.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/attempt.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {

void Completion::throw_failure() const {
  const Failure failure = timeline_->failure();
  throw Error({.code = failure.code(),
               .status = failure.status,
               .call = "Completion",
               .asked = fmt::format("publication {} of the queue", value_),
               .found = failure.text,
               .remedy = fmt::format("{}; work of this queue that had not completed is lost",
                                     remedy(failure))});
}

void Completion::wait(WaitPolicy policy) const {
  if (!wait(Deadline::never(), policy)) throw_failure();
}

bool Completion::wait(Deadline deadline, WaitPolicy policy) const {
  if (timeline_ == nullptr) return true;
  switch (timeline_->wait(value_, policy, deadline)) {
    case WaitResult::done:
      return true;
    case WaitResult::timed_out:
      return false;
    case WaitResult::failed:
      break;
  }
  throw_failure();
}

Tried<> Completion::try_wait(Deadline deadline, WaitPolicy policy) const {
  return detail::attempt([&]() -> Tried<> {
    if (wait(deadline, policy)) return std::monostate{};
    return Refusal(ErrorCode::deadline, "Completion::try_wait");
  });
}

bool detail::is_finished(const Completion& completion) noexcept {
  return is_done(completion) || timeline_of(completion)->failed();
}

bool detail::is_ready(const Completion& completion) {
  if (is_done(completion)) return true;
  if (!completion.timeline_->failed()) return false;
  if (is_done(completion)) return true;
  completion.throw_failure();
}

bool Completion::ready() const {
  if (!detail::is_done(*this)) Timeline::find_failed_copies();
  return detail::is_ready(*this);
}

std::vector<PacketTime> Completion::times() const {
  if (!ready()) {
    throw Error({.code = ErrorCode::misuse,
                 .status = HSA_STATUS_ERROR,
                 .call = "Completion::times",
                 .asked = fmt::format("device times of publication {}", value_),
                 .found = "it is not complete",
                 .remedy = "wait for it before reading its times"});
  }
  if (timeline_ == nullptr) return {};
  std::vector<PacketTime> times = timeline_->times(value_);
  if (std::ranges::any_of(times, [](const PacketTime& time) { return time.end_ns == 0; }))
    detail::throw_no_times("Completion::times",
                           fmt::format("device times of publication {}", value_));
  return times;
}

}  // namespace uptempo
