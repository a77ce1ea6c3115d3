// Runtime: the door to HSA. Start it, take agents from it, keep it while anything made from them is in use.
//
//   Runtime runtime;              // throws Error: no driver, no GPU agent, an HSA runtime too old
//   Agent gpu = runtime.gpu();
//
// Several Runtime objects of a process share one session; the last one to go shuts HSA down. Whatever is still alive then is given
// back first (session.hpp), and a new Runtime may be made afterwards. Objects that outlive the Runtime, such as those in
// static storage, may be destroyed at any time later; their use throws Error where their header
// does not say otherwise. A Runtime that was moved from has no agents, and gpu() and host() throw
// Error.
//
// Thread safety: const functions from any thread; making and destroying Runtimes from any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/agent.hpp"
#include "engine/runtime/session.hpp"

namespace uptempo {

// Version of the HSA interface that a runtime implements, not of the ROCm release it came with (ROCr 5.2.3 implements 1.1).
struct RuntimeVersion {
  unsigned major = 0, minor = 0;
  friend constexpr auto operator<=>(const RuntimeVersion&, const RuntimeVersion&) = default;
};

// What this library needs: hsa_amd_memory_pool_*, ISA iteration, code object readers.
inline constexpr RuntimeVersion needed_version{1, 1};

class Runtime {
 public:
  // Throws Error if HSA does not start or implements less than `needed`; both versions are named.
  explicit Runtime(RuntimeVersion needed = needed_version);

  // The GPU agent of that number in HSA's order. Throws Error, naming every agent and why it was rejected, if there is none.
  Agent gpu(size_t index = 0) const;
  std::span<const Agent> gpus() const noexcept { return gpus_; }
  // The host's first agent, whose pools hold pinned memory and kernargs. Throws Error for a Runtime
  // that was moved from.
  const Agent& host() const;
  std::span<const Agent> agents() const noexcept { return agents_; }

  RuntimeVersion version() const noexcept { return version_; }

 private:
  void require_session(const char* call) const;

  std::shared_ptr<Session> session_;
  RuntimeVersion version_;
  std::vector<Agent> agents_, gpus_, hosts_;
};

}  // namespace uptempo
