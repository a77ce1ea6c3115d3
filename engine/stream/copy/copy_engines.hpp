// The choice of copy engines (SDMA) for the copies of a Streams. Private to engine/stream and its
// tests.
//
// Where ROCr offers a choice (hsa_amd_memory_async_copy_on_engine, from ROCr 5.6), the library
// chooses the engine of every copy between the host and the GPU:
//   by link  Engines that face the host link, not those for XGMI links; fewer if ROCr prefers some
//            of them (hsa_amd_memory_get_preferred_copy_engine, AMD extension 1.8). Engines that
//            ROCr does not report for the direction (hsa_amd_memory_copy_engine_status) are left
//            out: engine 0 of gfx90a copies only to the device. ROCr reports engines that are idle
//            when the Streams is made, so an engine that others keep busy then is left out, too.
//   by load  The engine with the fewest unfinished copies of the Streams. Of equals: engine 0 to
//            the device, engine 1 to the host, as ROCr itself does. A stream whose previous copy is
//            unfinished stays on that copy's engine, because it waits for that copy anyway.
// The runtime decides for other copies. Within the GPU it uses a kernel, and between two GPUs it
// knows the engines of their link. A copy between the host and a peer counts as one between
// devices, because ROCr runs it on the peer.
//
// ROCr's functions for it are found at run time, because older releases and headers lack them. So
// one binary runs with every ROCr.
//
// Each engine is a lane, which all directions share: copies on an engine run one after the other,
// copies on different engines overlap. The order of a stream does not depend on the choice.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <hsa/hsa.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <uptempo/runtime/agent.hpp>

namespace uptempo::detail {

enum class CopyDirection : uint8_t { to_device, to_host, within_device, between_devices };
inline constexpr size_t kCopyDirections = 4;
std::string_view name_of(CopyDirection direction) noexcept;

inline constexpr uint32_t kMostEngines = 16;  // of hsa_amd_sdma_engine_id_t

// The engines of a direction.
struct EngineSet {
  uint32_t mask = 0;       // 0: the runtime decides
  uint32_t favourite = 0;  // first among equals
  std::string reason{};
};
using EngineSets = std::array<EngineSet, kCopyDirections>;

// The set of a direction between host and GPU. `host_engines` is the number of those that face the
// host link, which come first. `idle`, `preferred`: the masks that ROCr reports.
EngineSet choose_engines(CopyDirection direction, uint32_t host_engines, uint32_t idle,
                         uint32_t preferred);
// The runtime decides for both directions between host and GPU.
EngineSets left_to_runtime(std::string_view why);
// Asks ROCr for the engines of copies between host and GPU, or for reasons not to choose among
// them.
EngineSets engines_of(const Agent& gpu, hsa_agent_t host);

// hsa_amd_memory_async_copy_on_engine in hsa_ext_amd.h of ROCr 6.1. engine_id is an enumeration
// there, with one bit per engine. Null: this ROCr lacks it.
using CopyOnEngine = hsa_status_t (*)(void* dst, hsa_agent_t dst_agent, const void* src,
                                      hsa_agent_t src_agent, size_t size, uint32_t num_dep_signals,
                                      const hsa_signal_t* dep_signals,
                                      hsa_signal_t completion_signal, uint32_t engine_id,
                                      bool force_copy_on_sdma);
CopyOnEngine copy_on_engine();

}  // namespace uptempo::detail
