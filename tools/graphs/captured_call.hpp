// Calls HIP's function and records what it added to a captured stream.
#pragma once

#include <optional>
#include <string>

#include "tools/graphs/capture.hpp"
#include "tools/graphs/copy_ledger.hpp"
#include "tools/graphs/guarded.hpp"
#include "tools/graphs/original.hpp"

namespace uptempo::graphs {

// `call` calls HIP's function; `enter` records the node that it added.
template <class Call, class Enter>
hipError_t follow(hipStream_t stream, Call call, Enter enter) noexcept {
  std::optional<CapturedCall> capture;
  guarded([&] { capture.emplace(stream); });
  const hipError_t status = call();
  if (status == hipSuccess && capture && capture->active())
    guarded([&] {
      const KeepLastError keep;
      if (const auto node = capture->added()) enter(*node);
    });
  return status;
}

template <class Call>
hipError_t follow_copy(hipStream_t stream, Call call, const hipMemcpy3DParms& copy) noexcept {
  return follow(stream, call,
                [&](hipGraphNode_t node) { CopyLedger::instance().record(node, copy); });
}

// A call whose node HIP does not describe in full.
template <class Call>
hipError_t follow_unknown(const char* name, hipStream_t stream, Call call) noexcept {
  return follow(stream, call, [&](hipGraphNode_t node) {
    CopyLedger::instance().record_unknown(
        node, std::string("HIP does not describe the node of a captured ") + name);
  });
}

// The stream of a function for per-thread default streams.
inline hipStream_t per_thread(hipStream_t stream) noexcept {
  return stream == nullptr ? hipStreamPerThread : stream;
}

}  // namespace uptempo::graphs
