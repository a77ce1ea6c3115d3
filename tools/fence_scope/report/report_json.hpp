// A Report as JSON, and back: written by `--json`, read by `compare` and `--replay`.
//
// Format: one object. Times are microseconds, sizes bytes; an unknown number is null. `headers` of
// a cell are runs of equal ones. Versions: unknown fields are ignored when reading, missing fields
// are an error. A change that older programs would misread gets a new `schema`.
//
// Thread safety: pure functions, except read_report().
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope {

nlohmann::ordered_json json(const Report& report);
// The same as indented text with a newline at its end. Bytes that are not UTF-8, as variables may
// hold, become U+FFFD.
std::string json_text(const Report& report);

// Errors: support::UsageError naming `file`, the field ("cells[3].gated.median_us") and the value
// found, or both versions of the schema.
Report parse_report(std::string_view text, const std::string& file);
// Parses a file, or standard input if it is "-". Throws as parse_report() does, and if the file
// cannot be read.
Report read_report(const std::string& file);

}  // namespace uptempo::fence_scope
