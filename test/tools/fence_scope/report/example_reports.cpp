#include "test/tools/fence_scope/report/example_reports.hpp"

#include <algorithm>
#include <limits>

#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/statistics.hpp"

namespace uptempo::fence_scope::examples {
namespace {

using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;

constexpr FenceScope kScopes[] = {FenceScope::none, FenceScope::agent, FenceScope::system};
constexpr HeaderFlags kEverywhere{Barrier::on, FenceScope::system, FenceScope::system};

Times around(double us, double spread = 0.01) {
  std::vector<double> samples;
  for (const double step : {-1.0, 0.6, -0.4, 0.1, 1.0, -0.2, 0.3, 0.8, -0.7})
    samples.push_back(us * (1 + spread * step));
  return times_of(std::move(samples));
}

double cost_of(HeaderFlags flags) {
  const auto of = [](FenceScope scope) {
    return scope == FenceScope::system ? 2.4 : scope == FenceScope::agent ? 0.6 : 0.0;
  };
  return 6 + (flags.barrier == Barrier::on ? 1.5 : 0) + of(flags.acquire) + 1.4 * of(flags.release);
}

Judgement judged(HeaderFlags flags, Position position) {
  Judgement judgement{.verdict = Verdict::correct, .runs = 9};
  if (flags.barrier == Barrier::off && position != Position::first) {
    judgement.verdict = Verdict::unordered;
    judgement.writer = 0, judgement.reader = 1;
    judgement.wrong_runs = 3;
    judgement.reason = "dispatch 1 reads what dispatch 0 wrote, and has no barrier bit";
  } else if (flags.acquire == FenceScope::none) {
    judgement.verdict = Verdict::stale;
    if (position != Position::first) judgement.writer = 1;
    judgement.reader = 2;
    judgement.wrong_runs = 9;
    judgement.reason =
        position == Position::first
            ? "dispatch 2 reads what the host wrote, and nothing acquires in between"
            : "dispatch 2 reads what dispatch 1 wrote, and nothing acquires in between";
  } else if (flags.release == FenceScope::none) {
    judgement.verdict = Verdict::unknown;
    judgement.reason = "nothing releases what dispatch 1 wrote, and no run was wrong";
  }
  return judgement;
}

void set_counts(Cell& cell) {
  for (const HeaderFlags& flags : cell.headers) {
    ++cell.counts.packets;
    cell.counts.barrier_bits += flags.barrier == Barrier::on;
    cell.counts.agent_acquires += flags.acquire == FenceScope::agent;
    cell.counts.agent_releases += flags.release == FenceScope::agent;
    cell.counts.system_acquires += flags.acquire == FenceScope::system;
    cell.counts.system_releases += flags.release == FenceScope::system;
  }
  cell.counts.doorbells = 1;
  cell.counts.signal_updates = 1;
  cell.counts.interrupts = 1;
}

}  // namespace

Times times_of(std::vector<double> samples_us) {
  const support::MedianInterval interval = support::median_interval(samples_us);
  std::vector<double> deviations;
  for (const double sample : samples_us) deviations.push_back(std::abs(sample - interval.median));
  return {.samples_us = samples_us,
          .median_us = interval.median,
          .mad_us = support::median(deviations),
          .low_us = interval.low,
          .high_us = interval.high,
          .coverage = interval.coverage,
          .noisy = false};
}

Report scopes_report() {
  Report report;
  report.experiment = "scopes";
  report.command = {"scopes", "--workload", "chain", "--seed", "7"};
  report.conclusion =
      "chain: the barrier bit with agent scopes between the packets is enough, and takes 0.60x the "
      "time of "
      "system scopes everywhere (times of a virtual GPU, not of hardware).";
  report.time_kind = TimeKind::virtual_gpu;
  report.device = "AMD Instinct MI210 (gfx90a)";
  report.target = "gfx90a";
  report.versions = {{"kernel driver", "uptempo-vgpu"},
                     {"rocr", "libhsa-runtime64.so.1.5.0"},
                     {"uptempo", "0.1.0"}};
  report.environment = {{"HSA_ENABLE_INTERRUPT", "0"}, {"ROCR_VISIBLE_DEVICES", "0"}};
  report.seed = 7;
  report.steps = {"fill", "add <1>", "scale, \"twice\"", "sum & store", "copy back"};
  const double everywhere_us = 4 * cost_of(kEverywhere);
  for (const Position position : {Position::first, Position::interior, Position::last}) {
    for (const Barrier barrier : {Barrier::on, Barrier::off}) {
      for (const FenceScope acquire : kScopes) {
        for (const FenceScope release : kScopes) {
          Cell cell;
          cell.workload = "chain";
          cell.flags = {barrier, acquire, release};
          cell.label = flags_label(cell.flags);
          cell.position = position;
          cell.kernels = 4;
          cell.bytes_per_kernel = 65536;
          cell.working_set_bytes = 131072;
          cell.headers.assign(report.steps.size(), kEverywhere);
          if (position == Position::first) cell.headers[0] = cell.flags;
          if (position == Position::interior) cell.headers[1] = cell.headers[2] = cell.flags;
          if (position == Position::last) cell.headers[3] = cell.flags;
          double us = 0;
          for (size_t step = 0; step < 4; ++step) us += cost_of(cell.headers[step]);
          cell.judgement = judged(cell.flags, position);
          cell.gated = around(us);
          cell.ungated = around(us * 1.3 + 4);
          cell.model = ModelTime{.profile = "mi210", .us = us * 0.8, .restated = false};
          set_counts(cell);
          cell.counts.l1_lines_invalidated = 1024 * cell.counts.agent_acquires;
          cell.counts.l2_lines_invalidated = 512 * cell.counts.system_acquires;
          cell.counts.l2_lines_written_back = 512 * cell.counts.system_releases;
          cell.relative = us / everywhere_us;
          cell.baseline = position == Position::first && cell.flags == kEverywhere;
          cell.recommended =
              position == Position::interior &&
              cell.flags == HeaderFlags{Barrier::on, FenceScope::agent, FenceScope::agent};
          report.cells.push_back(std::move(cell));
        }
      }
    }
  }
  report.cells.back().gated.noisy = true;
  report.warnings = {
      "last packet, no barrier, acquire system, release system: stopped after 2 s with an interval "
      "of 9 %: "
      "the "
      "machine is too busy to tell times apart that differ by less"};
  return report;
}

Report sweep_report() {
  Report report;
  report.experiment = "sweep";
  report.command = {"sweep", "--workload", "chain"};
  report.conclusion = "chain: what fences cost grows with the kernels in a batch, 3.7 us for each.";
  report.time_kind = TimeKind::hardware;
  report.timing = TimingMode::batch;
  report.device = "AMD Radeon R9 Fury (gfx803)";
  report.target = "gfx803";
  report.seed = 1;
  const HeaderFlags settings[] = {kEverywhere,
                                  {Barrier::on, FenceScope::agent, FenceScope::agent},
                                  {Barrier::off, FenceScope::none, FenceScope::none}};
  for (const uint32_t kernels : {1u, 10u, 100u, 1000u}) {
    for (const HeaderFlags& flags : settings) {
      Cell cell;
      cell.workload = "chain";
      cell.flags = flags;
      cell.label = flags_label(flags);
      cell.kernels = kernels;
      cell.bytes_per_kernel = 65536;
      cell.working_set_bytes = 131072;
      cell.headers.assign(kernels, flags);
      cell.judgement = judged(flags, Position::all);
      cell.gated = around(20 + kernels * cost_of(flags));
      cell.ungated = around(30 + kernels * cost_of(flags));
      cell.device = around(kernels * cost_of(flags));
      cell.relative = cell.gated.median_us / (20 + kernels * cost_of(kEverywhere));
      cell.baseline = flags == kEverywhere;
      cell.recommended = kernels == 1000 && flags == settings[1];
      set_counts(cell);
      report.cells.push_back(std::move(cell));
    }
  }
  return report;
}

Report ladder_report() {
  Report report;
  report.experiment = "ladder";
  report.command = {"ladder"};
  report.conclusion =
      "Everything together takes 0.59x the baseline's time (times of a virtual GPU, not of "
      "hardware).";
  report.device = "AMD Radeon R9 Fury (gfx803)";
  report.target = "gfx803";
  const std::pair<const char*, double> rungs[] = {
      {"baseline", 1943},        {"prealloc-signal", 1906}, {"prealloc-kernarg", 1869},
      {"avoid-host-sync", 1665}, {"fence", 1221},           {"pinned-host", 1137}};
  for (const auto& [label, us] : rungs) {
    Cell cell;
    cell.workload = "bitonic_sort";
    cell.label = label;
    cell.kernels = 120;
    cell.judgement = {.verdict = Verdict::correct, .runs = 20};
    cell.gated = around(us * 3.1);
    cell.ungated = around(us * 3.3);
    cell.model = ModelTime{.profile = "fiji", .us = us, .restated = cell.label != "pinned-host"};
    cell.relative = us / 1943;
    cell.baseline = cell.label == "baseline";
    cell.recommended = cell.label == "pinned-host";
    cell.headers.assign(120, kEverywhere);
    set_counts(cell);
    report.cells.push_back(std::move(cell));
  }
  return report;
}

Report random_report(std::mt19937_64& random) {
  const auto below = [&](uint64_t limit) { return random() % limit; };
  const auto whole = [&] { return random() >> below(64); };
  const auto word = [&] { return static_cast<uint32_t>(random() >> (32 + below(32))); };
  const auto coin = [&] { return below(2) == 1; };
  // Numbers of any magnitude, with all their bits.
  const auto real = [&] {
    return std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(below(200)) - 150);
  };
  const auto text = [&] {
    constexpr const char* kParts[] = {"a",    "\"",       "\\",           "\n",
                                      "\r\n", ",",        "<&>",          "\x01",
                                      "\x7f", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                      " ",    "{}",       "x=1"};
    std::string out;
    for (uint64_t left = below(6); left > 0; --left) out += kParts[below(std::size(kParts))];
    return out;
  };
  const auto texts = [&] {
    std::vector<std::string> out(below(4));
    std::ranges::generate(out, text);
    return out;
  };
  const auto text_map = [&] {
    std::map<std::string, std::string> out;
    for (uint64_t left = below(4); left > 0; --left) out[text()] = text();
    return out;
  };
  const auto times = [&] {
    std::vector<double> three{real(), real(), real()};
    std::ranges::sort(three);
    Times out{.samples_us = std::vector<double>(below(5)),
              .median_us = three[1],
              .mad_us = real(),
              .low_us = three[0],
              .high_us = three[2],
              .coverage = real(),
              .noisy = coin()};
    std::ranges::generate(out.samples_us, real);
    return out;
  };
  const auto flags = [&] {
    return HeaderFlags{coin() ? Barrier::on : Barrier::off, kScopes[below(3)], kScopes[below(3)]};
  };
  const auto maybe = [&](auto make) { return coin() ? std::optional(make()) : std::nullopt; };
  const auto step = [&] { return coin() ? Judgement::kNoStep : size_t{word()}; };

