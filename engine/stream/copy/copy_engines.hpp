// The choice of copy engines (SDMA) for the copies of a Streams.
//
// Where ROCr offers a choice (hsa_amd_memory_async_copy_on_engine, from ROCr 5.6), the library
// chooses the engine of every copy between the host and the GPU:
//   by link  Engines that face the host link, not those for XGMI links; fewer if ROCr prefers some
//            of them (hsa_amd_memory_get_preferred_copy_engine, AMD extension 1.8). Engines that
//            ROCr does not report for the direction (hsa_amd_memory_copy_engine_status) are left
//            out: engine 0 of gfx90a copies only to the device. ROCr reports engines that are idle
//            at the first copy of a direction, so an engine that others keep busy is left out, too.
//   by load  The engine with the fewest unfinished copies of the Streams. Of equals: engine 0 to
//            the device, engine 1 to the host, as ROCr itself does. A stream whose previous copy is
//            unfinished stays on that copy's engine, because it waits for that copy anyway.
// The runtime decides for other copies. Within the GPU it uses a kernel, and between two GPUs it
// knows the engines of their link. A copy between the host and a peer counts as one between
// devices, because ROCr runs it on the peer.
//
// Each engine is a lane, which all directions share: copies on an engine run one after the other,
// copies on different engines overlap. The order of a stream does not depend on the choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace uptempo {

enum class EngineChoice : uint8_t {
  automatic,  // as above
  runtime,    // hsa_amd_memory_async_copy: ROCr uses one engine per direction
};

struct CopyEngines {
  EngineChoice choice = EngineChoice::automatic;
  // Engines to choose from, by load: bit i is ROCr's engine i, XGMI engines last. 0: as above. A
  // mask that names an engine that the agent lacks, or any mask where ROCr offers no choice, makes
  // the construction of the Streams throw Error. ROCr refuses engines that cannot copy in a
  // direction; the copy then throws Error, which names the engine.
  uint32_t to_device = 0;
  uint32_t to_host = 0;
  uint32_t within_device = 0;  // copies within the GPU then use an engine instead of a kernel
};

// Copies of a Streams by one engine, or in one direction where the runtime chose the engine.
struct CopyEngineUse {
  std::string name{};                // "by engine 0", "from host to device by the runtime's engine"
  std::optional<uint32_t> engine{};  // none: the runtime's choice
  uint64_t copies = 0;               // begun; staged copies count each piece
  uint64_t bytes = 0;
  uint32_t unfinished = 0;
};

namespace detail {

enum class CopyDirection : uint8_t { to_device, to_host, within_device, between_devices };
inline constexpr size_t kCopyDirections = 4;
std::string_view name_of(CopyDirection direction) noexcept;

inline constexpr uint32_t kMostEngines = 16;  // of hsa_amd_sdma_engine_id_t

// The engines that ROCr offers for an agent.
struct EngineOffer {
  std::string none{};         // why there is no choice; empty: there is one
  uint32_t host_engines = 0;  // they face the host link, and come first
  uint32_t all_engines = 0;
};

// The engines of a direction.
struct EngineSet {
  uint32_t mask = 0;       // 0: the runtime decides
  uint32_t favourite = 0;  // first among equals
  bool ask_again = false;  // another answer of ROCr may differ
  std::string reason{};
};

// Throws Error for a mask that the offer cannot meet.
void check_masks(const CopyEngines& wanted, const EngineOffer& offer);
// `idle`, `preferred`: the masks that ROCr reports for the direction. Requires check_masks().
EngineSet choose_engines(CopyDirection direction, const CopyEngines& wanted,
                         const EngineOffer& offer, uint32_t idle, uint32_t preferred);
// "0, 1 and 3"
std::string engine_list(uint32_t mask);

}  // namespace detail
}  // namespace uptempo
