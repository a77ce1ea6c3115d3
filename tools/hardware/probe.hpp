// A probe asks a GPU one question whose answer the engine takes for granted.
//
// Each probe runs in a process of its own (child.hpp), so that one that hangs or crashes is a row
// of the report. A probe that finds what it does not expect returns `differs`; it throws only where
// the engine or HSA fails, and the report then holds the text of that Error.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "tools/support/device.hpp"

namespace uptempo::hardware {

enum class Verdict : uint8_t {
  as_assumed,
  differs,
  not_asked,  // this machine, ROCr or build cannot answer
};
// "as the engine assumes", "differs", "not asked"
std::string_view name_of(Verdict verdict) noexcept;
// Throws std::invalid_argument for any other text.
Verdict verdict_of(std::string_view name);

struct Answer {
  Verdict verdict = Verdict::not_asked;
  std::string text;                   // what was found, in a sentence or two
  nlohmann::ordered_json measured{};  // figures, with their units in the names; or null
};

struct Probe {
  std::string_view name;  // "read-index"
  std::string_view rule;  // what the engine assumes
  // Null: hardware_check_hip runs it, which is built where HIP is installed.
  Answer (*run)(const support::Device& device);
  // Its kernels must load on the device; otherwise it is not asked.
  bool has_kernels = true;
};

// All probes, in the order of the report.
std::span<const Probe> probes();
// Null if there is none.
const Probe* find_probe(std::string_view name) noexcept;

// Queues (queue_probes.cpp, ring_probes.cpp).
Answer probe_read_index(const support::Device& device);
Answer probe_ring_of_64(const support::Device& device);
Answer probe_ring_of_256(const support::Device& device);
Answer probe_profiling(const support::Device& device);
Answer probe_eager_packets(const support::Device& device);
// Memory (memory_probes.cpp, litmus_probe.cpp, copy_probe.cpp).
Answer probe_stale_host_memory(const support::Device& device);
Answer probe_stale_device_memory(const support::Device& device);
Answer probe_hdp_flush(const support::Device& device);
Answer probe_litmus(const support::Device& device);
Answer probe_copy_engines(const support::Device& device);
// Costs (cost_probe.cpp, ladder_probe.cpp, chain_probes.cpp).
Answer probe_costs(const support::Device& device);
Answer probe_ladder(const support::Device& device);
Answer probe_chain_by_batch(const support::Device& device);
Answer probe_chain_by_recording(const support::Device& device);

}  // namespace uptempo::hardware
