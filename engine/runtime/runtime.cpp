#include <uptempo/runtime/runtime.hpp>

#include <fmt/format.h>

#include <optional>
#include <utility>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace

Runtime::Runtime() : session_(Session::start()) {
  for (const hsa_agent_t handle : detail::all_agents()) {
    hsa_device_type_t type{};
    check(hsa_agent_get_info(handle, HSA_AGENT_INFO_DEVICE, &type), "hsa_agent_get_info",
          "HSA_AGENT_INFO_DEVICE");
    if (detail::type_name(type) == nullptr) continue;
    const Agent& agent = agents_.emplace_back(handle);
    if (agent.is_gpu()) {
      gpus_.push_back(agent);
    } else if (type == HSA_DEVICE_TYPE_CPU) {
      hosts_.push_back(agent);
    }
  }
  if (hosts_.empty()) {
    throw Error({.code = ErrorCode::unavailable,
                 .status = HSA_STATUS_ERROR_INVALID_AGENT,
                 .call = "Runtime",
                 .asked = "the host's agent",
                 .found = fmt::format("none among {} agents", agents_.size()),
                 .remedy = "check the driver's topology with rocminfo"});
  }
}

void Runtime::require_session(const char* call) const {
  if (session_) return;
  detail::refuse_moved(call, "Runtime");
}

const Agent& Runtime::host() const {
  require_session("Runtime::host");
  return hosts_.front();
}

Agent Runtime::gpu(size_t index) const {
  require_session("Runtime::gpu");
  if (index < gpus_.size()) return gpus_[index];
  std::string rejected;
  size_t gpu_number = 0;
  for (const Agent& agent : agents_) {
    rejected += fmt::format("{}agent '{}' is ", rejected.empty() ? "" : ", ", agent.name());
    rejected += agent.is_gpu() ? fmt::format("GPU {}", gpu_number++)
                               : fmt::format("a {}", detail::type_name(agent.properties().type));
  }
  refuse_gpu(fmt::format("no GPU agent with index {}", index),
             fmt::format("{} agents: {}", agents_.size(), rejected),
             fmt::format("use an index below {}", gpus_.size()));
}

void Runtime::refuse_gpu(std::string asked, std::string found, std::string remedy) const {
  if (gpus_.empty()) remedy = "check that the amdgpu driver sees a GPU, or run under uptempo-vgpu";
  throw Error({.code = ErrorCode::unavailable,
               .status = HSA_STATUS_ERROR_INVALID_AGENT,
               .call = "Runtime::gpu",
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

Agent Runtime::gpu(std::string_view selector) const {
  require_session("Runtime::gpu");
  const std::string asked = lower(selector);
  std::string known, selected;
  std::optional<Agent> gpu;
  size_t count = 0;
  for (size_t index = 0; index < gpus_.size(); ++index) {
    const AgentProperties& properties = gpus_[index].properties();
    const std::string address = pci_address(properties);
    const std::string uuid = lower(properties.uuid);
    const std::string text = fmt::format("GPU {} ({}, {}{}{})", index, properties.name,
                                         properties.uuid, uuid.empty() ? "" : ", ", address);
    known += (known.empty() ? "" : ", ") + text;
    if (asked != std::to_string(index) && (uuid.empty() || asked != uuid) && asked != address &&
        "0000:" + asked != address)
      continue;
    selected += (selected.empty() ? "" : ", ") + text;
    gpu = gpus_[index];
    ++count;
  }
  if (count == 1) return *gpu;
  if (count > 1)
    refuse_gpu(fmt::format("GPU '{}'", selector), fmt::format("{} GPUs: {}", count, selected),
               "use an index; GPUs alike are partitions of one card");
  refuse_gpu(fmt::format("GPU '{}'", selector), known.empty() ? "no GPU agent" : known,
             "use an index, a UUID or a PCI address");
}

MemoryFaultListener::MemoryFaultListener(const Agent& agent, Function function)
    : listener_(std::make_unique<detail::SessionListener>(
          Session::current(),
          Session::Listener{.on_fault = [agent = agent.handle(), function = std::move(function)](
                                            const Session::MemoryFault& fault) {
            if (fault.agent.handle != agent.handle) return false;
            function(fault.status, fault.text);
            return true;
          }})) {}

MemoryFaultListener::~MemoryFaultListener() = default;

}  // namespace uptempo
