// Runtime and agents in C (engine/runtime/runtime.hpp, agent.hpp).
#ifndef UPTEMPO_C_RUNTIME_H
#define UPTEMPO_C_RUNTIME_H

#include <uptempo/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uptempo_runtime_options {
  size_t size;
  // The most interrupt signals that the library may use in the process (SignalBudget of
  // engine/runtime/signal.hpp); 0: as set before, 3,584 at first.
  uint32_t interrupt_signals;
  // Not 0: beyond that number, signals on which a wait polls, instead of an error. Refused without
  // `interrupt_signals`.
  uint32_t event_less_beyond;
} uptempo_runtime_options;

// Starts HSA, or shares it with the Runtimes of this copy of the library: C++ ones too in a program
// that links uptempo::engine, but not with libuptempo.so, which holds a copy of its own. Copies
// share HSA, which ends with the last of them. Keep the Runtime while its objects are in use. Any
// thread. Errors: no driver, the loss of a GPU before, a fork.
UPTEMPO_API uptempo_status uptempo_runtime_create(const uptempo_runtime_options* options,
                                                  uptempo_runtime** runtime);
// The last one releases every object that is still alive, and ends HSA. Its agents end with it.
UPTEMPO_API uptempo_status uptempo_runtime_destroy(uptempo_runtime* runtime);

// Agents belong to the Runtime and live as long as its handle. All functions: any thread.

// Returns the number of GPU agents.
UPTEMPO_API uptempo_status uptempo_runtime_gpu_count(const uptempo_runtime* runtime, size_t* count);
// Returns the GPU agent with this number in HSA's order. Fails if there is none; the error names
// every agent and why it was rejected.
UPTEMPO_API uptempo_status uptempo_runtime_gpu(const uptempo_runtime* runtime, size_t index,
                                               const uptempo_agent** agent);
// Returns the GPU agent that a person names: by index ("1"), UUID ("GPU-0123456789abcdef") or PCI
// address ("0000:03:00.0"). Fails if there is none or if several match; the error lists them.
UPTEMPO_API uptempo_status uptempo_runtime_find_gpu(const uptempo_runtime* runtime,
                                                    const char* selector,
                                                    const uptempo_agent** agent);
// Returns the first host agent.
UPTEMPO_API uptempo_status uptempo_runtime_host(const uptempo_runtime* runtime,
                                                const uptempo_agent** agent);
// Returns every choice that the library makes for this process, with its reason, one fact a line.
// For a person; lines may change.
UPTEMPO_API uptempo_status uptempo_runtime_describe(const uptempo_runtime* runtime, char** text);

// Properties of an agent (AgentProperties). The texts belong to the agent.
typedef struct uptempo_agent_info {
  size_t size;
  const char* name;          // "gfx90a"
  const char* product_name;  // "AMD Instinct MI210"; "" if the driver does not report it
  const char* isa;           // "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"; "" if it has none
  const char* pci_address;   // "0000:03:00.0"
  const char* uuid;          // "GPU-0123456789abcdef"; "" if it has none
  uint64_t hsa_agent;        // hsa_agent_t::handle
  uint64_t timestamp_hz;     // of times of packets and events
  uint32_t is_gpu;
  uint32_t is_apu;  // the GPU has no memory of its own
  uint32_t node;    // the driver's number
  uint32_t compute_units;
  uint32_t wavefront_size;       // lanes
  uint32_t max_workgroup_size;   // work-items
  uint32_t group_segment_bytes;  // LDS of a compute unit
  uint32_t queue_min_packets;
  uint32_t queue_max_packets;
  uint32_t reserved;  // 0
} uptempo_agent_info;

UPTEMPO_API uptempo_status uptempo_agent_get_info(const uptempo_agent* agent,
                                                  uptempo_agent_info* info);

#ifdef __cplusplus
}
#endif

#endif
