#include "device/demangled.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace uptempo::vgpu {

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

}  // namespace uptempo::vgpu
