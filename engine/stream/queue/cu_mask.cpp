#include "engine/stream/queue/cu_mask.hpp"

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

bool has_workgroup_processors(std::string_view processor) noexcept {
  return processor.size() >= std::string_view("gfx1010").size();  // gfx9 has a digit less: gfx90a
}

std::vector<uint32_t> whole_processors(std::vector<uint32_t> mask) {
  constexpr uint32_t kEven = 0x55555555;
  for (uint32_t& word : mask) {
    const uint32_t first = (word | word >> 1) & kEven;
    word = first | first << 1;
  }
  return mask;
}

// The first word first: unit 0 is the lowest bit of it.
std::string text_of(const std::vector<uint32_t>& mask) {
  std::string text;
  for (const uint32_t word : mask) text += fmt::format("{}0x{:08x}", text.empty() ? "" : " ", word);
  return text;
}

}  // namespace

std::string CuMask::describe() const {
  if (used.empty()) return "all";
  if (used == asked) return text_of(used);
  return fmt::format("{}; asked for: {}{}{}{}", text_of(used), text_of(asked),
                     paired ? ", work-group processors have two each" : "",
                     reduced ? ", HSA_CU_MASK disables some" : "",
                     paired || reduced ? "" : ", the agent has no more");
}

CuMask set_cu_mask(hsa_queue_t* queue, const Agent& agent, std::vector<uint32_t> asked) {
  if (asked.empty()) return {};
  CuMask mask{.asked = std::move(asked)};
  mask.used = has_workgroup_processors(agent.name()) ? whole_processors(mask.asked) : mask.asked;
  mask.paired = mask.used != mask.asked;
  const auto bits = static_cast<uint32_t>(32 * mask.used.size());
  const std::string text = fmt::format("the compute-unit mask {}", text_of(mask.asked));
  const hsa_status_t status = hsa_amd_queue_cu_set_mask(queue, bits, mask.used.data());
  mask.reduced = static_cast<int>(status) == HSA_STATUS_CU_MASK_REDUCED;
  if (!mask.reduced)
    check(status, "hsa_amd_queue_cu_set_mask", text,
          "pass whole 32-bit words, one bit per compute unit, at least one of them set");
  // ROCr also drops the bits beyond the last compute unit.
  check(hsa_amd_queue_cu_get_mask(queue, bits, mask.used.data()), "hsa_amd_queue_cu_get_mask",
        text);
  if (std::ranges::all_of(mask.used, [](uint32_t word) { return word == 0; }))
    throw Error({.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "hsa_amd_queue_cu_set_mask",
                 .asked = text,
                 .found = mask.reduced ? "HSA_CU_MASK disables all of these compute units"
                                       : fmt::format("{} has {} compute units", agent.name(),
                                                     agent.properties().compute_units),
                 .remedy = "set the bit of a compute unit that the process may use"});
  return mask;
}

}  // namespace uptempo::detail
