// Calls of the host, and numbers, in the texts of findings.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo::vgpu::fences {

// One call or access in the program. Fields that are not known are empty.
struct HostFrame {
  std::string function{};  // "Solver::step(int)"
  std::string source{};    // "solver.cpp:120"
  std::string module{};    // "a.out"
  uint64_t offset = 0;     // of the instruction, in the module's file; no module: its address
};

// A line of a finding, and one that belongs to it.
inline constexpr std::string_view kIndent = "\n    ", kDeeper = "\n        ";

// "0x1f"
std::string hex(uint64_t number);

// Calls add(element) for each, with a comma between them.
template <typename List, typename Add>
std::string json_list(const List& list, Add add) {
  std::string text = "[";
  for (const auto& element : list) {
    if (text.size() != 1) text += ',';
    text += add(element);
  }
  return text + ']';
}
std::string to_json(const std::vector<HostFrame>& frames);

// "Solver::step" of "Solver::step(int) const".
std::string without_arguments(const std::string& function);
// "Solver::step<int>" of "void Solver::step<int>(int)".
std::string short_function(const std::string& function);

// One line for each call. Calls inside the runtime are left out if nothing but an offset is known.
std::string called(const std::vector<HostFrame>& frames);

}  // namespace uptempo::vgpu::fences
