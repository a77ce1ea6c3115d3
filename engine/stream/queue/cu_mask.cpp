// The mask of compute units of a hardware queue.
//
// Work-group processors: from gfx10 on, two compute units share one, and ROCr refuses a mask with
// one of the two (amd_aql_queue.cpp, SetCUMasking(); hsa_ext_amd.h, hsa_amd_queue_cu_set_mask()).
// Here, a bit of either sets both, as KFD does with such a mask (kfd_mqd_manager.c,
// mqd_symmetrically_map_cu_mask()).
// HSA_CU_MASK: ROCr removes the units that this environment variable disables, and reports
// HSA_STATUS_CU_MASK_REDUCED. That mask is accepted unless no unit is left, which would hang the
// queue.
#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
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

}  // namespace

std::string set_cu_mask(hsa_queue_t* queue, const Agent& agent,
                        const std::vector<uint32_t>& asked) {
  if (asked.empty()) return "all";
  std::vector<uint32_t> used =
      has_workgroup_processors(agent.name()) ? whole_processors(asked) : asked;
  const bool paired = used != asked;
  const auto bits = static_cast<uint32_t>(32 * used.size());
  const std::string text = fmt::format("the compute-unit mask {}", text_of(asked));
  const hsa_status_t status = hsa_amd_queue_cu_set_mask(queue, bits, used.data());
  const bool reduced = static_cast<int>(status) == HSA_STATUS_CU_MASK_REDUCED;
  if (!reduced)
    check(status, "hsa_amd_queue_cu_set_mask", text,
          "pass whole 32-bit words, one bit per compute unit, at least one of them set");
  // ROCr also drops the bits beyond the last compute unit.
  check(hsa_amd_queue_cu_get_mask(queue, bits, used.data()), "hsa_amd_queue_cu_get_mask", text);
  if (std::ranges::all_of(used, [](uint32_t word) { return word == 0; }))
    throw Error({.code = ErrorCode::argument,
                 .status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
                 .call = "hsa_amd_queue_cu_set_mask",
                 .asked = text,
                 .found = reduced ? "HSA_CU_MASK disables all of these compute units"
                                  : fmt::format("{} has {} compute units", agent.name(),
                                                agent.properties().compute_units),
                 .remedy = "set the bit of a compute unit that the process may use"});
  if (used == asked) return text_of(used);
  return fmt::format("{}; asked for: {}{}{}{}", text_of(used), text_of(asked),
                     paired ? ", work-group processors have two each" : "",
                     reduced ? ", HSA_CU_MASK disables some" : "",
                     paired || reduced ? "" : ", the agent has no more");
}

}  // namespace uptempo::detail
