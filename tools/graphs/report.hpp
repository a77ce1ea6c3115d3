// Counts what the library took over and what it left to HIP, and why. Written at the end of the
// process to stderr, and as JSON to the file of --json.
//
// Thread safety: any thread. Cost: counting a launch is two atomic additions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace uptempo::graphs {

// Launches of graphs for one reason, or of all that were taken over.
struct Tally {
  std::atomic<uint64_t> graphs{0};  // executable graphs
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> nodes{0};  // in all launches together

  void launched(size_t nodes_of_graph) noexcept {
    launches.fetch_add(1, std::memory_order_relaxed);
    nodes.fetch_add(nodes_of_graph, std::memory_order_relaxed);
  }
};

class Report {
 public:
  // The report of the process. Never destroyed.
  static Report& instance();

  Tally& taken() noexcept { return taken_; }
  // The tally of what stays with HIP for this reason. Valid until the end of the process.
  Tally& left(const std::string& reason);
  // Parameters and whole graphs that executable graphs got after they were taken over.
  std::atomic<uint64_t>& updates() noexcept { return updates_; }
  // Something that the library cannot reach, in one sentence.
  void unreachable(const std::string& sentence);

  std::string text();
  std::string json();

 private:
  Tally taken_;
  std::atomic<uint64_t> updates_{0};
  std::mutex mutex_;
  std::map<std::string, Tally> left_;
  std::vector<std::string> unreachable_;
};

}  // namespace uptempo::graphs
