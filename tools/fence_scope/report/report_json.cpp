#include "tools/fence_scope/report/report_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "aql/text.hpp"
#include "tools/fence_scope/report/report_words.hpp"
#include "tools/support/json_depth.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFormat = "fence_scope report";

// Writing

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json step(size_t index) {
  return index == Judgement::kNoStep ? ordered_json(nullptr) : ordered_json(index);
}

void put(ordered_json& out, aql::HeaderFlags flags) {
  out["barrier"] = flags.barrier == aql::Barrier::on;
  out["acquire"] = aql::scope_name(flags.acquire);
  out["release"] = aql::scope_name(flags.release);
}

ordered_json json(const Judgement& judgement) {
  return {{"verdict", name_of(judgement.verdict)},
          {"writer", step(judgement.writer)},
          {"reader", step(judgement.reader)},
          {"wrong_runs", judgement.wrong_runs},
          {"runs", judgement.runs},
          {"reason", judgement.reason}};
}

ordered_json json(const Times& times) {
  ordered_json samples = ordered_json::array();
  for (const double sample : times.samples_us) samples.push_back(number(sample));
  return {{"median_us", number(times.median_us)}, {"mad_us", number(times.mad_us)},
          {"low_us", number(times.low_us)},       {"high_us", number(times.high_us)},
          {"coverage", number(times.coverage)},   {"noisy", times.noisy},
          {"samples_us", std::move(samples)}};
}

ordered_json json(const ModelTime& model) {
  return {{"profile", model.profile}, {"us", number(model.us)}, {"restated", model.restated}};
}

ordered_json json(const DeviceCounts& counts) {
  ordered_json out;
  for (const CountInfo& info : counts_info()) out[info.key] = counts.*info.member;
  for (const LineCountInfo& info : line_counts_info()) {
    const std::optional<uint64_t>& count = counts.*info.member;
    out[info.key] = count ? ordered_json(*count) : ordered_json(nullptr);
  }
  return out;
}

ordered_json json(const Cell& cell) {
  ordered_json out{
      {"workload", cell.workload}, {"label", cell.label}, {"position", name_of(cell.position)}};
  put(out, cell.flags);
  out["kernels"] = cell.kernels;
  out["bytes_per_kernel"] = cell.bytes_per_kernel;
  out["working_set_bytes"] = cell.working_set_bytes;
  out["baseline"] = cell.baseline;
  out["recommended"] = cell.recommended;
  out["judgement"] = json(cell.judgement);
  out["relative"] = number(cell.relative);
  out["gated"] = json(cell.gated);
  out["ungated"] = json(cell.ungated);
  out["device"] = cell.device ? json(*cell.device) : ordered_json(nullptr);
  out["model"] = cell.model ? json(*cell.model) : ordered_json(nullptr);
  out["counts"] = json(cell.counts);
  ordered_json headers = ordered_json::array();
  for (const HeaderRun& run : runs_of(cell.headers)) {
    ordered_json each{{"count", run.count}};
    put(each, run.flags);
    headers.push_back(std::move(each));
  }
  out["headers"] = std::move(headers);
  return out;
}

ordered_json json(const PlannedPacket& packet, const std::vector<std::string>& steps) {
  ordered_json out{{"queue", packet.queue}, {"packet", packet.packet}, {"step", packet.step}};
  if (packet.step < steps.size()) out["name"] = steps[packet.step];
  out["header"] =
      fmt::format("0x{:04x}", aql::make_header(aql::PacketType::kernel_dispatch, packet.flags));
  put(out, packet.flags);
  out["because"] = {
      {"barrier", packet.barrier}, {"acquire", packet.acquire}, {"release", packet.release}};
  if (packet.checker)
    put(out["checker"], *packet.checker);
  else
    out["checker"] = nullptr;
  return out;
}

