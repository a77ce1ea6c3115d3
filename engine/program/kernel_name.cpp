#include "engine/program/kernel_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace uptempo {
namespace {

// Returns the position of the bracket that the last character of `text` closes, or npos.
size_t opening_of_last(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Returns the C++ name without its parameters.
std::string_view without_parameters(std::string_view name) {
  if (!name.ends_with(')')) return name;
  const size_t begin = opening_of_last(name);
  return begin == std::string_view::npos ? name : name.substr(0, begin);
}

// Position after the return type, which the demangler prints for templates only.
size_t end_of_return_type(std::string_view name) {
  int depth = 0;
  size_t end = 0;
  const size_t parameters = without_parameters(name).size();
  for (size_t i = 0; i < parameters; ++i) {
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (name[i] == ' ' && depth == 0) end = i + 1;
  }
  return end;
}

}  // namespace

std::string cpp_name(const std::string& symbol) {
  int status = 0;
  // clang appends ".intern.<hash>" and the like to symbols that are not visible to other files.
  const std::string mangled = symbol.substr(0, symbol.find('.'));
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  // It also reads the encoding of a type, such as "i" for int.
  if (status != 0 || !symbol.starts_with("_Z")) return symbol;
  const std::string_view whole = name.get();
  return std::string(whole.substr(end_of_return_type(whole)));
}

std::vector<size_t> kernels_named(std::string_view name, std::span<const std::string> symbols) {
  std::vector<size_t> exact, without;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] == name) return {i};
    const std::string cpp = cpp_name(symbols[i]);
    if (cpp == name) exact.push_back(i);
    if (without_parameters(cpp) == name) without.push_back(i);
  }
  return exact.empty() ? without : exact;
}

}  // namespace uptempo
