#include "device/fences/report/details_text.hpp"

#include "device/demangled.hpp"
#include "device/json_text.hpp"

namespace uptempo::vgpu::fences {

std::string json_list(const std::vector<std::string>& texts) {
  return json_list(texts, [](const std::string& text) { return json_quoted(text); });
}

std::string json_field(const MemoryDetails& memory, GpuAddress address) {
  std::string text = R"(,"memory":{"kind":)" + json_quoted(memory.kind) + R"(,"address":)" +
                     std::to_string(memory.begin) + R"(,"bytes":)" + std::to_string(memory.bytes) +
                     R"(,"offset":)" + std::to_string(address - memory.begin);
  if (!memory.allocated_by.empty()) text += R"(,"allocated_by":)" + to_json(memory.allocated_by);
  return text + '}';
}

std::string listed(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? "" : i + 1 == lines.size() ? " or " : ", ") + lines[i];
  return text;
}

std::string described(const MemoryDetails& memory, GpuAddress address) {
  std::string text{kIndent};
  text += "the address is " + std::to_string(address - memory.begin) + " bytes into " +
          std::to_string(memory.bytes) + " bytes of " + memory.kind;
  if (!memory.allocated_by.empty()) text += ", allocated by" + called(memory.allocated_by);
  return text;
}

std::string readable_kernel(std::string_view name) {
  constexpr std::string_view kSuffix = ".kd";
  std::string symbol(name);
  if (!symbol.starts_with("_Z")) return symbol;
  if (symbol.ends_with(kSuffix)) symbol.resize(symbol.size() - kSuffix.size());
  std::string readable = demangled(symbol);
  return readable == symbol ? std::string(name) : readable;
}

}  // namespace uptempo::vgpu::fences