// Reading: a value, and its path for error messages.
class JsonField {
 public:
  JsonField(const ordered_json& value, std::string path, const std::string& file)
      : value_(&value), path_(std::move(path)), file_(&file) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw support::UsageError(fmt::format("{}: {}{}{}", *file_,
                                          path_.empty() ? "" : "'" + path_ + "' ",
                                          path_.empty() ? "" : "is ", why));
  }

  bool is_null() const { return value_->is_null(); }
  bool has(const char* name) const { return value_->is_object() && value_->contains(name); }

  JsonField operator[](const char* name) const {
    const std::string path = path_.empty() ? name : path_ + '.' + name;
    if (!value_->is_object()) refuse(fmt::format("no object but {}", shown()));
    const auto found = value_->find(name);
    if (found == value_->end())
      throw support::UsageError(fmt::format("{}: '{}' is missing", *file_, path));
    return {*found, path, *file_};
  }

  std::vector<JsonField> elements() const {
    if (!value_->is_array()) refuse(fmt::format("no array but {}", shown()));
    std::vector<JsonField> out;
    for (size_t i = 0; i < value_->size(); ++i)
      out.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i), *file_);
    return out;
  }

  std::string text() const {
    if (!value_->is_string()) refuse(fmt::format("no text but {}", shown()));
    return value_->get<std::string>();
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const JsonField& element : elements()) out.push_back(element.text());
    return out;
  }
  std::map<std::string, std::string> text_map() const {
    if (!value_->is_object()) refuse(fmt::format("no object but {}", shown()));
    std::map<std::string, std::string> out;
    for (const auto& [name, value] : value_->items())
      out[name] = JsonField(value, path_ + '.' + name, *file_).text();
    return out;
  }
  bool boolean() const {
    if (!value_->is_boolean()) refuse(fmt::format("neither true nor false but {}", shown()));
    return value_->get<bool>();
  }
  // null: unknown.
  double number() const {
    if (value_->is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value_->is_number()) refuse(fmt::format("no number but {}", shown()));
    return value_->get<double>();
  }
  template <class Unsigned>
  Unsigned integer() const {
    const uint64_t most = std::numeric_limits<Unsigned>::max();
    if (!value_->is_number_unsigned() || value_->get<uint64_t>() > most)
      refuse(fmt::format("no whole number from 0 to {} but {}", most, shown()));
    return static_cast<Unsigned>(value_->get<uint64_t>());
  }
  template <class Enum>
  Enum one_of() const {
    const std::optional<Enum> value = named<Enum>(text());
    if (!value) refuse(fmt::format("{}, which this version does not know", shown()));
    return *value;
  }

 private:
  // The value found, in at most one line.
  std::string shown() const {
    std::string text = value_->dump(-1, ' ', true, ordered_json::error_handler_t::replace);
    if (text.size() > 40) text = text.substr(0, 40) + "...";
    return text;
  }

  const ordered_json* value_;
  std::string path_;
  const std::string* file_;
};

size_t read_step(const JsonField& in) {
  return in.is_null() ? Judgement::kNoStep : in.integer<size_t>();
}

aql::HeaderFlags read_flags(const JsonField& in) {
  return {.barrier = in["barrier"].boolean() ? aql::Barrier::on : aql::Barrier::off,
          .acquire = in["acquire"].one_of<aql::FenceScope>(),
          .release = in["release"].one_of<aql::FenceScope>()};
}

Judgement read_judgement(const JsonField& in) {
  return {.verdict = in["verdict"].one_of<Verdict>(),
          .writer = read_step(in["writer"]),
          .reader = read_step(in["reader"]),
          .wrong_runs = in["wrong_runs"].integer<uint32_t>(),
          .runs = in["runs"].integer<uint32_t>(),
          .reason = in["reason"].text()};
}

Times read_times(const JsonField& in) {
  Times times{.samples_us = {},
              .median_us = in["median_us"].number(),
              .mad_us = in["mad_us"].number(),
              .low_us = in["low_us"].number(),
              .high_us = in["high_us"].number(),
              .coverage = in["coverage"].number(),
              .noisy = in["noisy"].boolean()};
  for (const JsonField& sample : in["samples_us"].elements())
    times.samples_us.push_back(sample.number());
  if (times.low_us > times.median_us || times.median_us > times.high_us)
    in.refuse(fmt::format("an impossible time: {} us in {} .. {}", times.median_us, times.low_us,
                          times.high_us));
  return times;
}

ModelTime read_model(const JsonField& in) {
  return {.profile = in["profile"].text(),
          .us = in["us"].number(),
          .restated = in["restated"].boolean()};
}

DeviceCounts read_counts(const JsonField& in) {
  DeviceCounts counts;
  for (const CountInfo& info : counts_info())
    counts.*info.member = in[info.key].integer<uint64_t>();
  for (const LineCountInfo& info : line_counts_info())
    if (const JsonField count = in[info.key]; !count.is_null())
      counts.*info.member = count.integer<uint64_t>();
  return counts;
}

