// Reads a user's sequence from a JSON file. PROGRAM_FILES.md has the format.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

// Reads `file`, or standard input if it is "-". The bench checks whether kernels exist and take
// these arguments.
// Errors: support::UsageError naming the file and the place, for example "sums.json:
// steps[2].arguments[1].buffer: no buffer is called 'y'; there are x, out".
Sequence read_program_file(const std::string& file);

// The same for text. Paths in it are relative to `directory`, and errors name no file.
Sequence parse_program(std::string_view text, const std::string& directory);

}  // namespace uptempo::fence_scope
