#include "fence_scope/report_html.hpp"

#include <vector>

#include "support/catch.hpp"
#include "tools/fence_scope/example_reports.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Every tag is closed by its own, in the order of a tree; attributes are quoted. Throws nothing: says what is wrong, or nothing.
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

TEST_CASE("report as HTML: well formed, refers to nothing outside, and has no script, whatever names hold") {
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

TEST_CASE("report as HTML: conclusion, words beside colours, labels of times, and headers as hex and words") {
  const std::string page = html(examples::scopes_report());
  CHECK(page.find("<h1>chain: the barrier bit") < page.find("<h2>"));
  for (const char* part :
       {"✓ correct", "✗ stale", "⇄ unordered", "? unknown", "recommended", "baseline",
        "times of a virtual GPU, not of hardware", "model mi210: predicted", "<svg", "0x1502",
        "kernel_dispatch barrier acquire=system release=system", "0 fill", "add &lt;1&gt;"})
    CHECK(contains(page, part));
  const std::string ladder = html(examples::ladder_report());
  CHECK(contains(ladder, "model fiji: restated, not reproduced"));
  CHECK(contains(ladder, "restated</span>"));
  CHECK(!contains(html(examples::sweep_report()), "model"));
}