Cell read_cell(const JsonField& in) {
  Cell cell;
  cell.workload = in["workload"].text();
  cell.label = in["label"].text();
  cell.position = in["position"].one_of<Position>();
  cell.flags = read_flags(in);
  cell.kernels = in["kernels"].integer<uint32_t>();
  cell.bytes_per_kernel = in["bytes_per_kernel"].integer<uint64_t>();
  cell.working_set_bytes = in["working_set_bytes"].integer<uint64_t>();
  cell.baseline = in["baseline"].boolean();
  cell.recommended = in["recommended"].boolean();
  cell.judgement = read_judgement(in["judgement"]);
  cell.relative = in["relative"].number();
  cell.gated = read_times(in["gated"]);
  cell.ungated = read_times(in["ungated"]);
  if (const JsonField device = in["device"]; !device.is_null()) cell.device = read_times(device);
  if (const JsonField model = in["model"]; !model.is_null()) cell.model = read_model(model);
  cell.counts = read_counts(in["counts"]);
  for (const JsonField& run : in["headers"].elements()) {
    // A manipulated file must not exhaust memory.
    const auto count = run["count"].integer<uint32_t>();
    if (count > 1'000'000 || cell.headers.size() + count > 1'000'000)
      run["count"].refuse("more than 1000000 headers");
    cell.headers.insert(cell.headers.end(), count, read_flags(run));
  }
  return cell;
}

PlannedPacket read_packet(const JsonField& in) {
  const JsonField because = in["because"], checker = in["checker"];
  PlannedPacket packet{.step = in["step"].integer<size_t>(),
                       .queue = in["queue"].integer<uint32_t>(),
                       .packet = in["packet"].integer<uint32_t>(),
                       .flags = read_flags(in),
                       .barrier = because["barrier"].text(),
                       .acquire = because["acquire"].text(),
                       .release = because["release"].text()};
  if (!checker.is_null()) packet.checker = read_flags(checker);
  return packet;
}

}  // namespace

ordered_json json(const Report& report) {
  ordered_json cells = ordered_json::array();
  for (const Cell& cell : report.cells) cells.push_back(json(cell));
  ordered_json packets = ordered_json::array();
  for (const PlannedPacket& packet : report.packets) packets.push_back(json(packet, report.steps));
  return {{"format", kFormat},
          {"schema", report.schema},
          {"conclusion", report.conclusion},
          {"date", report.date},
          {"experiment", report.experiment},
          {"description", report.description},
          {"command", report.command},
          {"units",
           {{"time", "us"},
            {"size", "B"},
            {"relative", "median of the gated times' ratios to the baseline's by round"}}},
          {"time_kind", name_of(report.time_kind)},
          {"timing", name_of(report.timing)},
          {"device", report.device},
          {"target", report.target},
          {"versions", report.versions},
          {"environment", report.environment},
          {"seed", report.seed},
          {"steps", report.steps},
          {"packets", std::move(packets)},
          {"warnings", report.warnings},
          {"cells", std::move(cells)}};
}

std::string json_text(const Report& report) {
  return json(report).dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

Report parse_report(std::string_view text, const std::string& file) {
  ordered_json value;
  try {
    value = support::parse_shallow_json<ordered_json>(text);
  } catch (const ordered_json::parse_error& error) {
    throw support::UsageError(
        fmt::format("{}: the text is not JSON from byte {} of {} on; is the file truncated?", file,
                    error.byte, text.size()));
  } catch (const std::exception& error) {  // a number out of range, or values in values
    throw support::UsageError(fmt::format("{}: the file is damaged: {}", file, error.what()));
  }
  const JsonField in(value, "", file);
  if (!in.has("format") || in["format"].is_null() || in["format"].text() != kFormat)
    in.refuse(fmt::format("the file is not a report of fence_scope: \"format\": \"{}\" is missing",
                          kFormat));
  Report report;
  report.schema = in["schema"].integer<uint32_t>();
  if (report.schema != kReportSchema)
    in.refuse(
        fmt::format("its schema is {}, but this version reads {}", report.schema, kReportSchema));
  report.conclusion = in["conclusion"].text();
  if (in.has("date")) report.date = in["date"].text();  // not in older reports
  report.experiment = in["experiment"].text();
  // Not in older reports.
  if (in.has("description")) report.description = in["description"].text();
  report.command = in["command"].texts();
  report.time_kind = in["time_kind"].one_of<TimeKind>();
  report.timing = in["timing"].one_of<TimingMode>();
  report.device = in["device"].text();
  report.target = in["target"].text();
  report.versions = in["versions"].text_map();
  report.environment = in["environment"].text_map();
  report.seed = in["seed"].integer<uint64_t>();
  report.steps = in["steps"].texts();
  report.warnings = in["warnings"].texts();
  // Reports of experiments without plans may lack it.
  if (in.has("packets"))
    for (const JsonField& packet : in["packets"].elements())
      report.packets.push_back(read_packet(packet));
  for (const JsonField& cell : in["cells"].elements()) report.cells.push_back(read_cell(cell));
  return report;
}

Report read_report(const std::string& file) {
  return parse_report(support::read_input(file), file == "-" ? "standard input" : file);
}

}  // namespace uptempo::fence_scope
