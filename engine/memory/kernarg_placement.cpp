#include <uptempo/memory/kernarg_placement.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <array>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

// CLR, rocsettings.cpp, setKernelArgImpl() in rocm-systems: device memory is the default from
// gfx940 on in gfx9, gfx950 among them, and on gfx125x.
constexpr std::array<std::string_view, 6> kProfits{"gfx940", "gfx941",  "gfx942",
                                                   "gfx950", "gfx1250", "gfx1251"};

}  // namespace

uint32_t* detail::hdp_flush_register(const Agent& gpu) noexcept {
  hsa_amd_hdp_flush_t registers{};
  int attribute = HSA_AMD_AGENT_INFO_HDP_FLUSH;  // beyond the enumeration that the call takes
  const hsa_status_t status =
      hsa_agent_get_info(gpu.handle(), static_cast<hsa_agent_info_t>(attribute), &registers);
  return status == HSA_STATUS_SUCCESS ? registers.HDP_MEM_FLUSH_CNTL : nullptr;
}

std::string_view name_of(KernargPlacement placement) noexcept {
  switch (placement) {
    case KernargPlacement::host:
      return "host memory";
    case KernargPlacement::device:
      return "device memory";
    case KernargPlacement::automatic:
      return "automatic";
  }
  return "unknown";
}

KernargPlace detail::choose_kernarg_place(const AgentProperties& agent, bool host_has_access,
                                          uint32_t* hdp_flush, KernargPlacement asked) {
  KernargPlace place{.asked = asked};
  const bool is_asked = asked == KernargPlacement::device;
  if (asked == KernargPlacement::host) return place;
  if (!is_asked && std::ranges::count(kProfits, agent.name) == 0) {
    place.reason = fmt::format("{} is not among the agents known to profit from device memory ({})",
                               agent.name, fmt::join(kProfits, ", "));
  } else if (!host_has_access) {
    place.reason = fmt::format("the host cannot write to device memory of {}: it has no large BAR",
                               agent.name);
  } else {
    place.placement = KernargPlacement::device;
    place.coherent_link = agent.xgmi_to_host;
    if (!place.coherent_link) place.hdp_flush = hdp_flush;
    place.reason = fmt::format("{}, and the host reaches device memory; {}",
                               is_asked ? "asked for" : agent.name + " profits from device memory",
                               place.coherent_link          ? "coherent over xGMI"
                               : place.hdp_flush != nullptr ? "published by HDP flush"
                                                            : "published by read-back");
  }
  return place;
}

KernargPlace choose_kernarg_place(const Agent& gpu, KernargPlacement asked) {
  if (asked == KernargPlacement::host) return {};
  return detail::choose_kernarg_place(gpu.properties(), host_can_reach(gpu),
                                      detail::hdp_flush_register(gpu), asked);
}

}  // namespace uptempo
