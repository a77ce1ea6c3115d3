// Follows calls in streams that are being captured: finds the node that a call adds.
#pragma once

#include <optional>
#include <vector>

#include <uptempo/hip/api/hip_api.hpp>

namespace uptempo::graphs {

// Number of begun captures. The functions that begin and end captures count them.
void capture_begun() noexcept;
void capture_ended() noexcept;
// Whether the stream is being captured. Cost without any capture in the process: one load.
bool is_capturing(hipStream_t stream) noexcept;

// The nodes that the next captured call of a stream depends on. Empty without a capture.
std::vector<hipGraphNode_t> captured_dependencies(hipStream_t stream);

// Around one call of the program that may add a node to a captured stream. Calls of HIP's functions
// by each other are not followed again.
//
// Thread safety: one owner.
class CapturedCall {
 public:
  explicit CapturedCall(hipStream_t stream);
  ~CapturedCall();
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  // Whether the stream is captured; if not, there is nothing to record.
  bool active() const noexcept { return active_; }
  // After a call that succeeded: the node that it added, if it added one.
  std::optional<hipGraphNode_t> added() const;

 private:
  hipStream_t stream_;
  bool active_ = false;
  std::vector<hipGraphNode_t> before_;
};

}  // namespace uptempo::graphs
