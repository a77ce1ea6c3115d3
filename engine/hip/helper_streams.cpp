#include <uptempo/hip/helper_streams.hpp>

#include <memory>

#include <uptempo/hip/current_device.hpp>
#include <uptempo/hip/per_device.hpp>
#include <uptempo/hip/status.hpp>
#include <uptempo/hip/stream_check.hpp>

namespace uptempo::hip {

HelperStreams& HelperStreams::of(int device) {
  static constinit PerDevice<HelperStreams> all;
  return all.of(
      device, [](int number) { return std::unique_ptr<HelperStreams>(new HelperStreams(number)); });
}

// Requires mutex_.
hipStream_t HelperStreams::next() {
  for (hipStream_t& stream : streams_) {
    if (stream == nullptr) {
      const CurrentDevice current(device_);
      check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags",
            "a helper stream");
      return stream;
    }
    const hipError_t status = hipStreamQuery(stream);
    if (status == hipSuccess) return stream;
    if (status != hipErrorNotReady) throw_status(status, "hipStreamQuery", "a helper stream", {});
    forget_not_ready();
  }
  return streams_[turn_++ % kStreams];
}

}  // namespace uptempo::hip
