#include "tools/fence_scope/report/report_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include <uptempo/aql/text.hpp>
#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/json_field.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::ordered_json;
using support::JsonField;

constexpr const char* kFormat = "fence_scope report";

// ---- The fields of each part of a report. `io` writes or reads them: Writer and Reader below.

// A part that is written is const.
template <class Part, class Of>
concept PartOf = std::same_as<std::remove_const_t<Part>, Of>;

// A step; null for the host.
template <class Index>
struct StepOrHost {
  Index& index;
};

template <class Text>
struct Reasons {
  Text &barrier, &acquire, &release;
};

template <class Io, PartOf<aql::HeaderFlags> Part>
void fields(Io& io, Part& flags) {
  io("barrier", flags.barrier);
  io("acquire", flags.acquire);
  io("release", flags.release);
}

template <class Io, class Text>
void fields(Io& io, const Reasons<Text>& reasons) {
  io("barrier", reasons.barrier);
  io("acquire", reasons.acquire);
  io("release", reasons.release);
}

template <class Io, PartOf<HeaderRun> Part>
void fields(Io& io, Part& run) {
  io("count", run.count);
  fields(io, run.flags);
}

template <class Io, PartOf<Judgement> Part>
void fields(Io& io, Part& judgement) {
  io("verdict", judgement.verdict);
  io("writer", StepOrHost{judgement.writer});
  io("reader", StepOrHost{judgement.reader});
  io("wrong_runs", judgement.wrong_runs);
  io("runs", judgement.runs);
  io("reason", judgement.reason);
}

template <class Io, PartOf<Times> Part>
void fields(Io& io, Part& times) {
  io("median_us", times.median_us);
  io("mad_us", times.mad_us);
  io("low_us", times.low_us);
  io("high_us", times.high_us);
  io("coverage", times.coverage);
  io("samples_us", times.samples_us);
  io("noisy", times.noisy);
}

template <class Io, PartOf<ModelTime> Part>
void fields(Io& io, Part& model) {
  io("profile", model.profile);
  io("us", model.us);
  io("restated", model.restated);
}

template <class Io, PartOf<DeviceCounts> Part>
void fields(Io& io, Part& counts) {
  io("packets", counts.packets);
  io("doorbells", counts.doorbells);
  io("signal_updates", counts.signal_updates);
  io("interrupts", counts.interrupts);
  io("barrier_bits", counts.barrier_bits);
  io("agent_acquires", counts.agent_acquires);
  io("agent_releases", counts.agent_releases);
  io("system_acquires", counts.system_acquires);
  io("system_releases", counts.system_releases);
  io("l1_lines_invalidated", counts.l1_lines_invalidated);
  io("l2_lines_invalidated", counts.l2_lines_invalidated);
  io("l2_lines_written_back", counts.l2_lines_written_back);
}

template <class Io, PartOf<Cell> Part>
void fields(Io& io, Part& cell) {
  io("workload", cell.workload);
  io("label", cell.label);
  io("position", cell.position);
  fields(io, cell.flags);
  io("kernels", cell.kernels);
  io("bytes_per_kernel", cell.bytes_per_kernel);
  io("working_set_bytes", cell.working_set_bytes);
  io("baseline", cell.baseline);
  io("recommended", cell.recommended);
  io("judgement", cell.judgement);
  io("relative", cell.relative);
  io("gated", cell.gated);
  io("ungated", cell.ungated);
  io("device", cell.device);
  io("model", cell.model);
  io("counts", cell.counts);
  io("headers", cell.headers);
}

template <class Io, PartOf<PlannedPacket> Part>
void fields(Io& io, Part& packet) {
  io("queue", packet.queue);
  io("packet", packet.packet);
  io("step", packet.step);
  io.name_of_step(packet.step);
  io.only_written(
      "header",
      fmt::format("0x{:04x}", aql::make_header(aql::PacketType::kernel_dispatch, packet.flags)));
  fields(io, packet.flags);
  io("because", Reasons{packet.barrier, packet.acquire, packet.release});
  io("checker", packet.checker);
}

template <class Io, PartOf<Report> Part>
void fields(Io& io, Part& report) {
  io.only_written("format", kFormat);
  io("schema", report.schema);
  io("conclusion", report.conclusion);
  io.unless_missing("date", report.date);  // not in older reports
  io("experiment", report.experiment);
  io.unless_missing("description", report.description);  // not in older reports
  io("command", report.command);
  io.only_written("units",
                  {{"time", "us"},
                   {"size", "B"},
                   {"relative", "median of the gated times' ratios to the baseline's by round"}});
  io("time_kind", report.time_kind);
  io("timing", report.timing);
  io("device", report.device);
  io("target", report.target);
  io("versions", report.versions);
  io("environment", report.environment);
  io("seed", report.seed);
  io("steps", report.steps);
  io.unless_missing("packets", report.packets);  // experiments without plans may lack it
  io("warnings", report.warnings);
  io("cells", report.cells);
}

