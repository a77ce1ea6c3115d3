#include <uptempo/hip/wait.hpp>

#include <fmt/format.h>

#include <optional>
#include <utility>

#include <uptempo/aql/packet.hpp>
#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/hip/completed_signal.hpp>
#include <uptempo/hip/current_device.hpp>
#include <uptempo/hip/device_waits.hpp>
#include <uptempo/hip/helper_streams.hpp>
#include <uptempo/hip/status.hpp>
#include <uptempo/hip/stream_check.hpp>
#include <uptempo/hip/words.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {
namespace {

using aql::Barrier;
using aql::FenceScope;
using detail::CompletedSignal;

// The queue's or stream's later packets wait until the word is 0. Returns the completion of the
// packet that waits.
Completion put_wait(Queue& queue, Word word) {
  BatchSubmitter batch(queue);
  batch.raw(
      aql::to_packet(aql::BarrierAnd{.flags = {Barrier::on, FenceScope::system, FenceScope::none},
                                     .dependencies = {word.signal()}}));
  return batch.submit();
}
Completion put_wait(Stream& stream, Word word) {
  stream.after(word.signal(), SignalSetBy::device);
  return stream.record().completion();
}

// A packet after the earlier ones decrements the word. Returns its completion.
Completion put_signal(Queue& queue, Word word) {
  BatchSubmitter batch(queue);
  batch.raw(
      aql::to_packet(aql::BarrierAnd{.flags = {Barrier::on, FenceScope::none, FenceScope::system},
                                     .completion_signal = word.signal()}));
  return batch.submit();
}
Completion put_signal(Stream& stream, Word word) {
  stream.signal(word.signal());
  return stream.record().completion();
}

// Throws Error if the queue has failed. Streams check themselves.
void check_failed(const Queue& queue) { (void)queue.last_submitted().ready(); }
void check_failed(const Stream&) noexcept {}

// True if HIP's kernels may begin. Never for a stream: HIP does not invalidate its caches for the
// copies of others, so a packet does.
bool is_over(const Queue& queue) { return queue.last_submitted().ready(); }
bool is_over(const Stream&) noexcept { return false; }

// HIP's work is complete; its copies may have changed what caches hold. Batches begin with an
// acquire of system scope.
void see_writes(const Queue&) noexcept {}
void see_writes(Stream& stream) noexcept { stream.host_wrote(); }

// HIP writes the word when the stream's work so far is complete.
void write_zero(hipStream_t stream, Words& words, Word word) {
  const hipError_t status = hipStreamWriteValue64(stream, word.address, 0, 0);
  if (status == hipSuccess) return;
  words.give_back(word);
  throw_status(status, "hipStreamWriteValue64", "a write of 8 bytes by a stream", {});
}

// The stream's later work follows the packet that decrements the word.
void wait_for_sign(hipStream_t stream, Word word) {
  check(hipStreamWaitValue64(stream, word.address, Words::kSign, hipStreamWaitValueAnd, ~0ull),
        "hipStreamWaitValue64", "a stream's wait for 8 bytes");
  check(hipStreamWriteValue64(stream, word.address, Words::kFree, 0), "hipStreamWriteValue64",
        "a write of 8 bytes by a stream");
}

// An event that lives as long as HIP needs it: HIP keeps what was enqueued with it.
class ShortEvent {
 public:
  ShortEvent() {
    check(hipEventCreateWithFlags(&event_, hipEventDisableTiming), "hipEventCreateWithFlags");
  }
  ~ShortEvent() { (void)hipEventDestroy(event_); }
  ShortEvent(const ShortEvent&) = delete;
  ShortEvent& operator=(const ShortEvent&) = delete;
  operator hipEvent_t() const { return event_; }

