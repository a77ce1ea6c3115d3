#include "tools/bench/dispatch/earlier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/support/json_field.hpp"
#include "tools/support/program.hpp"
#include "tools/support/table.hpp"

namespace uptempo::bench {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw support::UsageError(fmt::format("--compare '{}': {}", file, why));
}

// Throws unless the format is kReportFormat, which ends in a version number.
void require_format(const ordered_json& in, const std::string& file) {
  const std::string_view ours = kReportFormat;
  const size_t dash = ours.rfind('-') + 1;
  const auto version = [&](std::string_view format) {
    uint32_t number = 0;
    const auto [end, error] =
        std::from_chars(format.data() + dash, format.data() + format.size(), number);
    return error == std::errc{} && end == format.data() + format.size() ? std::optional(number)
                                                                        : std::nullopt;
  };
  if (!in.is_object() || !in.contains("format") || !in["format"].is_string())
    refuse(file, "it is not a report of dispatch_bench: it has no format field");
  const auto format = in["format"].get<std::string>();
  if (format == ours) return;
  if (format.starts_with(ours.substr(0, dash)) && version(format) > version(ours))
    refuse(file,
           fmt::format(
               "it was written by a newer dispatch_bench: its format is {}, this version reads {}",
               format, ours));
  refuse(file, fmt::format("it is not a report of dispatch_bench: its format is '{}', not {}",
                           format, ours));
}

Figure figure_of(const support::JsonField& in) {
  Figure figure{.name = in["name"].text(),
                .batch = in["batch"].whole<uint32_t>(),
                .phase = Phase::submit,
                .ns = {.median = in["ns_per_dispatch"].number(),
                       .low = in["low"].number(),
                       .high = in["high"].number()}};
  const std::string phase = in["phase"].text();
  if (phase == phase_name(Phase::complete))
    figure.phase = Phase::complete;
  else if (phase != phase_name(Phase::submit))
    in["phase"].refuse_for("submit or complete");
  const support::MedianInterval& ns = figure.ns;
  if (!(ns.low > 0 && ns.low <= ns.median && ns.median <= ns.high && std::isfinite(ns.high)))
    in.refuse(fmt::format("{} of {} has impossible figures: {} in {} .. {}", figure.name,
                          figure.batch, ns.median, ns.low, ns.high));
  return figure;
}

struct Pair {
  std::string name;
  uint32_t batch;
  Phase phase;
  std::optional<support::MedianInterval> before, after;

  bool overlap() const { return before->low <= after->high && after->low <= before->high; }
  double ratio() const { return after->median / before->median; }
  const char* verdict() const {
    if (!before) return "new";
    if (!after) return "not measured now";
    if (overlap()) return "intervals overlap";
    return after->median < before->median ? "cheaper" : "dearer";
  }
};

std::vector<Pair> pairs(const EarlierReport& earlier, const Report& now) {
  std::vector<Pair> all;
  for (const Series& series : now.results.all)
    all.push_back({series.name, series.batch, series.phase, std::nullopt, series.interval()});
  for (const Figure& figure : earlier.figures) {
    const auto same = std::ranges::find_if(all, [&](const Pair& pair) {
      return pair.name == figure.name && pair.batch == figure.batch && pair.phase == figure.phase;
    });
    if (same != all.end())
      same->before = figure.ns;
    else
      all.push_back({figure.name, figure.batch, figure.phase, figure.ns, std::nullopt});
  }
  return all;
}

const char* executed(bool kernels) { return kernels ? "executed" : "not executed"; }

}  // namespace

EarlierReport parse_earlier(const std::string& text, const std::string& file) {
  ordered_json in;
  try {
    in = support::parse_json(text);
  } catch (const ordered_json::parse_error& error) {
    refuse(file, fmt::format("it is not JSON, or is truncated at byte {} of {}", error.byte,
                             text.size()));
  } catch (const std::exception& error) {  // a number out of range, or nested too deeply
    refuse(file, fmt::format("it is damaged: {}", error.what()));
  }
  require_format(in, file);
  try {
    const support::JsonField fields(in);
    const std::string kernels = fields["kernels"].text();
    if (kernels != "real" && kernels != "null") fields["kernels"].refuse_for("real or null");
    EarlierReport report{.file = file,
                         .device = fields["device"].text(),
                         .is_virtual = fields["virtual_gpu"].flag(),
                         .kernels_executed = kernels == "real",
                         .figures = {}};
    for (const support::JsonField& figure : fields["results"].elements())
      report.figures.push_back(figure_of(figure));
    return report;
  } catch (const std::runtime_error& error) {
    refuse(file, fmt::format("it is damaged: {}", error.what()));
  }
}

EarlierReport read_earlier(const std::string& file) {
  return parse_earlier(support::read_input(file), file);
}

void require_comparable(const EarlierReport& earlier, const Report& now) {
  if (earlier.is_virtual != now.is_virtual)
    refuse(earlier.file,
           fmt::format("it was measured on {}, this is {}: their times cannot be compared",
                       earlier.is_virtual ? "the virtual GPU" : "hardware",
                       now.is_virtual ? "the virtual GPU" : "hardware"));
  if (earlier.device != now.device)
    refuse(earlier.file,
           fmt::format("it was measured on {}, this is {}", earlier.device, now.device));
  if (earlier.kernels_executed != now.kernels_executed)
    refuse(earlier.file,
           fmt::format("its kernels were {}, these are {}: use --kernels {}",
                       executed(earlier.kernels_executed), executed(now.kernels_executed),
                       earlier.kernels_executed ? "real" : "null"));
}

std::string comparison_table(const EarlierReport& earlier, const Report& now) {
  using support::Align;
  const auto cell = [](const std::optional<support::MedianInterval>& ns) {
    return ns ? fmt::format("{:.1f} ({:.1f} .. {:.1f})", ns->median, ns->low, ns->high)
              : std::string("-");
  };
  support::Table table({{"row", Align::left},
                        {"batch", Align::right},
                        {"phase", Align::left},
                        {"old ns", Align::right},
                        {"new ns", Align::right},
                        {"new/old", Align::right},
                        {"", Align::left}},
                       3);
  for (const Pair& pair : pairs(earlier, now))
    table.add_row(
        {pair.name, std::to_string(pair.batch), phase_name(pair.phase), cell(pair.before),
         cell(pair.after),
         pair.before && pair.after ? fmt::format("{:.2f}", pair.ratio()) : std::string("-"),
         pair.verdict()});
  return fmt::format("Beside {}:\n\n{}", earlier.file, table.text());
}

ordered_json comparison_json(const EarlierReport& earlier, const Report& now) {
  ordered_json out = ordered_json::array();
  for (const Pair& pair : pairs(earlier, now)) {
    const bool both = pair.before && pair.after;
    const auto ns = [](const std::optional<support::MedianInterval>& figure) {
      return figure ? ordered_json(figure->median) : ordered_json(nullptr);
    };
    out.push_back({{"name", pair.name},
                   {"batch", pair.batch},
                   {"phase", phase_name(pair.phase)},
                   {"old", ns(pair.before)},
                   {"new", ns(pair.after)},
                   {"ratio", both ? ordered_json(pair.ratio()) : ordered_json(nullptr)},
                   {"overlap", both ? ordered_json(pair.overlap()) : ordered_json(nullptr)}});
  }
  return out;
}

}  // namespace uptempo::bench