class Writer {
 public:
  Writer(ordered_json& out, const std::vector<std::string>& steps) : out_(out), steps_(steps) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    out_[name] = of(value);
  }
  template <class T>
  void unless_missing(const char* name, const T& value) {
    out_[name] = of(value);
  }
  void only_written(const char* name, ordered_json value) { out_[name] = std::move(value); }
  void name_of_step(size_t step) {
    if (step < steps_.size()) out_["name"] = steps_[step];
  }

 private:
  ordered_json of(double value) const {
    return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
  }
  ordered_json of(aql::Barrier barrier) const { return barrier == aql::Barrier::on; }
  ordered_json of(StepOrHost<const size_t> step) const {
    return step.index == Judgement::kNoStep ? ordered_json(nullptr) : ordered_json(step.index);
  }
  ordered_json of(const std::vector<aql::HeaderFlags>& headers) const {
    return of(runs_of(std::span(headers)));
  }
  template <class T>
  ordered_json of(const std::optional<T>& value) const {
    return value ? of(*value) : ordered_json(nullptr);
  }
  template <class T>
  ordered_json of(const std::vector<T>& values) const {
    ordered_json all = ordered_json::array();
    for (const T& value : values) all.push_back(of(value));
    return all;
  }
  template <class T>
  ordered_json of(const T& value) const {
    if constexpr (std::is_enum_v<T>) {
      return name_of(value);
    } else if constexpr (std::constructible_from<ordered_json, const T&>) {
      return value;
    } else {
      ordered_json out;
      Writer io(out, steps_);
      fields(io, value);
      return out;
    }
  }

  ordered_json& out_;
  const std::vector<std::string>& steps_;  // names
};

class Reader {
 public:
  explicit Reader(const JsonField& in) : in_(in) {}

  template <class T>
  void operator()(const char* name, T&& value) {
    read(in_[name], value);
  }
  template <class T>
  void unless_missing(const char* name, T& value) {
    if (const auto found = in_.find(name)) read(*found, value);
  }
  void only_written(const char*, const ordered_json&) {}
  void name_of_step(size_t) {}

 private:
  static void read(const JsonField& in, std::string& value) { value = in.text(); }
  static void read(const JsonField& in, bool& value) { value = in.flag(); }
  static void read(const JsonField& in, double& value) {
    value = in.is_null() ? std::numeric_limits<double>::quiet_NaN() : in.number();
  }
  static void read(const JsonField& in, aql::Barrier& value) {
    value = in.flag() ? aql::Barrier::on : aql::Barrier::off;
  }
  static void read(const JsonField& in, StepOrHost<size_t> step) {
    step.index = in.is_null() ? Judgement::kNoStep : in.whole<size_t>();
  }
  static void read(const JsonField& in, std::vector<aql::HeaderFlags>& headers) {
    for (const JsonField& each : in.elements()) {
      HeaderRun run;
      read(each, run);
      // A manipulated file must not exhaust memory.
      constexpr size_t kMost = 1'000'000;
      if (run.count > kMost || headers.size() + run.count > kMost)
        in.refuse(fmt::format("more than {} headers", kMost));
      headers.insert(headers.end(), run.count, run.flags);
    }
  }
  static void read(const JsonField& in, std::map<std::string, std::string>& values) {
    for (const auto& [name, field] : in.fields()) values[name] = field.text();
  }
  static void read(const JsonField& in, Times& times) {
    Reader io(in);
    fields(io, times);
    if (times.low_us > times.median_us || times.median_us > times.high_us)
      in.refuse(fmt::format("an impossible time: {} us in {} .. {}", times.median_us, times.low_us,
                            times.high_us));
  }
  template <class T>
  static void read(const JsonField& in, std::optional<T>& value) {
    if (!in.is_null()) read(in, value.emplace());
  }
  template <class T>
  static void read(const JsonField& in, std::vector<T>& values) {
    for (const JsonField& each : in.elements()) read(each, values.emplace_back());
  }
  template <class T>
  static void read(const JsonField& in, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto known = kByName<T>.find(in.text());
      if (known == kByName<T>.end()) in.refuse_for("a name that this version knows");
      value = known->second;
    } else if constexpr (std::unsigned_integral<T>) {
      value = in.whole<T>();
    } else {
      Reader io(in);
      fields(io, value);
    }
  }

  const JsonField& in_;
};

}  // namespace

ordered_json json(const Report& report) {
  ordered_json out;
  Writer io(out, report.steps);
  fields(io, report);
  return out;
}

std::string json_text(const Report& report) {
  return json(report).dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

Report parse_report(std::string_view text, const std::string& file) {
  ordered_json value;
  const auto refuse = [&](const std::string& why) { throw support::UsageError(file + ": " + why); };
  try {
    value = support::parse_json(text);
  } catch (const ordered_json::parse_error& error) {
    refuse(fmt::format("the text is not JSON from byte {} of {} on; is the file truncated?",
                       error.byte, text.size()));
  } catch (const std::exception& error) {  // a number out of range, or values in values
    refuse(fmt::format("the file is damaged: {}", error.what()));
  }
  if (!value.is_object() || !value.contains("format") || value["format"] != kFormat)
    refuse(fmt::format("the file is not a report of fence_scope: \"format\": \"{}\" is missing",
                       kFormat));
  Report report;
  try {
    const JsonField in(value);
    if (const auto schema = in["schema"].whole<uint32_t>(); schema != kReportSchema)
      in.refuse(fmt::format("its schema is {}, but this version reads {}", schema, kReportSchema));
    Reader io(in);
    fields(io, report);
  } catch (const std::runtime_error& error) {
    refuse(error.what());
  }
  return report;
}

Report read_report(const std::string& file) {
  return parse_report(support::read_input(file), file == "-" ? "standard input" : file);
}

}  // namespace uptempo::fence_scope
