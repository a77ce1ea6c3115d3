#include "engine/runtime/amd_extension.hpp"

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>

namespace uptempo {
namespace {

std::atomic<bool> destroyed_queue{false};

// HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR and _MINOR, which older hsa.h lacks.
constexpr auto kExtensionMajor = static_cast<hsa_system_info_t>(0x207);
constexpr auto kExtensionMinor = static_cast<hsa_system_info_t>(0x208);

}  // namespace

AmdExtensionVersion running_amd_extension() noexcept {
  uint16_t major = 0;
  uint16_t minor = 0;
  if (hsa_system_get_info(kExtensionMajor, &major) != HSA_STATUS_SUCCESS ||
      hsa_system_get_info(kExtensionMinor, &minor) != HSA_STATUS_SUCCESS)
    return {};
  return {major, minor};
}

bool reports_lost_gpus() noexcept { return running_amd_extension() >= AmdExtensionVersion{1, 4}; }

bool must_stay_initialised() noexcept {
  return running_amd_extension() == AmdExtensionVersion{1, 4};
}

bool reads_destroyed_queues() noexcept {
  return destroyed_queue.load(std::memory_order_relaxed) &&
         running_amd_extension() >= AmdExtensionVersion{1, 4};
}

void note_destroyed_queue() noexcept { destroyed_queue.store(true, std::memory_order_relaxed); }

bool wait_any_overflows() noexcept { return running_amd_extension() >= AmdExtensionVersion{1, 7}; }

}  // namespace uptempo
