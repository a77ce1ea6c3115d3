#include <algorithm>
#include <array>
#include <stdexcept>

#include "tools/hardware/probe.hpp"

namespace uptempo::hardware {
namespace {

constexpr std::array kProbes{
    Probe{"read-index", "the read index passes each packet once it is complete", probe_read_index},
    Probe{"ring-64", "a full ring of 64 packets loses and repeats none", probe_ring_of_64},
    Probe{"ring-256", "a full ring of 256 packets loses and repeats none", probe_ring_of_256},
    Probe{"profiling", "times are stored, also if profiling is enabled on a used queue",
          probe_profiling, false},
    Probe{"eager-packets", "no packet beyond the write index is taken", probe_eager_packets, false},
    Probe{"stale-host", "host memory is fresh after the acquires of the memory model's row",
          probe_stale_host_memory},
    Probe{"stale-device", "device memory that the host writes is fresh after the row's acquires",
          probe_stale_device_memory},
    Probe{"hdp-flush", "a flush of the HDP, or a read-back, ends the host's stores",
          probe_hdp_flush},
    Probe{"litmus", "packets, queues, copies and host show allowed outcomes only", probe_litmus},
    Probe{"copy-engines", "copies arrive, whether the library or ROCr chooses the engine",
          probe_copy_engines},
    Probe{"costs", "narrower fences cost no more than wider ones", probe_costs},
    Probe{"ladder", "the sort is right with each set of switches", probe_ladder},
    Probe{"chain-batch", "941 dependent dispatches of a batch run in order", probe_chain_by_batch},
    Probe{"chain-recording", "941 dependent dispatches of a Recording run in order",
          probe_chain_by_recording},
    Probe{"chain-hip-graph", "941 dependent nodes of a graph of HIP run in order", nullptr},
};
constexpr std::array<std::string_view, 3> kVerdicts{"as the engine assumes", "differs",
                                                    "not asked"};

}  // namespace

std::string_view name_of(Verdict verdict) noexcept {
  return kVerdicts[static_cast<size_t>(verdict)];
}

Verdict verdict_of(std::string_view name) {
  const auto* const found = std::ranges::find(kVerdicts, name);
  if (found == kVerdicts.end()) throw std::invalid_argument("no verdict: " + std::string(name));
  return static_cast<Verdict>(found - kVerdicts.begin());
}

std::span<const Probe> probes() { return kProbes; }

const Probe* find_probe(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kProbes, name, &Probe::name);
  return found == kProbes.end() ? nullptr : found;
}

}  // namespace uptempo::hardware
