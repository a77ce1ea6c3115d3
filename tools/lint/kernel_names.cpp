#include "tools/lint/kernel_names.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "tools/lint/ledger.hpp"

namespace uptempo::lint {
namespace {

// A loader reuses the addresses of unloaded code.
constexpr size_t kMostNames = 4;

}  // namespace

std::string demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "f" would be float
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
  std::vector<std::string>& there = names_[kernel_object];
  if (there.size() <= kMostNames && std::ranges::find(there, name) == there.end())
    there.push_back(name);
}

std::string KernelNames::name(uint64_t kernel) const {
  constexpr std::array<std::string_view, kPacketKinds> kinds{
      "<first>",         "<unseen packets>", "<barrier-AND>",    "<barrier-OR>",
      "<barrier value>", "<vendor packet>",  "<agent dispatch>", "<unknown packet>"};
  if (kernel < kinds.size()) return std::string(kinds[kernel]);
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(kernel);
  if (found == names_.end()) return fmt::format("kernel object {:#x}", kernel);
  std::string text = found->second.front();
  for (size_t i = 1; i < found->second.size(); ++i)
    text += " or " + (i < kMostNames ? found->second[i] : "others");
  return text;
}

}  // namespace uptempo::lint
