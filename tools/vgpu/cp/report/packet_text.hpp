// A report's words for packets, queues and signals.
#pragma once

#include <string>

#include "cp/report/snapshot.hpp"

namespace uptempo::vgpu {

// "kernel_dispatch spin, grid 64x1x1, workgroup 64x1x1"
std::string packet_text(const PacketSnapshot& packet, const std::string& kernel);
// "barrier bit, acquire agent, release agent, kernarg 0x7f00, completion signal 0x7f40 = 1"
std::string packet_details(const PacketSnapshot& packet);

// "queue 3", or "GPU 1, queue 3" if the process has several GPUs.
std::string queue_text(const QueueSnapshot& queue, bool several_gpus);

// "signal 0x7f00 is 0; it is 1"
std::string condition_text(const Dependency& dependency);
std::string condition_text(const PollSnapshot& poll);

}  // namespace uptempo::vgpu
