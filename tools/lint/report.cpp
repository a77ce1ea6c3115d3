#include "tools/lint/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

namespace uptempo::lint {
namespace {

constexpr size_t kColumns = 80;

struct UnitCost {
  std::optional<double> ns;
  Basis basis = Basis::none;
};

// The L2 is filled or written back completely.
std::optional<double> fence_bound(const Report& report) {
  std::optional<double> highest;
  for (const DeviceBound& device : report.devices) {
    if (device.l2_bytes <= 0 || device.bytes_per_ns <= 0) return std::nullopt;
    highest = std::max(highest.value_or(0), device.l2_bytes / device.bytes_per_ns);
  }
  return highest;
}

UnitCost unit_cost(const Report& report, const Settings& settings, Finding finding) {
  if (const auto given = settings.cost_ns[static_cast<size_t>(finding)])
    return {given, Basis::given};
  if (finding == Finding::wide_acquire || finding == Finding::wide_release) {
    if (const auto bound = fence_bound(report)) return {bound, Basis::bound};
  }
  if (finding == Finding::lone_doorbell && report.doorbell_ns)
    return {report.doorbell_ns, Basis::measured};
  return {};
}

std::string duration(double ns) {
  if (ns < 999.5) return fmt::format("{:.0f} ns", ns);
  if (ns < 999.5e3) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 999.5e6) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.1f} s", ns / 1e9);
}

std::string estimate(const FindingReport& finding) {
  if (!finding.cost_ns) return "-";
  return (finding.basis == Basis::bound ? "<= " : "") + duration(*finding.cost_ns);
}

// Appends the words of `text` in lines that start with `indent` blanks. Longer words are cut.
void append_wrapped(std::string& to, size_t indent, std::string_view text) {
  const size_t width = kColumns - indent;
  while (!text.empty()) {
    size_t length = std::min(width, text.size());
    if (length < text.size()) {
      const size_t blank = text.rfind(' ', length);
      if (blank != std::string_view::npos && blank != 0) length = blank;
    }
    to.append(indent, ' ').append(text.substr(0, length)).append("\n");
    text.remove_prefix(length);
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
}

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

uint64_t total(const Report& report, Count count) {
  uint64_t sum = 0;
  for (const PairReport& pair : report.pairs) sum += pair[count];
  return sum;
}

// Those of a thread that found another one reading belong to no pair.
uint64_t doorbells(const Report& report) {
  uint64_t sum = 0;
  for (const QueueReport& queue : report.queues) sum += queue.doorbells;
  return sum;
}

std::string device_text(const Report& report) {
  std::string text;
  for (const DeviceBound& device : report.devices)
    text += (text.empty() ? "" : ", ") + device.agent;
  if (text.empty()) text = "no device";
  return report.virtual_gpu ? text + " (virtual GPU)" : text;
}

bool knows_unused_signals(const Report& report) {
  return report.signals_rearmed == 0 && !has_unread_packets(report);
}

std::vector<std::string> notes(const Report& report) {
  std::vector<std::string> list;
  if (has_unread_packets(report))
    list.push_back(
        "Unused signals are not known: packets that the lint has not seen may wait for them.");
  if (report.unknown_queues != 0)
    list.push_back(fmt::format(
        "{} not listed: the program has used a newer version of hsa_amd_queue_create "
        "than the lint knows.",
        report.unknown_queues == 1 ? "1 queue is"
                                   : fmt::format("{} queues are", report.unknown_queues)));
  if (!report.knows_queues_of_rocr)
    list.push_back(
        "ROCr's own queues are not listed: it has promised to tell another tool of them. Name the "
        "lint first in HSA_TOOLS_LIB.");
  if (report.signals_rearmed != 0)
    list.push_back(fmt::format(
        "Unused signals are not known: {} set again without a call of HSA, so this program reads "
        "signals in memory.",
        report.signals_rearmed == 1 ? "1 signal was"
                                    : fmt::format("{} signals were", report.signals_rearmed)));
  if (report.signals_not_followed != 0)
    list.push_back(fmt::format("{} of signals did not fit the lint's tables.",
                               plural(report.signals_not_followed, "use")));
  if (report.other_pairs != 0)
    list.push_back(
        fmt::format("{} of pairs that did not fit the lint's tables are counted as "
                    "<other pairs>.",
                    plural(report.other_pairs, "packet")));
  return list;
}

constexpr std::string_view basis_name(Basis basis) {
  switch (basis) {
    case Basis::given:
      return "given";
    case Basis::bound:
      return "bound";
    case Basis::measured:
      return "measured";
    default:
      return "none";
  }
}

constexpr std::array<std::string_view, kCountCount> kCountNames{
    "packets",        "dispatches", "system_acquires", "system_releases",    "barrier_bits",
    "signals",        "doorbells",  "wide_acquires",   "wide_releases",      "idle_barriers",
    "unused_signals", "host_waits", "lone_doorbells",  "unaligned_kernargs", "waited_ns"};

template <typename T>
std::span<const T> first(const std::vector<T>& list, size_t most) {
  return std::span(list).first(std::min(list.size(), most));
}

}  // namespace

bool has_unread_packets(const Report& report) {
  return report.unknown_queues != 0 ||
         std::ranges::any_of(report.queues, [](const QueueReport& queue) {
           return !queue.of_rocr && queue.not_seen != 0u;
         });
}

