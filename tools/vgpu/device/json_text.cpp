#include "device/json_text.hpp"

#include <uptempo/aql/printable.hpp>

namespace uptempo::vgpu {

std::string json_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : aql::printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace uptempo::vgpu
