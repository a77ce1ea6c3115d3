// A user's own sequence from a JSON file; README.md has the format, under "Program files".
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// What is in `file`, or comes from standard input if it is "-". Throws support::UsageError, which names the file and the place: "sums.json: steps[2].arguments[1].buffer: no
// buffer is called 'y'; there are x, out". Whether kernels exist and take these arguments, the bench finds out.
Sequence read_program_file(const std::string& file);

// The same of text; paths in it begin at `directory`, and errors name no file.
Sequence parse_program(std::string_view text, const std::string& directory);

}  // namespace uptempo::fence_scope
