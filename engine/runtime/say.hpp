// Messages to the program's user from functions that cannot throw. Private to the engine.
//
// Thread safety: any thread.
#pragma once

#include <string>

namespace uptempo::detail {

// Writes "uptempo: <sentence>" and a line end to stderr, with one call.
void say(const std::string& sentence) noexcept;

}  // namespace uptempo::detail
