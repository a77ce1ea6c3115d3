#include "engine/stream/copy/copy_engines.hpp"

#include <fmt/format.h>

#include <bit>

#include "engine/runtime/error.hpp"

namespace uptempo::detail {
namespace {

uint32_t mask_of(CopyDirection direction, const CopyEngines& wanted) noexcept {
  switch (direction) {
    case CopyDirection::to_device:
      return wanted.to_device;
    case CopyDirection::to_host:
      return wanted.to_host;
    case CopyDirection::within_device:
      return wanted.within_device;
    case CopyDirection::between_devices:
      break;
  }
  return 0;
}

constexpr uint32_t first_engines(uint32_t count) noexcept {
  return count >= 32 ? ~0u : (1u << count) - 1;
}

// As ROCr chooses (GpuAgent::GetPcieBlit): engine 0 to the device, engine 1 for the rest.
uint32_t favourite_of(CopyDirection direction, uint32_t mask) noexcept {
  const uint32_t usual = direction == CopyDirection::to_device ? 0 : 1;
  return (mask >> usual & 1) != 0 ? usual : static_cast<uint32_t>(std::countr_zero(mask));
}

EngineSet some(CopyDirection direction, uint32_t mask, std::string why) {
  return {.mask = mask,
          .favourite = favourite_of(direction, mask),
          .reason = fmt::format("engine{} {}, {}", std::has_single_bit(mask) ? "" : "s",
                                engine_list(mask), why)};
}

EngineSet runtime(std::string_view why) {
  return {.reason = fmt::format("the runtime decides: {}", why)};
}

}  // namespace

std::string_view name_of(CopyDirection direction) noexcept {
  switch (direction) {
    case CopyDirection::to_device:
      return "from host to device";
    case CopyDirection::to_host:
      return "from device to host";
    case CopyDirection::within_device:
      return "within the device";
    case CopyDirection::between_devices:
      break;
  }
  return "between devices";
}

std::string engine_list(uint32_t mask) {
  std::string text;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const bool is_last = std::has_single_bit(left);
    text += fmt::format("{}{}",
                        text.empty() ? ""
                        : is_last    ? " and "
                                     : ", ",
                        std::countr_zero(left));
  }
  return text.empty() ? "none" : text;
}

void check_masks(const CopyEngines& wanted, const EngineOffer& offer) {
  for (const CopyDirection direction :
       {CopyDirection::to_device, CopyDirection::to_host, CopyDirection::within_device}) {
    const uint32_t mask = mask_of(direction, wanted);
    if (mask == 0) continue;
    const uint32_t wrong = mask & ~first_engines(offer.all_engines);
    std::string found, remedy = "correct StreamsOptions::engines";
    if (wanted.choice == EngineChoice::runtime) {
      found = "EngineChoice::runtime, which leaves the choice to the runtime";
    } else if (!offer.none.empty()) {
      found = offer.none;
      remedy = "leave the masks of StreamsOptions::engines 0";
    } else if (wrong != 0) {
      found = fmt::format("no engine {}; the agent has engines 0 to {}", engine_list(wrong),
                          offer.all_engines - 1);
    } else {
      continue;
    }
    throw Error(
        {.status = HSA_STATUS_ERROR_INVALID_ARGUMENT,
         .call = "Streams",
         .asked = fmt::format("copies {} by engines of the mask {:#x}", name_of(direction), mask),
         .found = std::move(found),
         .remedy = std::move(remedy)});
  }
}

EngineSet choose_engines(CopyDirection direction, const CopyEngines& wanted,
                         const EngineOffer& offer, uint32_t idle, uint32_t preferred) {
  if (wanted.choice == EngineChoice::runtime) return runtime("StreamsOptions::engines");
  if (!offer.none.empty()) return runtime(offer.none);
  if (const uint32_t mask = mask_of(direction, wanted); mask != 0)
    return some(direction, mask, "by StreamsOptions::engines");
  if (direction == CopyDirection::within_device)
    return runtime("it copies within a GPU by a kernel");
  if (direction == CopyDirection::between_devices)
    return runtime("it knows the engines of a peer and of the link between two GPUs");
  if (const uint32_t both = preferred & idle; both != 0)
    return some(direction, both, "which ROCr prefers for this link");
  const uint32_t mask = idle & first_engines(offer.host_engines);
  if (mask == 0) {
    EngineSet none = runtime("ROCr reports no idle engine for this direction");
    none.ask_again = true;
    return none;
  }
  return some(direction, mask,
              fmt::format("which face the host link; ROCr reports {} of {} for this direction",
                          engine_list(idle), offer.all_engines));
}

}  // namespace uptempo::detail
