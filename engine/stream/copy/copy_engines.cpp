#include "engine/stream/copy/copy_engines.hpp"

#include <fmt/format.h>

#include <bit>

namespace uptempo::detail {
namespace {

// "0, 1 and 3"
std::string engine_list(uint32_t mask) {
  std::string text;
  for (uint32_t left = mask; left != 0; left &= left - 1) {
    const char* const before = text.empty() ? "" : std::has_single_bit(left) ? " and " : ", ";
    text += fmt::format("{}{}", before, std::countr_zero(left));
  }
  return text;
}

// As ROCr chooses (GpuAgent::GetPcieBlit): engine 0 to the device, engine 1 to the host.
EngineSet some(CopyDirection direction, uint32_t mask, std::string_view why) {
  const uint32_t usual = direction == CopyDirection::to_device ? 0 : 1;
  const bool has_usual = (mask >> usual & 1) != 0;
  return {.mask = mask,
          .favourite = has_usual ? usual : static_cast<uint32_t>(std::countr_zero(mask)),
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

EngineSet choose_engines(CopyDirection direction, uint32_t host_engines, uint32_t idle,
                         uint32_t preferred) {
  if (const uint32_t both = preferred & idle; both != 0)
    return some(direction, both, "which ROCr prefers for this link");
  if (const uint32_t mask = idle & ((1u << host_engines) - 1); mask != 0)
    return some(direction, mask, "which face the host link");
  return runtime("ROCr reports no idle engine for this direction");
}

EngineSets left_to_runtime(std::string_view why) {
  EngineSets sets;
  for (const CopyDirection direction : {CopyDirection::to_device, CopyDirection::to_host})
    sets[static_cast<size_t>(direction)] = runtime(why);
  return sets;
}

}  // namespace uptempo::detail
