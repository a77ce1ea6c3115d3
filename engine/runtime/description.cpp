#include <uptempo/runtime/description.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>

#include <uptempo/runtime/amd_extension.hpp>
#include <uptempo/runtime/ring_access.hpp>
#include <uptempo/runtime/runtime.hpp>
#include <uptempo/runtime/session.hpp>
#include <uptempo/runtime/signal.hpp>

namespace uptempo {
namespace {

std::string interface_version() {
  uint16_t major = 0, minor = 0;
  hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
  return fmt::format("{}.{}", major, minor);
}

std::string build_of_rocr() {
  const char* build = nullptr;
  if (hsa_system_get_info(HSA_AMD_SYSTEM_INFO_BUILD_VERSION, &build) != HSA_STATUS_SUCCESS ||
      build == nullptr)
    return "not reported";
  return build;
}

std::string library_of_rocr() {
  Dl_info library{};
  const void* const function = dlsym(RTLD_DEFAULT, "hsa_iterate_agents");
  if (function == nullptr || dladdr(function, &library) == 0 || library.dli_fname == nullptr)
    return "unknown";
  return library.dli_fname;
}

std::string amd_extension() {
  const AmdExtensionVersion version = running_amd_extension();
  if (version == AmdExtensionVersion{}) return "not reported, so ROCr is older than 6.1";
  return fmt::format("{}.{}", version.major, version.minor);
}

std::string facts_of(const Agent& agent) {
  const AgentProperties& has = agent.properties();
  std::string facts = fmt::format("{} {}", detail::type_name(has.type), has.name);
  if (!has.product_name.empty() && has.product_name != has.name)
    facts += fmt::format(" ({})", has.product_name);
  facts += fmt::format(", node {}", has.node);
  if (!agent.is_gpu()) return facts;
  facts += fmt::format(", PCI {}", pci_address(has));
  if (!has.uuid.empty()) facts += fmt::format(", {}", has.uuid);
  for (const std::string& isa : has.isas) facts += fmt::format(", ISA {}", isa);
  if (has.is_apu) facts += ", an APU";
  if (has.xgmi_to_host) facts += ", linked to the host by xGMI";
  return facts + fmt::format(
                     ", {} compute units, wavefronts of {}, queues of {} to {} packets, times in "
                     "units of 1/{} s",
                     has.compute_units, has.wavefront_size, has.queue_min_packets,
                     has.queue_max_packets, has.timestamp_hz);
}

std::string facts_of_signals() {
  const SignalUse use = signal_use();
  if (!detail::events_in_use())
    return "without events, because HSA_ENABLE_INTERRUPT is 0: waits poll, and no budget applies";
  return fmt::format(
      "{} in use, {} at most so far, of a budget of {}{}; beyond it, {}", use.in_use, use.peak,
      use.budget,
      use.copies == 1 ? std::string()
                      : fmt::format(" for {} copies of this library in the process", use.copies),
      signal_budget().event_less_beyond ? "signals without an event, on which waits poll"
                                        : "an Error");
}

}  // namespace

namespace detail {

Description& Description::part(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    text_.append("  ").append(text.substr(0, end)).append("\n");
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return *this;
}

}  // namespace detail

std::string Runtime::describe() const {
  require_session("Runtime::describe");
  detail::Description all("runtime");
  all.line("Uptempo", detail::describe_copies())
      .line("HSA interface", interface_version())
      .line("ROCr library", library_of_rocr())
      .line("ROCr build", build_of_rocr())
      .line("AMD extension", amd_extension())
      .line("end of HSA", must_stay_initialised()
                              ? "with the process, because hsa_shut_down of ROCr 6.1 can hang"
                              : "hsa_shut_down, with the last Runtime")
      .line(
          "wait for several signals",
          wait_any_overflows()
              ? "by signal handlers, because hsa_amd_signal_wait_any of ROCr 6.4 overwrites memory"
              : "by hsa_amd_signal_wait_any")
      .line("loss of a GPU", Session::describe_exceptions())
      .line("tools", detail::find_interposition().finding)
      .line("interrupt signals", facts_of_signals());
  for (size_t i = 0; i < agents_.size(); ++i)
    all.line(fmt::format("agent {}", i), facts_of(agents_[i]));
  return all.text();
}

}  // namespace uptempo
