// CPU time in the calling thread of the calls that make and launch graphs, by the graphs' numbers
// of nodes. Measured only with the option --times.
//
// Thread safety: any thread; one lock. Cost of a call: two readings of the thread's clock. Memory:
// 8 bytes a call.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace uptempo::graphs {

enum class Timed : size_t { launch_by_hip, launch_by_uptempo, instantiation, import };

class CallTimes {
 public:
  // The times of the process. Never destroyed.
  static CallTimes& instance();

  static bool wanted() noexcept;
  // Does nothing if times are not wanted.
  void add(Timed call, size_t nodes, double microseconds) noexcept;

  // A sentence for each number of nodes, without full stop.
  std::vector<std::string> sentences();
  nlohmann::ordered_json json();

 private:
  static constexpr size_t kCalls = 4;
  using Times = std::array<std::vector<double>, kCalls>;

  std::mutex mutex_;
  std::map<size_t, Times> by_nodes_;
};

// The thread's CPU time since its construction, in microseconds. Zero if times are not wanted.
class Stopwatch {
 public:
  Stopwatch() noexcept : start_(CallTimes::wanted() ? now() : 0) {}
  double read() const noexcept { return CallTimes::wanted() ? now() - start_ : 0; }

 private:
  static double now() noexcept;
  double start_;
};

}  // namespace uptempo::graphs
