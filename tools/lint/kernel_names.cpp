#include "tools/lint/kernel_names.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "tools/lint/ledger.hpp"

namespace uptempo::lint {

std::string demangle(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return text == nullptr ? symbol : std::string(text.get());
}

void KernelNames::add(uint64_t kernel_object, const std::string& symbol) {
  std::string name = symbol;
  if (name.ends_with(".kd")) name.resize(name.size() - 3);
  name = demangle(name);
  const std::lock_guard lock(mutex_);
  std::string& there = names_[kernel_object];
  if (there == name) return;
  there = there.empty() ? name : there + " or " + name;
}

std::string KernelNames::name(uint64_t kernel) const {
  constexpr std::array<std::string_view, kPacketKinds> kinds{
      "<first>",         "<unseen packets>", "<barrier-AND>",    "<barrier-OR>",
      "<barrier value>", "<vendor packet>",  "<agent dispatch>", "<unknown packet>"};
  if (kernel < kinds.size()) return std::string(kinds[kernel]);
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(kernel);
  return found == names_.end() ? fmt::format("kernel object {:#x}", kernel) : found->second;
}

}  // namespace uptempo::lint
