// The report of a run: data, and its two forms.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/lint/counts.hpp"
#include "tools/lint/settings.hpp"

namespace uptempo::lint {

struct SiteReport {
  std::string place;
  uint64_t samples = 0;
};

struct PairReport {
  std::string before, packet;  // kernels, or kinds of packets
  std::array<uint64_t, kCountCount> counts{};
  std::vector<SiteReport> sites{};  // most samples first

  uint64_t operator[](Count count) const { return counts[static_cast<size_t>(count)]; }
  uint64_t& operator[](Count count) { return counts[static_cast<size_t>(count)]; }
};

struct QueueReport {
  uint64_t id = 0;
  std::string agent;
  bool of_rocr = false;
  uint64_t packets = 0, missed = 0, doorbells = 0;
  std::optional<uint64_t> not_seen{};  // unknown: the write index could not be read
  std::string reason{};                // if packets were not seen
};

// The most that one fence can cost, from the device's own description.
struct DeviceBound {
  std::string agent;
  double l2_bytes = 0;
  double bytes_per_ns = 0;
};

struct Report {
  std::string program;
  int process = 0;
  uint32_t session = 1;  // counts hsa_init() after hsa_shut_down()
  bool virtual_gpu = false;
  std::vector<PairReport> pairs{};
  std::vector<QueueReport> queues{};
  std::vector<DeviceBound> devices{};
  std::optional<double> doorbell_ns{};  // median of the sampled stores
  uint64_t doorbell_samples = 0;
  uint64_t other_pairs = 0;  // packets whose pair did not fit
  uint64_t signals_not_followed = 0;
  uint64_t signals_rearmed = 0;  // not 0: unused signals are not known
  bool knows_queues_of_rocr = true;
  uint64_t unknown_queues = 0;  // not listed
};

// Packets that were not read may wait for any signal. Packets of ROCr's own queues wait for those
// that the program has passed in calls.
bool has_unread_packets(const Report& report);

// The basis of an estimate.
enum class Basis : uint8_t { none, given, bound, measured };

struct FindingReport {
  const FindingText* text = nullptr;
  const PairReport* pair = nullptr;
  uint64_t count = 0, of = 0;
  std::optional<double> cost_ns;  // of all together
  Basis basis = Basis::none;
};

// Highest cost first, then the highest count.
std::vector<FindingReport> findings(const Report& report, const Settings& settings);

// Lines of at most 80 columns.
std::string to_text(const Report& report, const Settings& settings);
// One object a line; README.md lists their members.
std::string to_json_lines(const Report& report, const Settings& settings);

}  // namespace uptempo::lint
