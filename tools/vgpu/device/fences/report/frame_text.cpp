#include "device/fences/report/frame_text.hpp"

#include <array>
#include <cstdio>

#include "device/json_text.hpp"

namespace uptempo::vgpu::fences {
namespace {

std::string to_json(const HostFrame& frame) {
  std::string text = "{";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty())
      text += (text.size() == 1 ? "\"" : ",\"") + std::string(name) + "\":" + json_quoted(value);
  };
  add("function", frame.function);
  add("source", frame.source);
  add("module", frame.module);
  if (frame.offset == 0) return text + '}';  // no code is there
  return text + (text.size() == 1 ? "" : ",") + R"("offset":)" + std::to_string(frame.offset) + '}';
}

// "Solver::step<int>" of "void Solver::step<int>", whose result is in the name because it is a
// template.
std::string without_result(const std::string& function) {
  if (function.find("operator") != std::string::npos) return function;
  size_t depth = 0, begin = 0;
  for (size_t at = 0; at < function.size(); ++at) {
    const char one = function[at];
    if (one == '<' || one == '(') ++depth;
    if ((one == '>' || one == ')') && depth > 0) --depth;
    if (one == ' ' && depth == 0) begin = at + 1;
  }
  return function.substr(begin);
}

}  // namespace

std::string hex(uint64_t number) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

std::string to_json(const std::vector<HostFrame>& frames) {
  return json_list(frames, [](const HostFrame& frame) { return to_json(frame); });
}

std::string without_arguments(const std::string& function) {
  const size_t last = function.rfind(')');
  if (last == std::string::npos) return function;
  size_t depth = 0;
  for (size_t at = last + 1; at-- > 0;) {
    if (function[at] == ')') ++depth;
    if (function[at] == '(' && --depth == 0) return at == 0 ? function : function.substr(0, at);
  }
  return function;
}

std::string short_function(const std::string& function) {
  return without_result(without_arguments(function));
}

std::string called(const std::vector<HostFrame>& frames) {
  std::string text;
  for (const HostFrame& frame : frames) {
    const bool is_last = &frame == &frames.back();
    if (frame.function.empty() && frame.source.empty() && !(is_last && text.empty())) continue;
    text += kDeeper;
    text += frame.function.empty() ? "code" : short_function(frame.function);
    if (!frame.source.empty())
      text += " at " + frame.source;
    else if (!frame.module.empty())
      text += " in " + frame.module + (frame.function.empty() ? '+' + hex(frame.offset) : "");
  }
  return text;
}

}  // namespace uptempo::vgpu::fences
