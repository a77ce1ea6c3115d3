#include "test/engine/faults/inherited.hpp"

#include <algorithm>
#include <span>

namespace uptempo::faults {

Inherited::Inherited(const Agent& gpu, Queue& queue, const Fill& fill, std::span<uint32_t> words,
                     const Signal& gate)
    : queue_(queue),
      fill_(fill),
      words_(words.data()),
      host_(kWords),
      device_(gpu, kWords),
      common_(gpu),
      member_(common_.producer()),
      streams_(gpu),
      idle_(streams_),
      busy_(streams_),
      copier_(gpu),
      recording_(queue) {
  node_.emplace(recording_.dispatch(fill, Grid{kWords}, words_, 1u));
  {
    BatchSubmitter batch{queue};
    batch.after(gate);
    batch.dispatch(fill, Grid{kWords}, words_, 2u);
    unfinished_ = batch.submit();
  }
  begun_.emplace(queue);
  begun_->dispatch(fill, Grid{kWords}, words_, 3u);
  busy_.after(gate.handle());
  busy_.launch(fill, Grid{kWords}, device_.data(), 4u);
  event_ = busy_.record();
}

bool Inherited::are_refused(
    const std::function<bool(const char* what, const std::function<void()>& use)>& is_refused) {
  bool all = true;
  const auto refuses = [&](const char* what, const std::function<void()>& use) {
    all = is_refused(what, use) && all;
  };
  const auto submit_to = [&](Queue& queue) {
    BatchSubmitter batch{queue};
    batch.dispatch(fill_, Grid{kWords}, words_, 5u);
    (void)batch.submit();
  };
  refuses("a batch", [&] { submit_to(queue_); });
  refuses("a batch of a shared queue", [&] { submit_to(member_); });
  refuses("more of a batch", [&] { begun_->dispatch(fill_, Grid{kWords}, words_, 5u); });
  refuses("the submission of a batch", [&] { (void)begun_->submit(); });
  refuses("a replay", [&] { (void)recording_.replay(queue_); });
  refuses("a change of a recording", [&] { recording_.set<1>(*node_, 5u); });
  refuses("the end of a submission", [&] { unfinished_.wait(); });
  refuses("a launch", [&] { idle_.launch(fill_, Grid{kWords}, device_.data(), 5u); });
  refuses("a launch after another", [&] { busy_.launch(fill_, Grid{kWords}, device_.data(), 5u); });
  refuses("a wait for an event", [&] { event_.wait(); });
  refuses("the end of a stream", [&] { busy_.synchronize(); });
  refuses("a stream", [&] { const Stream another{streams_}; });
  refuses("a stream's copy", [&] { idle_.copy(std::span(host_), device_); });
  refuses("a copy", [&] { copier_.copy(host_, device_); });
  return all;
}

bool Inherited::work(Deadline deadline) {
  const auto are = [](std::span<const uint32_t> words, uint32_t value) {
    return std::ranges::count(words, value) == std::ssize(words);
  };
  const std::span<const uint32_t> words(words_, kWords);
  return unfinished_.wait(deadline) && are(words, 2) && begun_->submit().wait(deadline) &&
         are(words, 3) && recording_.replay(queue_).wait(deadline) && are(words, 1) &&
         busy_.synchronize(deadline) && (copier_.copy(host_, device_), true) && are(host_, 4);
}

}  // namespace uptempo::faults