  Report report;
  report.experiment = text();
  report.description = text();
  report.command = texts();
  report.conclusion = text();
  report.time_kind = coin() ? TimeKind::hardware : TimeKind::virtual_gpu;
  report.timing = static_cast<TimingMode>(below(3));
  report.device = text();
  report.target = text();
  report.versions = text_map();
  report.environment = text_map();
  report.seed = whole();
  report.steps = texts();
  report.warnings = texts();
  report.packets.resize(below(4));
  for (PlannedPacket& packet : report.packets)
    packet = {whole(), word(), word(), flags(), text(), text(), text(), maybe(flags)};
  report.cells.resize(below(5));
  for (Cell& cell : report.cells) {
    cell.workload = text();
    cell.label = text();
    cell.position = static_cast<Position>(below(4));
    cell.flags = flags();
    cell.headers.resize(below(9));
    std::ranges::generate(cell.headers, flags);
    if (coin()) std::ranges::fill(cell.headers, flags());
    cell.kernels = word();
    cell.bytes_per_kernel = whole();
    cell.working_set_bytes = whole();
    cell.judgement = {static_cast<Verdict>(below(4)), step(), step(), word(), word(), text()};
    cell.gated = times();
    cell.ungated = times();
    cell.device = maybe(times);
    cell.model = maybe([&] { return ModelTime{text(), real(), coin()}; });
    DeviceCounts& counts = cell.counts;
    for (uint64_t* const count :
         {&counts.packets, &counts.doorbells, &counts.signal_updates, &counts.interrupts,
          &counts.barrier_bits, &counts.agent_acquires, &counts.agent_releases,
          &counts.system_acquires, &counts.system_releases})
      *count = whole();
    for (std::optional<uint64_t>* const count :
         {&counts.l1_lines_invalidated, &counts.l2_lines_invalidated,
          &counts.l2_lines_written_back})
      *count = maybe(whole);
    cell.relative = real();
    cell.baseline = coin();
    cell.recommended = coin();
  }
  return report;
}

}  // namespace uptempo::fence_scope::examples
