#include "tools/fence_scope/report/report_html.hpp"

#include <algorithm>
#include <utility>
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

std::string without_tags(const std::string& page) {
  std::string text;
  bool tag = false;
  for (const char each : page) {
    if (each == '<') tag = true;
    if (!tag) text += each;
    if (each == '>') tag = false;
  }
  return text;
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
        "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;&lt;/a&gt;\\x01");
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
    "report as HTML: all settings of all packets are one matrix, with or without a baseline") {
  Report report = examples::scopes_report();
  const auto check = [](const std::string& page) {
    CHECK(count(page, "class=\"matrix square\"") == 1);
    const size_t begin = page.find("<table class=\"matrix square\">");
    const std::string matrix = page.substr(begin, page.find("</table>", begin) - begin);
    CHECK(count(matrix, "<td class=\"v-") == 3 * 18);
    for (const char* once : {">First packet<", ">Packets between the first and the last<",
                             ">Last packet<", ">with barrier bit<", ">without barrier bit<"})
      CHECK(count(page, once) == 1);
    CHECK(count(page, "not run") == 0);
  };
  check(html(report));
  report.cells.insert(report.cells.begin(), report.cells[0]);
  report.cells[0].position = Position::all;
  check(html(report));
  // Without the cells of one acquire scope of the first packet there is a row less.
  std::erase_if(report.cells, [](const Cell& cell) {
    return cell.position == Position::first && cell.flags.acquire == aql::FenceScope::none;
  });
  CHECK(contains(html(report), "<th rowspan=\"2\">First packet</th>"));
  CHECK(count(html(report), "not run") == 0);
}

TEST_CASE("report as HTML: the page shows the reason of each cell that is not correct") {
  const Report report = examples::scopes_report();
  const std::string page = html(report), visible = without_tags(page);
  CHECK(count(page, " title=") == 0);
  for (const Cell& cell : report.cells)
    CHECK(contains(visible, html_escaped(cell.judgement.reason)));
  // The number in a cell is that of its reason in the list.
  const size_t list = page.find("<h3>Why not</h3>");
  REQUIRE(list != std::string::npos);
  for (const auto& [number, unordered] : {std::pair("[1]", true), std::pair("[2]", false)}) {
    const size_t row = page.find(number, list);
    CHECK(contains(page.substr(row, 120), unordered ? ", 18 cells</td><td>dispatch 1 reads"
                                                    : ", 8 cells</td><td>nothing releases"));
    const std::string cell = std::string(unordered ? "unordered 0&gt;1" : "unknown") +
                             "</b> <span class=\"soft\">" + number;
    CHECK(count(page, cell) == (unordered ? 18u : 8u));
  }
}

TEST_CASE("report as HTML: one sign for plus-minus, and what ? means beside a time") {
  const std::string page = html(examples::scopes_report());
  CHECK(contains(page, "47.3 us ±1%"));
  CHECK(contains(page, ">47.3 ±1%<"));
  CHECK_FALSE(contains(page, "+-"));
  CHECK(contains(page, "51.6 us ±1%?"));
  CHECK(contains(page, "? too noisy"));
  CHECK_FALSE(contains(html(examples::sweep_report()), "too noisy"));
}

TEST_CASE("report as HTML: the table of figures fits a page of 1280 pixels") {
  Report report = examples::scopes_report();
  for (Cell& cell : report.cells) {
    cell.gated = examples::times_of({12345, 12346, 12344, 12345, 12345, 12345, 23456});
    cell.gated.noisy = true;
    cell.ungated = cell.gated;
    cell.device = cell.gated;
    cell.judgement.writer = 118;
    cell.judgement.reader = 119;
  }
  const std::string page = html(report);
  const size_t begin = page.find("<table class=\"figures\">"), end = page.find("</table>", begin);
  const std::string figures = page.substr(begin, end - begin);
  std::vector<size_t> widths;  // of each column: its longest line, in bytes
  for (size_t row = figures.find("<tr>"); row != std::string::npos;
       row = figures.find("<tr>", row + 1)) {
    const std::string cells = figures.substr(row, figures.find("</tr>", row) - row);
    size_t column = 0;
    for (size_t at = cells.find("<t", 4); at != std::string::npos; ++column) {
      const size_t text = cells.find('>', at) + 1, close = cells.find("</t", text);
      widths.resize(std::max(widths.size(), column + 1));
      for (size_t line = text; line < close;) {
        const size_t line_end = std::min(cells.find("<br>", line), close);
        widths[column] = std::max(widths[column], line_end - line);
        line = line_end + 4;
      }
      at = cells.find("<t", close + 5);
    }
  }
  REQUIRE(widths.size() >= 11);
  size_t pixels = 0;
  // 14 px DejaVu Sans: a digit has 8.9 px. Each column has 10 px of padding and 1 px of border.
  for (const size_t width : widths) pixels += width * 89 / 10 + 11;
  CHECK(pixels <= 1280 - 2 * 24);
}

TEST_CASE("report as HTML: no name is cut") {
  Report report = examples::sweep_report();
  const std::string name = "a program whose name is longer than the title of a chart can be";
  for (Cell& cell : report.cells) cell.workload = name;
  const std::string page = html(report);
  CHECK(contains(page, name));
  CHECK_FALSE(contains(page, "…"));
}

TEST_CASE("report as HTML: a chart for each size that varies alone") {
  Report report = examples::sweep_report();
  CHECK(count(html(report), ">Over ") == 1);
  CHECK(contains(html(report), ">Over kernels in the sequence<"));
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
       {">Over kernels in the sequence<", ">Over bytes per kernel<", ">Over working set<"})
    CHECK(count(page, title) == 1);
}

TEST_CASE(
    "report as HTML: charts show the model's times if the virtual GPU's are meaningless, and no "
    "others") {
  const Report report = examples::scopes_report();
  CHECK(contains(html(report), ">Correct first, cheapest on top<"));
  CHECK(contains(html(report), ">model mi210: predicted, in us;"));
  Report measured = report;
  for (Cell& cell : measured.cells) cell.model.reset();
  CHECK(contains(html(measured), ">Correct first, fastest on top<"));
  CHECK(contains(html(measured), ">gated virtual GPU time in us"));
}

TEST_CASE("report as HTML: says which median a ratio is, and which times it is of") {
  const std::string page = html(examples::scopes_report());
  CHECK(contains(page, "then the ratio by round."));
  CHECK(contains(page, "it is not the quotient of the two medians"));
  CHECK(contains(page, "<th>ratio<br>by round</th>"));
  Report ladder = examples::ladder_report();
  for (Cell& cell : ladder.cells) cell.gated = {};
  const std::string ungated = html(ladder);
  CHECK(contains(ungated, "Medians of one iteration, ungated, virtual GPU time"));
  CHECK(contains(ungated, "<th>ratio of<br>medians</th>"));
  CHECK_FALSE(contains(ungated, "by round"));
}

TEST_CASE("report as HTML: the description follows the workload's name") {
  Report report = examples::scopes_report();
  report.description = "x < y, \"all\" of it";
  CHECK(contains(html(report), "<h2>scopes chain: x &lt; y, &quot;all&quot; of it</h2>"));
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
