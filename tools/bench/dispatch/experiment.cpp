#include "tools/bench/dispatch/experiment.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <tuple>

#include <uptempo/vgpu/query.h>
#include "tools/support/program.hpp"

namespace uptempo::bench {
namespace {

class Tallies final : public Check {
 public:
  explicit Tallies(const Workload& workload) : workload_(workload) {}

  void before(const Row&, const Load& load) override {
    std::fill_n(workload_.tallies.data(), load.dispatches(), 0u);
  }
  void after(const Row& row, const Load& load) override {
    for (uint32_t i = 0; i < load.dispatches(); ++i)
      if (workload_.tallies[i] != row.times(i, load))
        throw std::runtime_error(
            fmt::format("{} (batches of {}): dispatch {} of {} was executed {} times", row.name(),
                        load.batch, i, load.dispatches(), workload_.tallies[i]));
  }

 private:
  const Workload& workload_;
};

class DeviceCounts final : public Check {
 public:
  explicit DeviceCounts(const Workload& workload)
      : tallies_(workload),
        query_(
            reinterpret_cast<uptempo_vgpu_packets_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_packets"))) {
    if (query_ == nullptr)
      throw std::runtime_error("only the virtual GPU can skip kernels; use --kernels real");
  }

  void before(const Row& row, const Load& load) override {
    if (!row.on_device()) tallies_.before(row, load);
    dispatches_ = now();
  }
  void after(const Row& row, const Load& load) override {
    if (!row.on_device()) return tallies_.after(row, load);
    const uint64_t carried_out = now() - dispatches_;
    if (carried_out != load.dispatches())
      throw std::runtime_error(
          fmt::format("{} (batches of {}): {} dispatches were submitted, the device completed {}",
                      row.name(), load.batch, load.dispatches(), carried_out));
  }

 private:
  uint64_t now() const {
    uptempo_vgpu_packet_counts counts{};
    if (query_(&counts) != 0)
      throw std::runtime_error("the virtual GPU did not report its completed packets");
    return counts.dispatches;
  }

  Tallies tallies_;
  const uptempo_vgpu_packets_t query_;
  uint64_t dispatches_ = 0;
};

// Nanoseconds per dispatch.
double time(const Turn& turn, Check& check) {
  std::chrono::duration<double, std::nano> time{};
  take(turn, check, [&](const auto& phase) {
    const auto begin = std::chrono::steady_clock::now();
    phase();
    time = std::chrono::steady_clock::now() - begin;
  });
  return time.count() / turn.load.dispatches();
}

}  // namespace

std::unique_ptr<Check> check_tallies(const Workload& workload) {
  return std::make_unique<Tallies>(workload);
}
std::unique_ptr<Check> check_device_counts(const Workload& workload) {
  return std::make_unique<DeviceCounts>(workload);
}

support::MedianInterval ratio(const Series& a, const Series& b) {
  return support::median_ratio(a.ns_per_dispatch, b.ns_per_dispatch);
}

support::MedianInterval difference(const Series& a, const Series& b) {
  std::vector<double> ns(a.ns_per_dispatch.size());
  std::ranges::transform(a.ns_per_dispatch, b.ns_per_dispatch, ns.begin(), std::minus{});
  return support::median_interval(ns);
}

const Series* Results::find(std::string_view name, uint32_t batch, Phase phase) const noexcept {
  const auto found = std::ranges::find_if(all, [&](const Series& series) {
    return series.name == name && series.batch == batch && series.phase == phase;
  });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> Results::names() const {
  std::vector<std::string> names;
  for (const Series& series : all)
    if (std::ranges::find(names, series.name) == names.end()) names.push_back(series.name);
  return names;
}

void Results::keep_best_variants() {
  std::vector<Series> kept;
  for (Series& series : all) {
    series.name.resize(row_name(series.name).size());
    const auto same = std::ranges::find_if(kept, [&](const Series& other) {
      return std::tie(other.name, other.batch, other.phase) ==
             std::tie(series.name, series.batch, series.phase);
    });
    if (same == kept.end()) {
      kept.push_back(std::move(series));
    } else if (series.median() < same->median()) {
      *same = std::move(series);
    }
  }
  all = std::move(kept);
}

std::vector<Turn> turns_of(const Rows& rows, const std::vector<uint32_t>& batches) {
  std::vector<Turn> turns;
  for (const auto& row : rows) {
    for (const uint32_t batch : batches) {
      const Load load = load_for(batch);
      if (load.dispatches() > row->max_dispatches()) continue;
      if (row->has_submit()) turns.push_back({row.get(), load, Phase::submit});
      turns.push_back({row.get(), load, Phase::complete});
    }
  }
  return turns;
}

Results run(const Rows& rows, Check& check, const std::vector<uint32_t>& batches,
            const support::Rounds& rounds, uint32_t warm_up) {
  const std::vector<Turn> turns = turns_of(rows, batches);
  Results results;
  for (const Turn& turn : turns)
    results.all.push_back({std::string(turn.row->name()), turn.load.batch, turn.phase, {}, {}});
  support::take_turns(rounds, turns.size(), [&](size_t i) {
    for (uint32_t warm = 0; warm < warm_up; warm += turns[i].load.dispatches())
      time(turns[i], check);
    results.all[i].ns_per_dispatch.push_back(time(turns[i], check));
  });
  return results;
}

}  // namespace uptempo::bench
