#include "tools/fence_scope/report/report_csv.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <uptempo/aql/printable.hpp>
#include "test/support/catch.hpp"
#include "test/tools/fence_scope/report/example_reports.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;

namespace {

using Record = std::vector<std::string>;

// Parses strictly by the grammar of RFC 4180, section 2.
std::vector<Record> parse(const std::string& text) {
  std::vector<Record> records;
  size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  while (at < text.size()) {
    Record record;
    for (;;) {
      std::string field;
      if (peek() == '"') {
        for (++at;; ++at) {
          if (at >= text.size()) throw std::runtime_error("a quoted field does not end");
          if (text[at] == '"') {
            if (++at < text.size() && text[at] == '"')
              ;
            else
              break;
          }
          field += text[at];
        }
      } else {
        for (; at < text.size() && text[at] != ',' && text[at] != '\r'; ++at) {
          if (text[at] == '"' || text[at] == '\n')
            throw std::runtime_error("a bare quote or line feed");
          field += text[at];
        }
      }
      record.push_back(field);
      if (peek() != ',') break;
      ++at;
    }
    if (text.compare(at, 2, "\r\n") != 0) throw std::runtime_error("a record does not end in CRLF");
    at += 2;
    records.push_back(std::move(record));
  }
  return records;
}

std::map<std::string, std::string> by_name(const std::vector<Record>& records, size_t index) {
  std::map<std::string, std::string> out;
  for (size_t i = 0; i < records[0].size(); ++i) out[records[0][i]] = records[index][i];
  return out;
}

// Names are data: a cell has no control characters but line feeds and tabs.
std::string shown(std::string_view text) { return aql::printable(text, aql::Lines::kept); }

}  // namespace

TEST_CASE(
    "report as CSV: whatever the names contain, each cell has a record, and all have the same "
    "length") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    Report report = examples::random_report(random);
    report.packets.clear();
    const std::vector<Record> records = parse(csv(report));
    REQUIRE(records.size() == report.cells.size() + 1);
    for (size_t i = 0; i < report.cells.size(); ++i) {
      const Cell& cell = report.cells[i];
      REQUIRE(records[i + 1].size() == records[0].size());
      auto field = by_name(records, i + 1);
      REQUIRE(field.size() == records[0].size());  // the header names no field twice
      CHECK(field["label"] == shown(cell.label));
      CHECK(field["reason"] == shown(cell.judgement.reason));
      CHECK(field["device"] == shown(report.device));
      CHECK(std::stod(field["gated_median_us"]) == cell.gated.median_us);
      CHECK(std::stoull(field["working_set_bytes"]) == cell.working_set_bytes);
      CHECK((field["device_time_median_us"].empty() == !cell.device));
      CHECK((field["model_us"].empty() == !cell.model));
      CHECK((field["l2_lines_written_back"].empty() == !cell.counts.l2_lines_written_back));
    }
  }
}

TEST_CASE("report as CSV: a report with packets has a record for each of them, with its reasons") {
  std::mt19937_64 random(6);
  for (int round = 0; round < 200; ++round) {
    const Report report = examples::random_report(random);
    if (report.packets.empty()) continue;
    const std::vector<Record> records = parse(csv(report));
    REQUIRE(records.size() == report.packets.size() + 1);
    for (size_t i = 0; i < report.packets.size(); ++i) {
      const PlannedPacket& packet = report.packets[i];
      REQUIRE(records[i + 1].size() == records[0].size());
      auto field = by_name(records, i + 1);
      REQUIRE(field.size() == records[0].size());
      CHECK(field["acquire_because"] == shown(packet.acquire));
      CHECK(field["release_because"] == shown(packet.release));
      CHECK(field["barrier"] == (packet.flags.barrier == aql::Barrier::on ? "true" : "false"));
      CHECK(field["checker_acquire"].empty() == !packet.checker);
    }
  }
}

TEST_CASE(
    "report as CSV: a record gives device, kind and mode of its times, and how reliable they are") {
  const std::vector<Record> records = parse(csv(examples::scopes_report()));
  REQUIRE(records.size() == 55);
  auto field = by_name(records, 1);
  CHECK(field["time_kind"] == "virtual_gpu");
  CHECK(field["timing"] == "none");
  CHECK(field["position"] == "first");
  CHECK(field["barrier"] == "true");
  CHECK(field["acquire"] == "none");
  CHECK(field["verdict"] == "stale");
  CHECK(field["writer"].empty());
  CHECK(field["reader"] == "2");
  CHECK(field["gated_samples"] == "9");
  CHECK(field["model_profile"] == "mi210");
  CHECK(field["model_restated"] == "false");
  CHECK(field["system_acquires"] == "4");
}

TEST_CASE("report as CSV: a report without cells has only the header") {
  CHECK(parse(csv({})).size() == 1);
}