std::vector<FindingReport> findings(const Report& report, const Settings& settings) {
  const bool knows_signals = knows_unused_signals(report);
  std::vector<FindingReport> list;
  for (const PairReport& pair : report.pairs) {
    for (const FindingText& text : kFindings) {
      const uint64_t count = pair[text.count];
      if (count == 0) continue;
      if (text.finding == Finding::unused_signal && !knows_signals) continue;
      FindingReport finding{&text, &pair, count, pair[text.of], std::nullopt, Basis::none};
      if (text.finding == Finding::host_wait) {
        finding.cost_ns = static_cast<double>(pair[Count::waited_ns]);
        finding.basis = Basis::measured;
      } else if (const UnitCost unit = unit_cost(report, settings, text.finding); unit.ns) {
        finding.cost_ns = *unit.ns * static_cast<double>(count);
        finding.basis = unit.basis;
      }
      list.push_back(finding);
    }
  }
  std::ranges::stable_sort(list, [](const FindingReport& a, const FindingReport& b) {
    const double cost_a = a.cost_ns.value_or(0), cost_b = b.cost_ns.value_or(0);
    return cost_a != cost_b ? cost_a > cost_b : a.count > b.count;
  });
  return list;
}

std::string to_text(const Report& report, const Settings& settings) {
  std::string text;
  append_wrapped(text, 0,
                 fmt::format("uptempo-lint: {}, process {}{}, {}", report.program, report.process,
                             report.session == 1 ? "" : fmt::format(", session {}", report.session),
                             device_text(report)));
  append_wrapped(
      text, 0,
      fmt::format("{}, {}, {} published after a host wait, {} of system acquire and {} of system "
                  "release",
                  plural(total(report, Count::packets), "packet"),
                  plural(doorbells(report), "doorbell"), total(report, Count::host_waits),
                  total(report, Count::system_acquires), total(report, Count::system_releases)));
  const auto list = findings(report, settings);
  if (list.empty()) {
    text += has_unread_packets(report) ? "No finding in the packets that the lint has seen.\n"
                                       : "No finding.\n";
  } else {
    text += "\n    count        of    estimate  finding\n";
    for (const FindingReport& finding : first(list, settings.top)) {
      text += fmt::format("{:>9} {:>9} {:>11}  {}\n", finding.count, finding.of, estimate(finding),
                          finding.text->title);
      append_wrapped(text, 6,
                     fmt::format("{}, after {}", finding.pair->packet, finding.pair->before));
      for (const SiteReport& site : first(finding.pair->sites, 3))
        append_wrapped(text, 8,
                       fmt::format("at {}: {}", site.place, plural(site.samples, "sample")));
    }
    if (list.size() > settings.top)
      text += fmt::format("... and {} more; see the option top\n", list.size() - settings.top);
    text += '\n';
    append_wrapped(
        text, 0,
        fmt::format("Costs are estimates. \"<=\": the most that the caches allow. Host waits: the "
                    "time waited. Doorbells: the median of {}. \"-\": give a figure (cost.KIND)."
                    "{}",
                    plural(report.doorbell_samples, "timed store"),
                    report.virtual_gpu ? " Times are those of the virtual GPU." : ""));
  }
  for (const QueueReport& queue : report.queues)
    if (!queue.reason.empty())
      append_wrapped(text, 0,
                     fmt::format("Queue {} of {}{}: {} not seen: {}.", queue.id,
                                 queue.of_rocr ? "ROCr itself on " : "", queue.agent,
                                 queue.not_seen ? plural(*queue.not_seen, "packet") : "packets",
                                 queue.reason));
  for (const std::string& note : notes(report)) append_wrapped(text, 0, note);
  return text;
}

std::string to_json_lines(const Report& report, const Settings& settings) {
  using nlohmann::json;
  std::string text;
  const auto append = [&](const json& line) {
    // Names of files and kernels may hold any byte.
    text += line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  };
  json run{{"type", "run"},
           {"program", report.program},
           {"process", report.process},
           {"session", report.session},
           {"virtual_gpu", report.virtual_gpu},
           {"devices", json::array()},
           {"doorbell_ns", nullptr},
           {"doorbell_samples", report.doorbell_samples},
           {"other_pairs", report.other_pairs},
           {"signals_not_followed", report.signals_not_followed},
           {"signals_rearmed", report.signals_rearmed},
           {"notes", notes(report)}};
  if (report.doorbell_ns) run["doorbell_ns"] = *report.doorbell_ns;
  for (const DeviceBound& device : report.devices) run["devices"].push_back(device.agent);
  append(run);
  for (const PairReport& pair : report.pairs) {
    json line{{"type", "pair"}, {"before", pair.before}, {"packet", pair.packet}};
    for (size_t i = 0; i < kCountCount; ++i) line[std::string(kCountNames[i])] = pair.counts[i];
    if (!knows_unused_signals(report)) line["unused_signals"] = nullptr;
    append(line);
  }
  for (const FindingReport& finding : findings(report, settings)) {
    json line{{"type", "finding"},
              {"finding", finding.text->name},
              {"count", finding.count},
              {"of", finding.of},
              {"before", finding.pair->before},
              {"packet", finding.pair->packet},
              {"estimate_ns", nullptr},
              {"basis", basis_name(finding.basis)},
              {"sites", json::array()}};
    if (finding.cost_ns) line["estimate_ns"] = *finding.cost_ns;
    for (const SiteReport& site : finding.pair->sites)
      line["sites"].push_back({{"place", site.place}, {"samples", site.samples}});
    append(line);
  }
  for (const QueueReport& queue : report.queues) {
    json line{{"type", "queue"},
              {"queue", queue.id},
              {"agent", queue.agent},
              {"of_rocr", queue.of_rocr},
              {"packets", queue.packets},
              {"missed", queue.missed},
              {"doorbells", queue.doorbells},
              {"not_seen", nullptr},
              {"reason", queue.reason}};
    if (queue.not_seen) line["not_seen"] = *queue.not_seen;
    append(line);
  }
  return text;
}

}  // namespace uptempo::lint
