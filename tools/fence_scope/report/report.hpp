// Results of experiments as data. Tables, JSON, CSV, HTML and comparisons are made of it alone.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <uptempo/aql/packet.hpp>

namespace uptempo::fence_scope {

inline constexpr uint32_t kReportSchema = 1;

// Times of different kinds are never compared.
enum class TimeKind : uint8_t { hardware, virtual_gpu };
// Times of different modes of Timing are never compared either.
enum class TimingMode : uint8_t { none, batch, each };

// The dispatches of a sequence that have a cell's flags; all others have the planned ones.
enum class Position : uint8_t { all, first, interior, last };

enum class Verdict : uint8_t {
  correct,    // by the rules, and in every run
  stale,      // ordered, but a fence between writer and reader is missing or too narrow
  unordered,  // nothing orders writer and reader
  unknown     // not promised by the rules, but no run was wrong; only hardware could tell
};

struct Judgement {
  Verdict verdict = Verdict::unknown;
  // Steps of the sequence, for stale and unordered. kNoStep is an access by the host.
  static constexpr size_t kNoStep = ~size_t{0};
  size_t writer = kNoStep, reader = kNoStep;
  uint32_t wrong_runs = 0, runs = 0;  // timed runs, and runs with caches that go stale
  // for example "dispatch 3 reads what dispatch 2 wrote, and nothing acquires in between"
  std::string reason{};
  friend bool operator==(const Judgement&, const Judgement&) = default;
};

// Times of one iteration, in microseconds. An unknown number is NaN.
struct Times {
  std::vector<double> samples_us{};  // in measuring order
  double median_us = 0, mad_us = 0;
  double low_us = 0, high_us = 0, coverage = 0;  // interval of the median
  bool noisy = false;                            // stopped at its bound, interval too wide
  friend bool operator==(const Times&, const Times&) = default;
};

// Counts of one iteration, by the virtual GPU, or by the engine where it knows them.
struct DeviceCounts {
  uint64_t packets = 0, doorbells = 0, signal_updates = 0, interrupts = 0;
  uint64_t barrier_bits = 0, agent_acquires = 0, agent_releases = 0, system_acquires = 0,
           system_releases = 0;
  // Cache lines, if caches are modelled: dropped by acquires, written back by releases.
  std::optional<uint64_t> l1_lines_invalidated{}, l2_lines_invalidated{}, l2_lines_written_back{};
  friend bool operator==(const DeviceCounts&, const DeviceCounts&) = default;
};

// An estimate from the profile of a device; labelled "model" wherever it is shown.
struct ModelTime {
  std::string profile{};  // for example "fiji"
  double us = 0;
  bool restated = false;  // a figure that the profile was fitted to, not a prediction
  friend bool operator==(const ModelTime&, const ModelTime&) = default;
};

struct Cell {
  std::string workload{};
  // In tables: flags_label(flags) of report_words.hpp, for example "barrier, acquire agent, release
  // none", or a rung of the ladder.
  std::string label{};
  Position position = Position::all;
  aql::HeaderFlags flags{};
  std::vector<aql::HeaderFlags> headers{};  // headers of each step as sent
  uint32_t kernels = 0;
  uint64_t bytes_per_kernel = 0, working_set_bytes = 0;

  Judgement judgement{};
  Times gated{}, ungated{};  // of the host's clock
  // By the packets' timestamps, from the first dispatch's begin to the last one's end.
  std::optional<Times> device{};
  std::optional<ModelTime> model{};
  DeviceCounts counts{};
  // The median of the ratios of `gated` to the baseline's in the same round, not the ratio of the
  // medians. For cells without gated times: the ratio of the medians of `ungated`.
  double relative = 1;
  bool baseline = false, recommended = false;
  friend bool operator==(const Cell&, const Cell&) = default;
};

// A packet of a plan: its minimal header, and the reasons.
struct PlannedPacket {
  size_t step = 0;                 // of the sequence
  uint32_t queue = 0, packet = 0;  // number among the dispatches of its queue
  aql::HeaderFlags flags{};
  // for example "it reads what the packet before it wrote"
  std::string barrier{}, acquire{}, release{};
  // The header that the fence checker considers sufficient for the run that it saw, never wider; no
  // value if it was not asked.
  std::optional<aql::HeaderFlags> checker{};
  friend bool operator==(const PlannedPacket&, const PlannedPacket&) = default;
};

struct Report {
  uint32_t schema = kReportSchema;
  std::string experiment{};            // for example "scopes"
  std::string description{};           // of the workload or program file, one line; may be empty
  std::vector<std::string> command{};  // the command line without the program's path
  std::string conclusion{};            // one sentence
  std::string date{};                  // of the measurement: "2026-11-27 03:44 UTC"; "": unknown
  TimeKind time_kind = TimeKind::virtual_gpu;
  TimingMode timing = TimingMode::none;
  std::string device{}, target{};                    // e.g. "AMD Instinct MI210 (gfx90a)", "gfx90a"
  std::map<std::string, std::string> versions{};     // uptempo, rocr, driver, operating system
  std::map<std::string, std::string> environment{};  // HSA_*, ROCR_* variables that are set
  uint64_t seed = 1;
  std::vector<std::string> steps{};  // names of the sequence's steps, for cells of one workload
  std::vector<Cell> cells{};
  std::vector<PlannedPacket> packets{};  // of `explain`, in the order of each queue
  std::vector<std::string> warnings{};
  friend bool operator==(const Report&, const Report&) = default;
};

}  // namespace uptempo::fence_scope
