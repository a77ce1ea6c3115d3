// StreamPriority: the priority of a stream's packets relative to other streams.
#pragma once

#include <cstdint>

namespace uptempo {

// The driver's three levels (hsa_amd_queue_set_priority).
enum class StreamPriority : uint8_t { low, normal, high };

}  // namespace uptempo
