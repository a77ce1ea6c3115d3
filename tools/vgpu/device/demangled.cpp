#include "device/demangled.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include <uptempo/aql/printable.hpp>

namespace uptempo::vgpu {

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

std::string shown_kernel(const std::string& symbol) {
  constexpr size_t kMaxLength = 160;
  constexpr std::string_view kSuffix = ".kd";
  std::string shown = demangled(
      symbol.ends_with(kSuffix) ? symbol.substr(0, symbol.size() - kSuffix.size()) : symbol);
  if (shown.size() > kMaxLength) shown.replace(kMaxLength, std::string::npos, "...");
  return aql::printable(shown);
}

}  // namespace uptempo::vgpu
