// ROCr's functions for the choice of copy engines, which older releases and headers lack. Private
// to engine/stream.
//
// The functions are found at run time, so one binary runs with every ROCr.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/runtime/agent.hpp"
#include "engine/stream/copy/copy_engines.hpp"

namespace uptempo::detail {

class RocrEngines {
 public:
  // Searches the process for ROCr's functions.
  static const RocrEngines& get();

  // Asks for the engines of copies between host and GPU, or for reasons not to choose among them.
  EngineSets engines(const Agent& gpu, hsa_agent_t host) const;
  // Like hsa_amd_memory_async_copy, by an engine of engines().
  hsa_status_t copy(void* to, hsa_agent_t to_agent, const void* from, hsa_agent_t from_agent,
                    size_t bytes, std::span<const hsa_signal_t> after, hsa_signal_t done,
                    uint32_t engine) const noexcept;

 private:
  RocrEngines();

  // hsa_ext_amd.h of ROCr 6.1. engine_id is an enumeration there, with one bit per engine.
  using CopyOnEngine = hsa_status_t (*)(void* dst, hsa_agent_t dst_agent, const void* src,
                                        hsa_agent_t src_agent, size_t size,
                                        uint32_t num_dep_signals, const hsa_signal_t* dep_signals,
                                        hsa_signal_t completion_signal, uint32_t engine_id,
                                        bool force_copy_on_sdma);
  using EngineMask = hsa_status_t (*)(hsa_agent_t dst_agent, hsa_agent_t src_agent, uint32_t* mask);
  CopyOnEngine copy_on_engine_ = nullptr;
  EngineMask status_ = nullptr, preferred_ = nullptr;
};

}  // namespace uptempo::detail
