// The virtual GPU's trace as aql_dump and fence_scope read it.
#include "tools/support/trace/trace.hpp"
#include "test/fuzz/fuzz.hpp"
#include "tools/aql_dump/input.hpp"
#include "tools/aql_dump/report.hpp"

namespace uptempo::fuzz {

void trace(Bytes input) {
  const std::string text(text_of(input));
  accepts_or<std::runtime_error>([&] {
    const auto events = aql_dump::trace_from_lines(text, "a file");
    const auto report = aql_dump::report_trace(events, /*queue=*/-1, /*summary_only=*/false);
    (void)report.json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  });
  support::TraceRun run;
  if (!accepts_or<std::runtime_error>([&] { run = support::trace_of_vgpu(text, "a file"); }))
    return;
  accepts_or<std::invalid_argument>([&] { (void)support::trace_json(run); });
}

}  // namespace uptempo::fuzz
