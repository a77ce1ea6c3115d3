#include "engine/stream/copy/rocr_engines.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace uptempo::detail {
namespace {

// HSA_AMD_AGENT_INFO_NUM_SDMA_ENG, which older hsa_ext_amd.h lacks: engines that face the host
// link.
constexpr uint32_t kEngines = 0xA10A;

// First what the program itself would call, then the library alone: a program may load ROCr with a
// plug-in, outside the global scope. The handle is not kept: ROCr stays loaded, because this
// library is linked to it.
void* rocr_function(const char* name) {
  if (void* const found = dlsym(RTLD_DEFAULT, name); found != nullptr) return found;
  void* const rocr = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (rocr == nullptr) return nullptr;
  void* const found = dlsym(rocr, name);
  dlclose(rocr);
  return found;
}

uint32_t count_of(const Agent& gpu, uint32_t attribute) {
  uint32_t count = 0;
  const auto info = std::bit_cast<hsa_agent_info_t>(attribute);
  return hsa_agent_get_info(gpu.handle(), info, &count) == HSA_STATUS_SUCCESS ? count : 0;
}

bool is_off(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && std::strcmp(value, "0") == 0;
}

}  // namespace

RocrEngines::RocrEngines()
    : copy_on_engine_(
          reinterpret_cast<CopyOnEngine>(rocr_function("hsa_amd_memory_async_copy_on_engine"))),
      status_(reinterpret_cast<EngineMask>(rocr_function("hsa_amd_memory_copy_engine_status"))),
      preferred_(
          reinterpret_cast<EngineMask>(rocr_function("hsa_amd_memory_get_preferred_copy_engine"))) {
}

const RocrEngines& RocrEngines::get() {
  static const RocrEngines kEngines;
  return kEngines;
}

EngineSets RocrEngines::engines(const Agent& gpu, hsa_agent_t host) const {
  if (copy_on_engine_ == nullptr || status_ == nullptr)
    return left_to_runtime(
        "this ROCr has no hsa_amd_memory_async_copy_on_engine, which ROCr 5.6 and newer have");
  if (is_off("HSA_ENABLE_SDMA"))
    return left_to_runtime("HSA_ENABLE_SDMA=0 makes ROCr copy by kernels");
  const uint32_t host_engines = std::min(count_of(gpu, kEngines), kMostEngines);
  EngineSets sets;
  const auto choose = [&](CopyDirection direction, hsa_agent_t to, hsa_agent_t from) {
    const auto ask = [&](EngineMask function) {
      uint32_t mask = 0;
      if (function == nullptr || function(to, from, &mask) != HSA_STATUS_SUCCESS) return 0u;
      return mask;
    };
    sets[static_cast<size_t>(direction)] =
        choose_engines(direction, host_engines, ask(status_), ask(preferred_));
  };
  choose(CopyDirection::to_device, gpu.handle(), host);
  choose(CopyDirection::to_host, host, gpu.handle());
  return sets;
}

hsa_status_t RocrEngines::copy(void* to, hsa_agent_t to_agent, const void* from,
                               hsa_agent_t from_agent, size_t bytes,
                               std::span<const hsa_signal_t> after, hsa_signal_t done,
                               uint32_t engine) const noexcept {
  // Only copies within an agent look at the last argument.
  return copy_on_engine_(to, to_agent, from, from_agent, bytes, static_cast<uint32_t>(after.size()),
                         after.empty() ? nullptr : after.data(), done, 1u << engine, true);
}

}  // namespace uptempo::detail
