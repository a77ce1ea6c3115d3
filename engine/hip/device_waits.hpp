// DeviceWaits: packets of the library that wait for a publication of any queue and then decrement a
// word, on the device. Private to engine/hip.
//
// Each HIP device has kQueues queues of the library for it. A queue takes a wait if its earlier
// ones are over, or if their publications are of the same queue and complete no later. So no wait
// is held up by another queue's work, and cannot deadlock with it. Otherwise the caller takes the
// completion thread.
//
// Thread safety: any thread. A lock per device is held while packets are published, and while a
// queue is created: at its first use, and after a failure or the end of a Runtime.
// Lifetime: the objects live until the end of the process. Their queues belong to the Runtime that
// was running when they were created, and end with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <uptempo/completion/lent_signal.hpp>
#include <uptempo/dispatch/batch_submitter.hpp>
#include <uptempo/dispatch/queue.hpp>
#include <uptempo/hip/words.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::hip {

class DeviceWaits {
 public:
  static constexpr size_t kQueues = 4;  // as many as HIP's hardware queues

  // Throws Error for a device beyond the supported number.
  static DeviceWaits& of(int device);

  // Decrements the word, which holds 0, when the publication is complete. Returns the completion of
  // the packet that does so: it is lost with the awaited publication. Empty if nothing was
  // published: no queue may take the wait, or the signal is not lent (lent_signal.hpp). Throws
  // std::bad_alloc; then a packet may still decrement the word.
  std::optional<Completion> decrement(Word word, const Completion& awaited);

  DeviceWaits(const DeviceWaits&) = delete;
  DeviceWaits& operator=(const DeviceWaits&) = delete;

 private:
  struct Line {
    std::shared_ptr<Session> session;
    std::optional<Queue> queue;
    std::optional<BatchSubmitter> batch;
    Completion awaited{};  // by the last packets
    Completion packets{};  // the last ones

    bool has_ended() const;
    bool takes(const Completion& wait) const;
    void open(int device);
    void close();
    bool publish(hsa_signal_t awaited_signal, Word word);
  };
  explicit DeviceWaits(int device) : device_(device) {}

  const int device_;
  std::mutex mutex_;
  std::array<Line, kQueues> lines_;
};

}  // namespace uptempo::hip
