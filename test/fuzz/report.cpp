// Reports that fence_scope and dispatch_bench read back. A report of fence_scope writes the text
// that it is read from.
#include "test/fuzz/fuzz.hpp"
#include "tools/bench/dispatch/earlier.hpp"
#include "tools/fence_scope/report/report_json.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fuzz {

void report(Bytes input) {
  using namespace fence_scope;
  Report read;
  if (accepts_or<support::UsageError>([&] { read = parse_report(text_of(input), "a file"); })) {
    const std::string text = json_text(read);
    require(json_text(parse_report(text, "its copy")) == text,
            "a report reads the text that it wrote");
  }
  accepts_or<support::UsageError>(
      [&] { (void)bench::parse_earlier(std::string(text_of(input)), "a file"); });
}

}  // namespace uptempo::fuzz
