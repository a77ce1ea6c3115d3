#include "tools/graphs/call_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <new>

#include "tools/graphs/settings.hpp"

namespace uptempo::graphs {
namespace {

constexpr std::array<const char*, 4> kNames = {"launch_by_hip", "launch_by_uptempo",
                                               "instantiation", "import"};
constexpr std::array<const char*, 4> kWords = {"launched by HIP", "launched by Uptempo",
                                               "instantiated by HIP", "imported"};

// Interruptions only add time, so the lower quartile is nearer to the cost than the median.
double lower_quartile(std::vector<double> times) {
  const auto quartile = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
  std::ranges::nth_element(times, quartile);
  return *quartile;
}

}  // namespace

CallTimes& CallTimes::instance() {
  alignas(CallTimes) static std::byte storage[sizeof(CallTimes)];
  static CallTimes* const times = ::new (storage) CallTimes;
  return *times;
}

bool CallTimes::wanted() noexcept {
  static const bool is_wanted = std::getenv(kTimesVariable) != nullptr;
  return is_wanted;
}

void CallTimes::add(Timed call, size_t nodes, double microseconds) noexcept {
  if (!wanted()) return;
  try {
    const std::lock_guard lock(mutex_);
    by_nodes_[nodes][static_cast<size_t>(call)].push_back(microseconds);
  } catch (const std::exception&) {
    // Memory is exhausted: the time is not counted.
  }
}

std::vector<std::string> CallTimes::sentences() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> sentences;
  for (const auto& [nodes, times] : by_nodes_) {
    std::string sentence;
    for (size_t call = 0; call < kCalls; ++call)
      if (!times[call].empty())
        sentence += fmt::format("{} {} in {:.1f} us ({})", sentence.empty() ? "" : ",",
                                kWords[call], lower_quartile(times[call]), times[call].size());
    sentences.push_back(
        fmt::format("CPU time of a graph of {} node{}:{}", nodes, nodes == 1 ? "" : "s", sentence));
  }
  return sentences;
}

nlohmann::ordered_json CallTimes::json() {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [nodes, times] : by_nodes_) {
    nlohmann::ordered_json entry = {{"nodes", nodes}};
    for (size_t call = 0; call < kCalls; ++call)
      if (!times[call].empty())
        entry[kNames[call]] = {{"calls", times[call].size()},
                               {"microseconds", lower_quartile(times[call])}};
    all.push_back(std::move(entry));
  }
  return all;
}

double Stopwatch::now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

}  // namespace uptempo::graphs
