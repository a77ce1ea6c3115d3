// StateAccess: the one friend of Queue, Recording, Streams and Stream. It makes objects from states
// that work without ROCr, and reads which hardware queue a stream uses.
#pragma once

#include <hsa/hsa.h>

#include <memory>
#include <utility>

#include <uptempo/dispatch/batch_queue.hpp>
#include <uptempo/recording/recording_state.hpp>
#include <uptempo/stream/queue/stream_queue.hpp>
#include <uptempo/stream/stream.hpp>
#include <uptempo/stream/streams_state.hpp>

namespace uptempo::detail {

struct StateAccess {
  static Queue queue(std::unique_ptr<BatchQueue> state) { return Queue(std::move(state)); }
  static std::unique_ptr<Recording> recording(std::unique_ptr<RecordingState> state) {
    return std::unique_ptr<Recording>(new Recording(std::move(state)));
  }
  static std::unique_ptr<Streams> streams(std::shared_ptr<StreamsState> state) {
    return std::unique_ptr<Streams>(new Streams(std::move(state)));
  }
  static hsa_queue_t* hardware_queue(const Stream& stream) { return stream.queue_->handle(); }
  static bool has_own_queue(const Stream& stream) { return stream.owns_queue_; }
};

}  // namespace uptempo::detail

namespace uptempo::test {

inline hsa_queue_t* hardware_queue(const Stream& stream) {
  return detail::StateAccess::hardware_queue(stream);
}
inline bool has_own_queue(const Stream& stream) {
  return detail::StateAccess::has_own_queue(stream);
}

}  // namespace uptempo::test