 private:
  hipEvent_t event_ = nullptr;
};

template <class Mine>
void wait_for_event(Mine& mine, hipEvent_t event);
template <class Mine>
void record_after(hipEvent_t event, Mine& mine);

template <class Mine>
void wait_for_stream(Mine& mine, hipStream_t stream) {
  const StreamFacts facts = check_stream(stream, mine.agent());
  check_failed(mine);
  if (is_idle(stream, facts)) return see_writes(mine);
  if (stream == hipStreamPerThread) {  // which HIP 5.2's stream memory operations do not know
    const ShortEvent event;
    check(hipEventRecord(event, stream), "hipEventRecord");
    return wait_for_event(mine, event);
  }
  Words& words = Words::of(facts.device);
  const Word word = words.take(1);
  write_zero(stream, words, word);
  // If this throws, the word is not used again: a packet may wait for it.
  words.expect_read(word, put_wait(mine, word));
}

template <class Mine>
void wait_in_stream(hipStream_t stream, Mine& mine) {
  const StreamFacts facts = check_stream(stream, mine.agent());
  if (is_over(mine)) return;
  if (stream == hipStreamPerThread) {
    const ShortEvent event;
    record_after(event, mine);
    check(hipStreamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
    return;
  }
  Words& words = Words::of(facts.device);
  CompletedSignal::Place place;
  const Word word = words.take(0);
  // If this throws, the word is not used again: a packet may decrement it.
  words.expect_ack(word, put_signal(mine, word), std::move(place));
  wait_for_sign(stream, word);
}

template <class Mine>
void wait_for_event(Mine& mine, hipEvent_t event) {
  check_failed(mine);
  if (is_complete(event)) return see_writes(mine);
  HelperStreams::of(device_of(mine.agent())).with([&](hipStream_t stream) {
    check(hipStreamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
    wait_for_stream(mine, stream);
  });
}

template <class Mine>
void record_after(hipEvent_t event, Mine& mine) {
  HelperStreams::of(device_of(mine.agent())).with([&](hipStream_t stream) {
    wait_in_stream(stream, mine);
    check(hipEventRecord(event, stream), "hipEventRecord", "a HIP event",
          "pass an event of the queue's device");
  });
}

// Returns a word that is decremented after the publication. Empty if that has finished meanwhile.
std::optional<Word> take_sign_of(const Completion& awaited, int device) {
  Words& words = Words::of(device);
  CompletedSignal::Place place;
  const Word word = words.take(0);
  std::optional<Completion> packet;
  try {
    packet = DeviceWaits::of(device).decrement(word, awaited);
  } catch (...) {  // no packet is published
    words.give_back(word);
    throw;
  }
  if (packet) {
    words.expect_ack(word, *packet, std::move(place));
    return word;
  }
  if (CompletedSignal::fate_of(awaited) != CompletedSignal::Fate::unfinished) {
    words.give_back(word);
    return {};
  }
  words.complete_after(word, awaited);
  return word;
}

// Makes HIP's later kernels of the stream begin with clean caches: copy engines may have written
// what caches hold. HIP's event packets acquire at system scope.
void acquire_system(hipStream_t stream) {
  const ShortEvent event;
  check(hipEventRecord(event, stream), "hipEventRecord");
}

}  // namespace

void after(Queue& queue, hipStream_t stream) { wait_for_stream(queue, stream); }
void after(hipStream_t stream, Queue& queue) { wait_in_stream(stream, queue); }
void after(Queue& queue, hipEvent_t event) { wait_for_event(queue, event); }
void record(hipEvent_t event, Queue& queue) { record_after(event, queue); }
void after(Stream& stream, hipStream_t awaited) { wait_for_stream(stream, awaited); }
void after(hipStream_t stream, Stream& awaited) { wait_in_stream(stream, awaited); }
void after(Stream& stream, hipEvent_t awaited) { wait_for_event(stream, awaited); }
void record(hipEvent_t event, Stream& awaited) { record_after(event, awaited); }

void after(hipStream_t stream, const Completion& awaited) {
  const StreamFacts facts = check_stream(stream);
  const CurrentDevice current(facts.device);
  if (!awaited.ready()) {
    if (stream == hipStreamPerThread) {
      const ShortEvent event;
      record(event, awaited);
      check(hipStreamWaitEvent(stream, event, 0), "hipStreamWaitEvent");
    } else {
      if (const std::optional<Word> word = take_sign_of(awaited, facts.device))
        wait_for_sign(stream, *word);
    }
  }
  acquire_system(stream);
}

void after(hipStream_t stream, const Event& awaited) { after(stream, awaited.completion()); }

void record(hipEvent_t event, const Completion& awaited) {
  int device = 0;
  check(hipGetDevice(&device), "hipGetDevice");
  HelperStreams::of(device).with([&](hipStream_t stream) {
    after(stream, awaited);
    check(hipEventRecord(event, stream), "hipEventRecord", "a HIP event",
          "pass an event of the current device");
  });
}

void record(hipEvent_t event, const Event& awaited) { record(event, awaited.completion()); }

}  // namespace uptempo::hip
