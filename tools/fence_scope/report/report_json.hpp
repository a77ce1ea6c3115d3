// A Report as JSON, and back: what `--json` writes, and what `compare` and `--replay` read.
//
// One object. Times are microseconds, sizes bytes; a number that is not known is null. `headers` of a cell are runs of equal ones. Fields that are not
// known here are ignored when it is read, fields that are missing are an error: a change that older programs would misread has a new `schema`.
//
// Thread safety: pure functions, but for read_report().
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

nlohmann::ordered_json json(const Report& report);
// The same as text, indented, with a newline at its end. Bytes that are no UTF-8, as variables may hold, come out as U+FFFD.
std::string json_text(const Report& report);

// Throws support::UsageError naming `file`, the field ("cells[3].gated.median_us") and what was found there, or both versions of the schema.
Report parse_report(std::string_view text, const std::string& file);
// The same of a file's content, or of standard input's if it is "-". Throws as parse_report() does, and when the file cannot be read.
Report read_report(const std::string& file);

}  // namespace uptempo::fence_scope
