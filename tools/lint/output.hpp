// Writing the report at the end of any program.
//
// Thread safety: any thread.
#pragma once

#include <string_view>

namespace uptempo::lint {

// Returns 0 or the error's number. A pipe without a reader raises no SIGPIPE.
int write_all(int file, std::string_view text) noexcept;

}  // namespace uptempo::lint
