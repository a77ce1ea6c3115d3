#include <uptempo/hip/stream_check.hpp>

#include <fmt/format.h>

#include <uptempo/hip/device_agent.hpp>
#include <uptempo/hip/status.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {
namespace {

int device_of(hipStream_t stream) {
  int device = 0;
  if (stream == nullptr || stream == hipStreamPerThread) {
    check(hipGetDevice(&device), "hipGetDevice");
    return device;
  }
#if HIP_VERSION >= 60000000
  check(hipStreamGetDevice(stream, &device), "hipStreamGetDevice");
  return device;
#else
  return hipGetStreamDeviceId(stream);
#endif
}

}  // namespace

StreamFacts check_stream(hipStream_t stream) {
  StreamFacts facts;
  if (stream != nullptr) {
    unsigned flags = 0;
    // First: HIP 5.2 finds a destroyed stream here, and uses it elsewhere.
    check(hipStreamGetFlags(stream, &flags), "hipStreamGetFlags", "a HIP stream",
          "pass a stream that has not been destroyed");
    facts.follows_others = (flags & hipStreamNonBlocking) == 0;
  }
  hipStreamCaptureStatus capture = hipStreamCaptureStatusNone;
  check(hipStreamIsCapturing(stream, &capture), "hipStreamIsCapturing", "a HIP stream",
        "end the capture first");
  if (capture != hipStreamCaptureStatusNone) {
    throw Error({.code = ErrorCode::misuse,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "hip::after",
                 .asked = "a wait on the device between a HIP stream and a queue",
                 .found = "the stream is being captured, and HIP cannot capture such a wait",
                 .remedy = "end the capture first, or wait outside of it"});
  }
  facts.device = device_of(stream);
  return facts;
}

StreamFacts check_stream(hipStream_t stream, const Agent& agent) {
  const StreamFacts facts = check_stream(stream);
  if (!(agent_of(facts.device) == agent)) {
    throw Error(
        {.code = ErrorCode::argument,
         .status = HSA_STATUS_ERROR_INVALID_AGENT,
         .call = "hip::after",
         .asked = fmt::format("a wait between a stream of HIP device {} and a queue", facts.device),
         .found = "the queue is of another agent",
         .remedy = "create the queue for hip::agent(runtime, device)"});
  }
  return facts;
}

int device_of(const Agent& agent) {
  int count = 0;
  check(hipGetDeviceCount(&count), "hipGetDeviceCount");
  for (int device = 0; device < count; ++device)
    if (agent_of(device) == agent) return device;
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = "hip::after",
               .asked = "the HIP device of a queue's agent",
               .found = fmt::format("none of HIP's {} devices", count),
               .remedy = "check HIP_VISIBLE_DEVICES"});
}

bool is_complete(hipEvent_t event) {
  const hipError_t status = hipEventQuery(event);
  if (status == hipSuccess) return true;
  if (status != hipErrorNotReady)
    throw_status(status, "hipEventQuery", "a HIP event",
                 "pass an event that exists and was not recorded in a captured stream");
  forget_not_ready();
  return false;
}

bool is_idle(hipStream_t stream, const StreamFacts& facts) {
  if (facts.follows_others) return false;
  const hipError_t status = hipStreamQuery(stream);
  if (status == hipSuccess) return true;
  if (status != hipErrorNotReady) throw_status(status, "hipStreamQuery", "a HIP stream", {});
  forget_not_ready();
  return false;
}

void forget_not_ready() {
  if (hipPeekAtLastError() == hipErrorNotReady) (void)hipGetLastError();
}

}  // namespace uptempo::hip
