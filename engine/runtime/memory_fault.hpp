// MemoryFaultListener: calls a function when a GPU faults on a memory access, or is lost.
//
// For programs that give a GPU work of their own, beside the engine's queues. A fault that no
// listener and no queue of the engine claims ends the process: ROCr prints agent, address and
// reason, and aborts. A listener claims every fault of its agent. The driver stops the agent's
// queues permanently at the first fault, so a listener constructed after it is called at once.
//
// Thread safety: the function runs on a thread of ROCr, of the library, or of the constructor. It
// may call only HSA's signal functions. The destructor waits for it.
// Lifetime: any; after the end of the Runtime the function is not called.
#pragma once

#include <hsa/hsa.h>

#include <functional>
#include <memory>
#include <string>

#include "engine/runtime/agent.hpp"

namespace uptempo {

namespace detail {
class SessionListener;
}

class MemoryFaultListener {
 public:
  // `status` is HSA_STATUS_ERROR_MEMORY_FAULT, and `text` has the address and the reasons. If the
  // driver has stopped the GPU after a hang, an uncorrectable error or its removal, `status` is
  // HSA_STATUS_ERROR_FATAL.
  using Function = std::function<void(hsa_status_t status, const std::string& text)>;

  // Throws Error if there is no Runtime.
  MemoryFaultListener(const Agent& agent, Function function);
  ~MemoryFaultListener();
  MemoryFaultListener(const MemoryFaultListener&) = delete;
  MemoryFaultListener& operator=(const MemoryFaultListener&) = delete;

 private:
  const std::unique_ptr<detail::SessionListener> listener_;
};

}  // namespace uptempo
