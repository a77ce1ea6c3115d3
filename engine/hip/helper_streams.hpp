// HelperStreams: HIP streams of the library, for waits that need a stream that the caller does not
// give. Private to engine/hip.
//
// Thread safety: any thread. A lock per device is held while commands are enqueued.
// Lifetime: the streams are created at first use and live until the end of the process.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::hip {

class HelperStreams {
 public:
  // Throws Error for a device beyond the supported number.
  static HelperStreams& of(int device);

  // Calls f(stream) with a non-blocking stream that no other thread uses meanwhile: one whose work
  // is complete, or after kStreams unfinished ones the one that was used least recently.
  // Throws Error.
  template <class F>
  void with(F&& f) {
    const std::lock_guard lock(mutex_);
    f(next());
  }

  HelperStreams(const HelperStreams&) = delete;
  HelperStreams& operator=(const HelperStreams&) = delete;

 private:
  static constexpr size_t kStreams = 4;  // as many as HIP's hardware queues
  explicit HelperStreams(int device) : device_(device) {}
  hipStream_t next();

  const int device_;
  std::mutex mutex_;
  std::array<hipStream_t, kStreams> streams_{};
  size_t turn_ = 0;
};

}  // namespace uptempo::hip
