// The executable graphs of the process: which of them Uptempo launches, and why HIP launches the
// others. HIP has every executable graph, too, with the same parameters, so it can take each
// launch.
//
// No function throws. Each call of the program first goes to HIP, except launches; these functions
// follow a call that HIP accepted.
//
// Thread safety: any thread. An executable graph has a lock, so threads that launch different ones
// do not wait for each other, except in a shared queue (taken_graph.hpp).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <uptempo/hip/api/hip_api.hpp>
#include "tools/graphs/report.hpp"
#include "tools/graphs/taken_graph.hpp"

namespace uptempo::graphs {

class Takeover {
 public:
  // The executable graphs of the process. Never destroyed, because programs launch graphs while
  // they end.
  static Takeover& instance();

  // HIP made this executable graph, in `microseconds` (Stopwatch). `refusal`: why it must stay with
  // HIP; empty: import it.
  void instantiated(hipGraphExec_t executable, hipGraph_t graph, const std::string& refusal,
                    double microseconds) noexcept;
  // Launches the graph. Empty: HIP must launch it.
  std::optional<hipError_t> launch(hipGraphExec_t executable, hipStream_t stream) noexcept;
  // HIP launched it, because launch() returned nothing.
  void launched_by_hip(hipGraphExec_t executable, double microseconds) noexcept;

  // HIP changed the parameters of a node.
  template <class Parameters>
  void set(hipGraphExec_t executable, hipGraphNode_t node, const Parameters& parameters) noexcept {
    change(executable, [&](TakenGraph& taken) { taken.set(node, parameters); });
  }
  // HIP gave all parameters of `graph` to the executable graph.
  void updated(hipGraphExec_t executable, hipGraph_t graph) noexcept;
  // From now on HIP launches this one.
  void leave(hipGraphExec_t executable, const std::string& reason) noexcept;
  // The program destroys it. Launches in flight complete.
  void destroyed(hipGraphExec_t executable) noexcept;

 private:
  struct Executable {
    std::mutex mutex;
    std::unique_ptr<TakenGraph> taken;  // null: HIP launches it
    Tally* left = nullptr;              // counts what HIP launches
    size_t nodes = 0;
  };

  std::shared_ptr<Executable> find(hipGraphExec_t executable);
  void change(hipGraphExec_t executable, const std::function<void(TakenGraph&)>& change) noexcept;
  // With the lock of `executable`.
  void give_up(Executable& executable, const std::string& reason);
  void retire(std::unique_ptr<TakenGraph> taken);

  std::shared_mutex mutex_;
  std::unordered_map<hipGraphExec_t, std::shared_ptr<Executable>> executables_;
  std::mutex retired_mutex_;
  std::vector<std::unique_ptr<TakenGraph>> retired_;  // with launches in flight
};

}  // namespace uptempo::graphs
