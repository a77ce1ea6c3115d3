#include "engine/recording/bindings.hpp"

#include <fmt/format.h>

#include <utility>

#include "engine/runtime/error.hpp"

namespace uptempo {

Bindings& Bindings::add(std::string name, const void* data, size_t size_bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto refuse = [&](std::string found, std::string remedy) {
    throw Error(
        {.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
         .call = "Bindings",
         .asked = fmt::format("the name '{}' for {} bytes at 0x{:x}", name, size_bytes, begin),
         .found = std::move(found),
         .remedy = std::move(remedy)});
  };
  if (name.empty()) refuse("no name", "pass the name that loading will look up");
  if (begin == 0 || size_bytes == 0 || size_bytes - 1 > UINTPTR_MAX - begin)
    refuse("no memory", "pass its address and its size in bytes");
  if (names_.contains(name)) refuse("the name is taken", "give each range a name of its own");
  const auto next = ranges_.upper_bound(begin + (size_bytes - 1));
  if (next != ranges_.begin()) {
    const MemoryRange& before = std::prev(next)->second;
    if (before.begin + (before.size_bytes - 1) >= begin)
      refuse(fmt::format("some of them already belong to '{}': {} bytes at 0x{:x}", before.name,
                         before.size_bytes, before.begin),
             "name each byte once");
  }
  ranges_.emplace(begin, MemoryRange{name, begin, size_bytes});
  try {
    names_.emplace(std::move(name), begin);
  } catch (...) {
    ranges_.erase(begin);
    throw;
  }
  return *this;
}

const MemoryRange* Bindings::find(std::string_view name) const noexcept {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : find(found->second);
}

const MemoryRange* Bindings::find(uintptr_t address) const noexcept {
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return nullptr;
  const MemoryRange& range = std::prev(next)->second;
  return address - range.begin < range.size_bytes ? &range : nullptr;
}

std::string Bindings::list() const {
  std::string text;
  for (const auto& [begin, range] : ranges_)
    text +=
        fmt::format("{}'{}' of {} bytes", text.empty() ? "" : ", ", range.name, range.size_bytes);
  return text.empty() ? "nothing" : text;
}

}  // namespace uptempo
