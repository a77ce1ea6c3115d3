#include <uptempo/hip/completed_signal.hpp>

#include <utility>

#include <uptempo/completion/completion_thread.hpp>

namespace uptempo::detail {

CompletedSignal::CompletedSignal(hsa_signal_t signal, const Completion& completion,
                                 Place&& place) noexcept
    : signal_(signal), completion_(completion) {
  timeline_of(completion_)->complete_too(signal, completion_.value(), std::move(place.list));
}

CompletedSignal::Fate CompletedSignal::fate() noexcept {
  const Fate fate = fate_of(completion_);
  if (fate != Fate::unfinished && timeline_of(completion_) != nullptr)
    timeline_of(completion_)->forget_signal(signal_);
  return fate;
}

void CompletedSignal::await(const Completion& completion, Awaited& item) {
  item.publication = completion;
  CompletionThread::of_process().add(item);
}

CompletedSignal::Fate CompletedSignal::fate_of(const Completion& completion) noexcept {
  Timeline* const timeline = timeline_of(completion);
  if (timeline == nullptr || timeline->is_done(completion.value())) return Fate::complete;
  if (!timeline->failed()) return Fate::unfinished;
  // It may have completed between the two checks.
  return timeline->is_done(completion.value()) ? Fate::complete : Fate::lost;
}

}  // namespace uptempo::detail
