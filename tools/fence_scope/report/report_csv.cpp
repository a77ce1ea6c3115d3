#include "tools/fence_scope/report/report_csv.hpp"

#include <fmt/format.h>

#include <cmath>

#include "aql/printable.hpp"
#include "aql/text.hpp"
#include "tools/fence_scope/report/report_words.hpp"

namespace uptempo::fence_scope {
namespace {

// One record. The first pass over a cell collects names, later passes values.
class Record {
 public:
  explicit Record(bool names) : names_(names) {}

  void add(const std::string& name, const std::string& value) {
    if (!first_) line_ += ',';
    first_ = false;
    line_ += quoted(names_ ? name : value);
  }
  void add(const std::string& name, const char* value) { add(name, std::string(value)); }
  void add(const std::string& name, std::string_view value) { add(name, std::string(value)); }
  void add(const std::string& name, bool value) { add(name, value ? "true" : "false"); }
  // The shortest text that reads back as the same value.
  void add(const std::string& name, double value) {
    add(name, std::isfinite(value) ? fmt::format("{}", value) : std::string());
  }
  void add(const std::string& name, uint64_t value) { add(name, std::to_string(value)); }
  void add(const std::string& name, uint32_t value) { add(name, std::to_string(value)); }
  void add(const std::string& name, const std::optional<uint64_t>& value) {
    add(name, value ? std::to_string(*value) : std::string());
  }
  void add_step(const std::string& name, size_t step) {
    add(name, step == Judgement::kNoStep ? std::string() : std::to_string(step));
  }
  void add(const std::string& name, const Times* times) {
    const Times none;
    const Times& t = times == nullptr ? none : *times;
    const bool any = times != nullptr;
    const auto real = [&](const char* part, double value) {
      any ? add(name + part, value) : add(name + part, std::string());
    };
    real("_median_us", t.median_us);
    real("_mad_us", t.mad_us);
    real("_low_us", t.low_us);
    real("_high_us", t.high_us);
    real("_coverage", t.coverage);
    any ? add(name + "_samples", uint64_t{t.samples_us.size()})
        : add(name + "_samples", std::string());
    any ? add(name + "_noisy", t.noisy) : add(name + "_noisy", std::string());
  }

  std::string line() const { return line_ + "\r\n"; }

 private:
  // RFC 4180, 2.5 to 2.7: fields with line breaks, quotes or commas are quoted, and quotes doubled.
  static std::string quoted(std::string_view text) {
    const std::string field = aql::printable(text, aql::Lines::kept);
    if (field.find_first_of("\",\r\n") == std::string::npos) return field;
    std::string out = "\"";
    for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + '"';
  }

  bool names_, first_ = true;
  std::string line_;
};

void add_run(Record& out, const Report& report) {
  out.add("experiment", report.experiment);
  out.add("device", report.device);
  out.add("target", report.target);
}

void add_flags(Record& out, const std::string& prefix, const aql::HeaderFlags* flags) {
  const auto text = [&](std::string_view value) {
    return std::string(flags == nullptr ? "" : value);
  };
  const aql::HeaderFlags known = flags == nullptr ? aql::HeaderFlags{} : *flags;
  out.add(prefix + "barrier", text(known.barrier == aql::Barrier::on ? "true" : "false"));
  out.add(prefix + "acquire", text(aql::scope_name(known.acquire)));
  out.add(prefix + "release", text(aql::scope_name(known.release)));
}

std::string record(const Report& report, const PlannedPacket& packet, bool names) {
  Record out(names);
  add_run(out, report);
  out.add("workload", report.cells.empty() ? std::string() : report.cells.front().workload);
  out.add("queue", packet.queue);
  out.add("packet", packet.packet);
  out.add("step", uint64_t{packet.step});
  out.add("name", packet.step < report.steps.size() ? report.steps[packet.step] : std::string());
  out.add("header", fmt::format("0x{:04x}",
                                aql::make_header(aql::PacketType::kernel_dispatch, packet.flags)));
  add_flags(out, "", &packet.flags);
  out.add("barrier_because", packet.barrier);
  out.add("acquire_because", packet.acquire);
  out.add("release_because", packet.release);
  add_flags(out, "checker_", packet.checker ? &*packet.checker : nullptr);
  return out.line();
}

std::string record(const Report& report, const Cell& cell, bool names) {
  Record out(names);
  add_run(out, report);
  out.add("time_kind", name_of(report.time_kind));
  out.add("timing", name_of(report.timing));
  out.add("seed", report.seed);
  out.add("workload", cell.workload);
  out.add("label", cell.label);
  out.add("position", name_of(cell.position));
  add_flags(out, "", &cell.flags);
  out.add("kernels", cell.kernels);
  out.add("bytes_per_kernel", cell.bytes_per_kernel);
  out.add("working_set_bytes", cell.working_set_bytes);
  out.add("baseline", cell.baseline);
  out.add("recommended", cell.recommended);
  out.add("verdict", name_of(cell.judgement.verdict));
  out.add_step("writer", cell.judgement.writer);
  out.add_step("reader", cell.judgement.reader);
  out.add("wrong_runs", cell.judgement.wrong_runs);
  out.add("runs", cell.judgement.runs);
  out.add("reason", cell.judgement.reason);
  out.add("relative", cell.relative);
  out.add("gated", &cell.gated);
  out.add("ungated", &cell.ungated);
  out.add("device_time", cell.device ? &*cell.device : nullptr);
  out.add("model_profile", cell.model ? cell.model->profile : std::string());
  cell.model ? out.add("model_us", cell.model->us) : out.add("model_us", std::string());
  cell.model ? out.add("model_restated", cell.model->restated)
             : out.add("model_restated", std::string());
  for (const CountInfo& info : counts_info()) out.add(info.key, cell.counts.*info.member);
  for (const LineCountInfo& info : line_counts_info()) out.add(info.key, cell.counts.*info.member);
  return out.line();
}

}  // namespace

std::string csv(const Report& report) {
  if (!report.packets.empty()) {
    std::string text = record(report, PlannedPacket{}, true);
    for (const PlannedPacket& packet : report.packets) text += record(report, packet, false);
    return text;
  }
  std::string text = record(report, Cell{}, true);
  for (const Cell& cell : report.cells) text += record(report, cell, false);
  return text;
}

}  // namespace uptempo::fence_scope
