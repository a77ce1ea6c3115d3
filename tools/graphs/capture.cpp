#include "tools/graphs/capture.hpp"

#include <atomic>

#include "tools/graphs/copy_ledger.hpp"

namespace uptempo::graphs {
namespace {

// Relaxed: a thread that captures has begun the capture itself, or was told so by its program.
std::atomic<int> captures{0};
thread_local bool inside = false;

}  // namespace

void capture_begun() noexcept { captures.fetch_add(1, std::memory_order_relaxed); }
void capture_ended() noexcept { captures.fetch_sub(1, std::memory_order_relaxed); }

bool is_capturing(hipStream_t stream) noexcept {
  if (captures.load(std::memory_order_relaxed) == 0) return false;
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  return hipStreamIsCapturing(stream, &status) == hipSuccess &&
         status != hipStreamCaptureStatusNone;
}

std::vector<hipGraphNode_t> captured_dependencies(hipStream_t stream) {
  hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
  unsigned long long id = 0;
  hipGraph_t graph = nullptr;
  const hipGraphNode_t* nodes = nullptr;
  size_t count = 0;
  if (hipStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &count) != hipSuccess)
    CopyLedger::instance().lose_track("HIP does not say what a captured stream depends on");
  if (status != hipStreamCaptureStatusActive) return {};
  return {nodes, nodes + count};
}

CapturedCall::CapturedCall(hipStream_t stream) : stream_(stream) {
  if (inside || !is_capturing(stream)) return;
  inside = active_ = true;
  before_ = captured_dependencies(stream);
}

CapturedCall::~CapturedCall() {
  if (active_) inside = false;
}

std::optional<hipGraphNode_t> CapturedCall::added() const {
  const std::vector<hipGraphNode_t> after = captured_dependencies(stream_);
  // A call that copies nothing adds nothing.
  if (after == before_ || after.size() != 1) return std::nullopt;
  return after.front();
}

}  // namespace uptempo::graphs
