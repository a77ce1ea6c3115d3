// The files that programs write. A file is there whole, or what was there before stays.
//
// Thread safety: any thread; two writers of one file do not mix, and the last one stays.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace uptempo::support {

// The reason why `file` cannot be written, for example "cannot write 'a/b': No such file or
// directory"; "" if nothing does, or if it is "-". Leaves no new file, and does not open pipes,
// whose readers would see the end of their input.
std::string output_problem(const std::string& file);

// Writes `text` to `file`, or to standard output if it is "-".
//
// As aql::write_whole_file(): the text first goes to a file beside it, which then takes its name,
// mode, owner and group. A device is written to, and so is a pipe if a process reads it within two
// seconds. So is a file whose folder or owner does not allow a replacement: then an error can leave
// a part.
// Errors: std::runtime_error names the file and the reason, also of a full disk and of a file size
// limit. No signal ends the process.
void write_output(const std::string& file, std::string_view text);

// The same for JSON, with a newline at the end; writes nothing if `file` is "". `indent` as of
// nlohmann's dump(): -1 for one line. Bytes of strings that are not UTF-8 become U+FFFD.
void write_json(const std::string& file, const nlohmann::ordered_json& document, int indent = 2);

// Writes text for a person to standard output, without control characters but line feeds and tabs.
// Throws std::runtime_error with the reason.
void print(std::string_view text);

// Writes the human-readable report to standard output, or nothing if JSON goes there (`json_file`
// is "-"). Throws std::runtime_error with the reason.
void print_report(const std::string& json_file, std::string_view text);

}  // namespace uptempo::support
