#include <uptempo/fences/declarations.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <uptempo/runtime/error.hpp>

namespace uptempo::detail {
namespace {

[[noreturn]] void refuse_dependency(uint32_t own, size_t on) {
  throw Error(
      {.code = ErrorCode::argument,
       .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
       .call = "after()",
       .asked = fmt::format("packet {} after packet {}", own, on),
       .found = on == own ? "a packet cannot depend on itself" : "that packet is not earlier",
       .remedy = "add packets in an order in which each one follows those it depends on"});
}

}  // namespace

void Declarations::move_to_end(std::vector<AccessRange>& accesses) {
  const auto end = static_cast<uint32_t>(accesses.size());
  for (uint32_t i = 0; i < access_count; ++i) accesses.push_back(accesses[first_access + i]);
  first_access = end;
}

void Declarations::reserve(std::vector<AccessRange>& accesses, size_t more) const {
  // With its earlier ones, which may move.
  const size_t needed = accesses.size() + access_count + more;
  if (needed > accesses.capacity()) accesses.reserve(std::max(needed, 2 * accesses.capacity()));
}

void Declarations::depend(std::vector<AccessRange>& accesses, uint32_t own,
                          std::span<const size_t> earlier) {
  for (const size_t packet : earlier)
    if (packet >= own) refuse_dependency(own, packet);
  declare(accesses, nullptr, 0, false);
  depends = true;
  for (const size_t packet : earlier) {
    accesses.push_back({.begin = packet, .end = packet, .is_dependency = true});
    ++access_count;
  }
}

bool Declarations::declares_memory(std::span<const AccessRange> accesses) const noexcept {
  const auto own = accesses.subspan(first_access, access_count);
  return declared && (!depends || !std::ranges::all_of(own, &AccessRange::is_dependency));
}

}  // namespace uptempo::detail
