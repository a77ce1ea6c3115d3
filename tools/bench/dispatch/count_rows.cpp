// The counting run, from inside, and the reader of its output.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include <uptempo/runtime/counters.hpp>
#include "tools/bench/dispatch/counters.h"
#include "tools/bench/dispatch/counts.hpp"
#include "tools/bench/dispatch/experiment.hpp"
#include "tools/support/program.hpp"

namespace uptempo::bench {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFormat = "uptempo-dispatch-counts-1";
constexpr int kUnseen = 2;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

template <class F>
void count_into(uptempo_counts& counts, uptempo_count_t counter, F work) {
  counter([](void* f) { (*static_cast<F*>(f))(); }, &work, &counts);
}

// Whether each counter sees a known event, by the counts' keys. A count of zero from a counter that
// sees nothing is worthless.
ordered_json seen(uptempo_count_t counter) {
  uptempo_counts counts{};
  count_into(counts, counter, [] {
    void* volatile memory = std::malloc(8);
    std::free(memory);
    (void)getppid();
    uint16_t major = 0;
    hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  });
  return {{"allocations", counts.allocations == 1},
          {"system_calls", counts.system_calls == 1},
          {"hsa_calls", counts.hsa_calls == 1}};
}

struct Counted {
  uint32_t batches = 0;
  uptempo_counts counts{};
  Counters ours{};
  std::vector<Window> windows;
};

Counted count(const Turn& turn, Check& check, uptempo_count_t counter) {
  Counted counted;
  const int loads = kUnseen + (turn.load.repeats == 1 ? 3 : 1);
  for (int i = 0; i < loads; ++i) {
    uptempo_counts counts{};
    Window window;
    const Counters before = Counters::now();
    take(turn, check, [&](const auto& phase) {
      window.begin_ns = now_ns();
      count_into(counts, counter, phase);
      window.end_ns = now_ns();
    });
    if (i < kUnseen) continue;
    counted.ours += Counters::now() - before;
    counted.batches += turn.load.repeats;
    counted.counts.allocations += counts.allocations;
    counted.counts.system_calls += counts.system_calls;
    counted.counts.hsa_calls += counts.hsa_calls;
    counted.windows.push_back(window);
  }
  return counted;
}

ordered_json json(const Window& window) { return {window.begin_ns, window.end_ns}; }

Window window_of(const ordered_json& json) {
  return {json.at(0).get<uint64_t>(), json.at(1).get<uint64_t>()};
}

size_t count_within(const std::vector<uint64_t>& moments, const Window& window) {
  return static_cast<size_t>(std::ranges::upper_bound(moments, window.end_ns) -
                             std::ranges::lower_bound(moments, window.begin_ns));
}

CountReport read(const ordered_json& in, const std::vector<uint64_t>& doorbells_ns,
                 const std::string& no_trace) {
  if (in.at("format") != kFormat)
    throw std::runtime_error("its format must be " + std::string(kFormat));
  CountReport report;
  const std::pair<const char*, const char*> unseen[] = {
      {"allocations", "the program's malloc() could not be replaced"},
      {"system_calls", "the kernel has no system call user dispatch (Linux 5.11)"},
      {"hsa_calls", "ROCr did not load the library named by HSA_TOOLS_LIB"}};
  for (const auto& [key, why] : unseen)
    if (!in.at("seen").at(key).get<bool>()) report.missing[key] = why;
  if (!no_trace.empty())
    report.missing["doorbells"] = no_trace;
  else if (count_within(doorbells_ns, window_of(in.at("probe"))) == 0)
    report.missing["doorbells"] = "the virtual GPU's trace is incomplete";
  for (ordered_json row : in.at("results")) {
    size_t rung = 0;
    for (const ordered_json& window : row.at("windows"))
      rung += count_within(doorbells_ns, window_of(window));
    row["doorbells"] = rung;
    CountedBatches& counted = report.all.emplace_back();
    row.at("name").get_to(counted.name);
    row.at("batch").get_to(counted.batch);
    counted.phase = row.at("phase") == "submit" ? Phase::submit : Phase::complete;
    for (const CountKind& kind : kCountKinds)
      if (!report.missing.contains(kind.key))
        counted.counts.*kind.value =
            row.at(kind.key).get<double>() / row.at("batches").get<double>();
  }
  return report;
}

}  // namespace

CountReport CountReport::none(const std::string& reason) {
  CountReport report;
  for (const CountKind& kind : kCountKinds) report.missing[kind.key] = reason;
  return report;
}

const Counts* CountReport::find(std::string_view name, uint32_t batch, Phase phase) const noexcept {
  const auto found = std::ranges::find_if(all, [&](const CountedBatches& counted) {
    return counted.name == name && counted.batch == batch && counted.phase == phase;
  });
  return found == all.end() ? nullptr : &found->counts;
}

ordered_json count(const Rows& rows, Check& check, const std::vector<uint32_t>& batches,
                   const std::function<void()>& probe) {
  const auto counter = reinterpret_cast<uptempo_count_t>(dlsym(RTLD_DEFAULT, UPTEMPO_COUNT_SYMBOL));
  if (counter == nullptr)
    throw support::Unavailable(
        "the counting library is not preloaded; --count-into is for internal use");
  const ordered_json sees = seen(counter);
  ordered_json results = ordered_json::array();
  std::map<std::string_view, const Row*> variants;  // the variant that is counted
  for (const Turn& turn : turns_of(rows, batches)) {
    const std::string_view name = row_name(turn.row->name());
    if (variants.try_emplace(name, turn.row).first->second != turn.row) continue;
    const Counted counted = count(turn, check, counter);
    ordered_json windows = ordered_json::array();
    for (const Window& window : counted.windows) windows.push_back(json(window));
    results.push_back({{"name", name},
                       {"batch", turn.load.batch},
                       {"phase", phase_name(turn.phase)},
                       {"batches", counted.batches},
                       {"allocations", counted.counts.allocations},
                       {"system_calls", counted.counts.system_calls},
                       {"hsa_calls", counted.counts.hsa_calls},
                       {"hdp_flushes", counted.ours.hdp_flushes},
                       {"read_backs", counted.ours.kernarg_read_backs},
                       {"windows", std::move(windows)}});
  }
  // The probe comes last: a trace that stopped earlier lacks it.
  const uint64_t begin = now_ns();
  probe();
  return {{"format", kFormat},
          {"seen", sees},
          {"probe", json(Window{begin, now_ns()})},
          {"results", std::move(results)}};
}

CountReport read_counts(const std::string& text, const std::vector<uint64_t>& doorbells_ns,
                        const std::string& no_trace) {
  try {
    return read(ordered_json::parse(text), doorbells_ns, no_trace);
  } catch (const std::exception& error) {  // also the parser's
    throw std::runtime_error(std::string("the counting run wrote invalid output: ") + error.what());
  }
}

}  // namespace uptempo::bench
