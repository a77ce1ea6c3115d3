// Kernel names: a kernel is found by its symbol or by its name in a C++ source.
//
//   symbol                        "_Z5scaleIdEvPT_S0_", or "axpy" if it is extern "C"
//   C++ name, with parameters     "scale<double>(double*, double)", as the demangler prints them
//   C++ name without parameters   "scale<double>"
//
// A symbol has precedence, then a name with parameters.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo {

// Returns the C++ name of a symbol with its parameters, without the return type of a template, or
// the symbol itself if it is not a mangled name.
std::string cpp_name(const std::string& symbol);

// Returns the indices of the symbols that the name refers to: none, one, or several overloads.
std::vector<size_t> kernels_named(std::string_view name, std::span<const std::string> symbols);

}  // namespace uptempo
