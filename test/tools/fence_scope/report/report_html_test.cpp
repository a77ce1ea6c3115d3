#include "tools/fence_scope/report/report_html.hpp"

#include <vector>

#include "test/support/catch.hpp"
#include "test/support/text.hpp"
#include "test/tools/fence_scope/report/example_reports.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using test::contains;
using test::count;

namespace {

// Returns the first defect, or "": every tag must be closed by its own, as in a tree, and every
// attribute quoted.
std::string ill_formed(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    if (text.compare(at, 9, "<!DOCTYPE") == 0) continue;
    size_t end = at;
    bool quoted = false;
    while (++end < text.size() && (quoted || text[end] != '>')) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '<') return "a < within " + text.substr(at, 40);
    }
    if (end == text.size()) return "an open tag";
    const bool closing = text[at + 1] == '/', empty = text[end - 1] == '/';
    const size_t start = at + 1 + closing;
    const std::string name = text.substr(start, text.find_first_of(" >/\n", start) - start);
    if (name == "br" || name == "meta" || empty) continue;
    if (!closing) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name)
        return "</" + name + "> in " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace

TEST_CASE(
    "report as HTML: well formed, without external references or script, whatever the names "
    "contain") {
  std::mt19937_64 random(4);
  std::vector<Report> reports{
      examples::scopes_report(), examples::sweep_report(), examples::ladder_report(), {}};
  for (int i = 0; i < 100; ++i) reports.push_back(examples::random_report(random));
  for (const Report& report : reports) {
    const std::string page = html(report);
    CHECK(ill_formed(page) == "");
    for (const char* outside : {"href=", "src=", "@import", "url(", "<script", "<link", "<&>"})
      CHECK(!contains(page, outside));
    CHECK(contains(page, "width=device-width"));
    CHECK(contains(page, "@media print"));
    CHECK(contains(page, "prefers-color-scheme: dark"));
  }
}

TEST_CASE("report as HTML: text is escaped") {
  CHECK(html_escaped("<a href='x'>\"&\"</a>\x01") ==
        "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;&lt;/a&gt;\xef\xbf\xbd");
  Report report = examples::ladder_report();
  report.conclusion = "<script>alert(1)</script>";
  report.cells[0].label = "</td><b>";
  report.cells[0].judgement.reason = "\" onclick=\"x";
  report.environment["HSA_X"] = "<i>";
  const std::string page = html(report);
  for (const char* raw : {"<script", "</td><b>", "onclick=\"", "<i>"}) CHECK(!contains(page, raw));
}

TEST_CASE(
    "report as HTML: has the conclusion, words beside colours, labels of times, headers as hex and "
    "words") {
  const std::string page = html(examples::scopes_report());
  CHECK(page.find("<h1>chain: the barrier bit") < page.find("<h2>"));
  for (const char* part :
       {"✓ correct", "✗ stale", "⇄ unordered", "? unknown", "recommended", "baseline",
        "times of a virtual GPU, not of hardware", "model mi210: predicted", "<svg", "0x1502",
        "<td>barrier, acquire system, release system</td>", "0 fill", "add &lt;1&gt;"})
    CHECK(contains(page, part));
  const std::string ladder = html(examples::ladder_report());
  CHECK(contains(ladder, "model fiji: restated, not reproduced"));
  CHECK(contains(ladder, "restated</span>"));
  CHECK(!contains(html(examples::sweep_report()), "model"));
}

TEST_CASE(
    "report as HTML: 18 settings are two squares of acquire and release, with or without a "
    "baseline") {
  Report report = examples::scopes_report();
  const size_t squares = count(html(report), "<caption>");
  CHECK(squares == 2 * 3);
  report.cells.insert(report.cells.begin(), report.cells[0]);
  report.cells[0].position = Position::all;
  const std::string page = html(report);
  CHECK(count(page, "<caption>") == squares);
  CHECK(count(page, "not run") == 0);
}

TEST_CASE("report as HTML: a chart for each size that varies alone") {
  Report report = examples::sweep_report();
  CHECK(count(html(report), ">Over ") == 1);
  CHECK(contains(html(report), ">Over kernels in the sequence: chain<"));
  // The working set varies with the bytes of a kernel, and then once more alone.
  const std::vector<Cell> largest(report.cells.end() - 3, report.cells.end());
  for (const uint64_t bytes : {4096u, 16384u})
    for (Cell cell : largest) {
      cell.bytes_per_kernel = bytes;
      cell.working_set_bytes = 2 * bytes;
      report.cells.push_back(cell);
    }
  for (Cell cell : largest) {
    cell.working_set_bytes = 1 << 20;
    report.cells.push_back(cell);
  }
  const std::string page = html(report);
  for (const char* title :
       {">Over kernels in the sequence: ", ">Over bytes per kernel: ", ">Over working set: "})
    CHECK(count(page, title) == 1);
}

TEST_CASE(
    "report as HTML: charts show the model's times if the virtual GPU's are meaningless, and no "
    "others") {
  const Report report = examples::scopes_report();
  CHECK(contains(html(report), ">Correct first, cheapest on top: chain<"));
  CHECK(contains(html(report), ">model mi210: predicted, in us;"));
  Report measured = report;
  for (Cell& cell : measured.cells) cell.model.reset();
  CHECK(contains(html(measured), ">Correct first, fastest on top: chain<"));
  CHECK(contains(html(measured), ">gated virtual GPU time in us"));
}

TEST_CASE("report as HTML: says which median a ratio is, and which times it is of") {
  const std::string page = html(examples::scopes_report());
  CHECK(contains(page, "then the ratio by round."));
  CHECK(contains(page, "it is not the quotient of the two medians"));
  CHECK(contains(page, "<th>ratio by round</th>"));
  Report ladder = examples::ladder_report();
  for (Cell& cell : ladder.cells) cell.gated = {};
  const std::string ungated = html(ladder);
  CHECK(contains(ungated, "Medians of one iteration, ungated, virtual GPU time"));
  CHECK(contains(ungated, "<th>ratio of medians</th>"));
  CHECK_FALSE(contains(ungated, "by round"));
}

TEST_CASE("report as HTML: has its date, and correct cells precede the others in its tables") {
  Report report = examples::scopes_report();
  CHECK(!contains(html(report), "<th>date</th>"));
  report.date = "2026-11-27 03:44 UTC";
  const std::string page = html(report);
  CHECK(contains(page, "<p>2026-11-27 03:44 UTC, "));
  CHECK(contains(page, "<th>date</th><td>2026-11-27 03:44 UTC</td>"));
  const size_t table = page.find("class=\"figures\""), end = page.find("</table>", table);
  const std::string figures = page.substr(table, end - table);
  const size_t last_correct = figures.rfind("<td>correct");
  for (const char* verdict : {"<td>stale", "<td>unordered", "<td>unknown"})
    if (contains(figures, verdict)) CHECK(figures.find(verdict) > last_correct);
  CHECK(contains(figures, "<td>stale"));
}
