// The mask of compute units of a hardware queue.
//
// Work-group processors: from gfx10 on, two compute units share one, and ROCr refuses a mask with
// one of the two (amd_aql_queue.cpp, SetCUMasking(); hsa_ext_amd.h, hsa_amd_queue_cu_set_mask()).
// Here, a bit of either sets both, as KFD does with such a mask (kfd_mqd_manager.c,
// mqd_symmetrically_map_cu_mask()).
// HSA_CU_MASK: ROCr removes the units that this environment variable disables, and reports
// HSA_STATUS_CU_MASK_REDUCED. That mask is accepted unless no unit is left, which would hang the
// queue. ROCr 7.0 sets the reduced mask, too, but tells neither that nor the mask
// (AqlQueue::SetCUMasking returns early), so that a mask is refused there if the variable is set.
#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/queue/stream_queue.hpp>

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

// ROCr drops the bits beyond the last compute unit.
std::vector<uint32_t> existing_units(std::vector<uint32_t> mask, uint32_t units) {
  for (size_t word = 0; word < mask.size(); ++word) {
    const size_t left = units - std::min<size_t>(32 * word, units);
    if (left < 32) mask[word] &= (1u << left) - 1;
  }
  return mask;
}

bool is_empty(const std::vector<uint32_t>& mask) {
  return std::ranges::all_of(mask, [](uint32_t word) { return word == 0; });
}

}  // namespace

std::string set_cu_mask(hsa_queue_t* queue, const Agent& agent,
                        const std::vector<uint32_t>& asked) {
  if (asked.empty()) return "all";
  const uint32_t units = agent.properties().compute_units;
  const std::string text = fmt::format("the compute-unit mask {}", text_of(asked));
  const auto refuse = [&](ErrorCode code, std::string found, const char* remedy) {
    throw Error({.code = code,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "hsa_amd_queue_cu_set_mask",
                 .asked = text,
                 .found = std::move(found),
                 .remedy = remedy});
  };
  constexpr const char* kNameOther = "set the bit of a compute unit that the process may use";
  const std::vector<uint32_t> whole =
      has_workgroup_processors(agent.name()) ? whole_processors(asked) : asked;
  const bool paired = whole != asked;
  std::vector<uint32_t> used = existing_units(whole, units);
  if (is_empty(used))
    refuse(ErrorCode::argument, fmt::format("{} has {} compute units", agent.name(), units),
           kNameOther);
  const auto bits = static_cast<uint32_t>(32 * used.size());
  const hsa_status_t status = hsa_amd_queue_cu_set_mask(queue, bits, used.data());
  const bool reduced = static_cast<int>(status) == HSA_STATUS_CU_MASK_REDUCED;
  if (!reduced)
    check(status, "hsa_amd_queue_cu_set_mask", text,
          "pass whole 32-bit words, one bit per compute unit, at least one of them set");
  if (reduced || std::getenv("HSA_CU_MASK") != nullptr) {
    std::vector<uint32_t> told(used.size());
    check(hsa_amd_queue_cu_get_mask(queue, bits, told.data()), "hsa_amd_queue_cu_get_mask", text);
    if (!reduced && told != used)
      refuse(ErrorCode::unavailable,
             "HSA_CU_MASK is set, and this ROCr does not tell which compute units it leaves",
             "unset HSA_CU_MASK, or give the stream no mask");
    used = std::move(told);
    if (is_empty(used))
      refuse(ErrorCode::argument, "HSA_CU_MASK disables all of these compute units", kNameOther);
  }
  if (used == asked) return text_of(used);
  return fmt::format("{}; asked for: {}{}{}{}", text_of(used), text_of(asked),
                     paired ? ", work-group processors have two each" : "",
                     reduced ? ", HSA_CU_MASK disables some" : "",
                     paired || reduced ? "" : ", the agent has no more");
}

}  // namespace uptempo::detail
