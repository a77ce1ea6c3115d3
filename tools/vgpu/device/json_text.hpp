// Text for lines of JSON.
//
// Thread safety: any thread.
#pragma once

#include <string>
#include <string_view>

namespace uptempo::vgpu {

// In quotes. Names of kernels come out of code objects and may be any bytes: control characters become spaces, what is not UTF-8
// becomes U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace uptempo::vgpu
