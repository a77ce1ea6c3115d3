// Runtime starts HSA and lists its agents. Keep it while any object made from them is in use.
//
//   Runtime runtime;              // throws Error: no driver, no GPU agent
//   Agent gpu = runtime.gpu();
//
// All Runtime objects of a process share one session. The destructor of the last one releases every
// object that is still alive and shuts HSA down; ROCr 6.1, whose shut-down can hang, stays
// initialised until the process ends. A new Runtime may be created afterwards, except after a GPU
// memory fault while HSA stays initialised: ROCr reports one fault until it is shut down, so the
// constructor throws Error. It also throws after the loss of a GPU that ROCr reported (6.1 and
// newer): the driver keeps this process's queues on it stopped. And it throws, with both files, if
// the process has loaded ROCr twice, whose copies know nothing of each other. Objects that outlive
// the Runtime, for example static ones, may be destroyed at any time later. Using them throws
// Error, except where their header says otherwise. A Runtime that was moved from has no agents;
// gpu() and host() throw Error.
//
// fork: in the child of a process that has or had a Runtime, the constructor and everything that
// needs a Runtime throw Error, and so does every use of an inherited queue, batch, recording,
// stream or copier, and a wait for unfinished work; destructors do nothing, and the parent
// continues. The child must not touch inherited buffers: ROCT does not copy their memory to the
// child. Nor may it use an object that another thread of the parent used during the fork, since a
// lock of it may never be released. It ends with exec or _exit, since static objects would wait for
// threads that it does not have.
//
// Thread safety: const functions, construction and destruction may run on any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <uptempo/runtime/agent.hpp>

namespace uptempo {

class Session;
namespace detail {
class SessionListener;
}

class Runtime {
 public:
  // Throws Error if HSA does not start.
  Runtime();

  // Returns the GPU agent with this number in HSA's order. If there is none, throws Error, which
  // names every agent and why it was rejected.
  Agent gpu(size_t index = 0) const;
  // Returns the GPU agent that a person names: by its index ("1"), its UUID
  // ("GPU-0123456789abcdef") or its PCI address ("0000:03:00.0", or "03:00.0" in domain 0), in
  // upper or lower case. If there is none, or if several have that UUID, as partitions of one card
  // may, throws Error, which lists all three for these GPUs.
  Agent gpu(std::string_view selector) const;
  std::span<const Agent> gpus() const noexcept { return gpus_; }
  // Returns the first host agent in HSA's order. Memory that a GPU shares with the host comes from
  // the host agent that is nearest to that GPU (find_pool() in buffer.hpp). Throws Error for a
  // Runtime that was moved from.
  const Agent& host() const;
  // CPUs, GPUs and DSPs. Agents of other types, such as the NPUs of newer ROCr, are skipped.
  std::span<const Agent> agents() const noexcept { return agents_; }

  // Every choice that the library makes for this process, with its reason: versions and library of
  // ROCr, tools, signals, agents. Text for a person, one fact a line, to send with a report from a
  // machine that others do not have; not to be parsed. Throws Error.
  std::string describe() const;

 private:
  void require_session(const char* call) const;
  [[noreturn]] void refuse_gpu(std::string asked, std::string found, std::string remedy) const;

  std::shared_ptr<Session> session_;
  std::vector<Agent> agents_, gpus_, hosts_;
};

// Calls a function when a GPU faults on a memory access, or is lost. For programs that give a GPU
// work of their own, beside the engine's queues. A fault that no listener and no queue of the
// engine claims ends the process: ROCr prints agent, address and reason, and aborts. A listener
// claims every fault of its agent. The driver stops the agent's queues permanently at the first
// fault, so a listener constructed after it is called at once.
//
// Thread safety: the function runs on a thread of ROCr, of the library, or of the constructor. It
// may call only HSA's signal functions. The destructor waits for it.
// Lifetime: any; after the end of the Runtime the function is not called.
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
