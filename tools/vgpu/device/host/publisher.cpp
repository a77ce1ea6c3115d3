#include "device/host/publisher.hpp"

#include <atomic>

namespace uptempo::vgpu {
namespace {

// The doorbell's fault handler reads it, and must not allocate: the library that contains this is
// loaded at the program's start, so the variable has its place.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::atomic<HipStream> stream_of_call{
    HipStream::unknown};

}  // namespace

// relaxed throughout: only the thread itself and its signal handlers use the variable
bool begin_hip_call(HipStream stream) noexcept {
  if (stream_of_call.load(std::memory_order_relaxed) != HipStream::unknown) return false;
  stream_of_call.store(stream, std::memory_order_relaxed);
  return true;
}

void end_hip_call() noexcept {
  stream_of_call.store(HipStream::unknown, std::memory_order_relaxed);
}

HipStream calling_stream() noexcept { return stream_of_call.load(std::memory_order_relaxed); }

}  // namespace uptempo::vgpu
