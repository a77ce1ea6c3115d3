#include <uptempo/stream/copy/copy_engines.hpp>

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

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

// First what the program itself would call, then the library alone: a program may load ROCr with a
// plug-in, outside the global scope. The handle is not kept: ROCr stays loaded, because this
// library is linked to it.
template <class Function>
Function rocr_function(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    if (void* const rocr = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
      found = dlsym(rocr, name);
      dlclose(rocr);
    }
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace

std::string_view name_of(CopyDirection direction) noexcept {
  constexpr std::string_view kNames[] = {"from host to device", "from device to host",
                                         "within the device", "between devices"};
  return kNames[static_cast<size_t>(direction)];
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

CopyOnEngine copy_on_engine() {
  static const auto kFunction = rocr_function<CopyOnEngine>("hsa_amd_memory_async_copy_on_engine");
  return kFunction;
}

EngineSets engines_of(const Agent& gpu, hsa_agent_t host) {
  using EngineMask = hsa_status_t (*)(hsa_agent_t to, hsa_agent_t from, uint32_t * mask);
  static const auto kStatus = rocr_function<EngineMask>("hsa_amd_memory_copy_engine_status");
  static const auto kPreferred =
      rocr_function<EngineMask>("hsa_amd_memory_get_preferred_copy_engine");
  if (copy_on_engine() == nullptr || kStatus == nullptr)
    return left_to_runtime(
        "this ROCr has no hsa_amd_memory_async_copy_on_engine, which ROCr 5.6 and newer have");
  const char* const sdma = std::getenv("HSA_ENABLE_SDMA");
  if (sdma != nullptr && std::string_view(sdma) == "0")
    return left_to_runtime("HSA_ENABLE_SDMA=0 makes ROCr copy by kernels");
  // HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, which older hsa_ext_amd.h lacks: engines that face the host
  // link.
  constexpr uint32_t kEngines = 0xA10A;
  uint32_t host_engines = 0;
  if (hsa_agent_get_info(gpu.handle(), std::bit_cast<hsa_agent_info_t>(kEngines), &host_engines) !=
      HSA_STATUS_SUCCESS)
    host_engines = 0;
  host_engines = std::min(host_engines, kMostEngines);
  EngineSets sets;
  const auto choose = [&](CopyDirection direction, hsa_agent_t to, hsa_agent_t from) {
    const auto ask = [&](EngineMask function) {
      uint32_t mask = 0;
      if (function == nullptr || function(to, from, &mask) != HSA_STATUS_SUCCESS) return 0u;
      return mask;
    };
    sets[static_cast<size_t>(direction)] =
        choose_engines(direction, host_engines, ask(kStatus), ask(kPreferred));
  };
  choose(CopyDirection::to_device, gpu.handle(), host);
  choose(CopyDirection::to_host, host, gpu.handle());
  return sets;
}

}  // namespace uptempo::detail
