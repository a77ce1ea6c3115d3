// Text for lines of JSON.
//
// Thread safety: any thread.
#pragma once

#include <string>
#include <string_view>

namespace uptempo::vgpu {

// Returns `text` in quotes, printable: kernel names come from code objects and may contain any
// bytes.
std::string json_quoted(std::string_view text);

}  // namespace uptempo::vgpu
