// An agent of which ROCr reports other facts than the device has. The binary's
// hsa_agent_get_info() and hsa_amd_agent_memory_pool_get_info() are those of replaced_agent.cpp.
#pragma once

#include <hsa/hsa_ext_amd.h>

#include <string>
#include <utility>

#include "test/support/on_device.hpp"

namespace uptempo::test {

struct AgentFacts {
  std::string name{};         // empty: the device's
  bool is_apu = false;        // otherwise HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES is refused
  bool xgmi_to_host = false;  // links from the GPU to all pools
};

// Applies to the next agents that are read. Not while another thread reads one.
AgentFacts& reported_facts();

class ReportedFacts {
 protected:
  explicit ReportedFacts(AgentFacts facts) { reported_facts() = std::move(facts); }
  ~ReportedFacts() { reported_facts() = {}; }
  ReportedFacts(const ReportedFacts&) = delete;
  ReportedFacts& operator=(const ReportedFacts&) = delete;
};

// A device whose agents have these facts.
struct ReplacedDevice : private ReportedFacts, public OnDevice {
  explicit ReplacedDevice(AgentFacts facts) : ReportedFacts(std::move(facts)) {}
};

}  // namespace uptempo::test
