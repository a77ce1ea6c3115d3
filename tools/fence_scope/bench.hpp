// Carries a sequence out on a GPU with whatever headers, and times it.
//
// Ahead of each run, untimed: buffers get their initial bytes, all earlier work is complete, caches are empty (a barrier packet with system scopes). Results are compared with those of a
// run in which every packet waits for the one before it and has system scopes; that run is made once, when the bench is made.
//
// Thread safety: one owner. Lifetime: within that of the Runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/runtime/agent.hpp"
#include "fence_scope/report.hpp"
#include "fence_scope/sequence.hpp"

namespace uptempo::fence_scope {

enum class Release : uint8_t {
  gated,  // everything is queued behind a barrier packet on a host signal, and timed from the moment at which that is released
  ungated  // timed from before the first packet is written
};

class Bench {
 public:
  // Throws Error, and support::UsageError for a sequence that this device cannot run.
  Bench(const Agent& gpu, Sequence sequence, TimingMode timing = TimingMode::none);
  ~Bench();

  const Sequence& sequence() const noexcept;
  // A barrier bit and system scopes on every packet; and the engine's plan with the fewest fences.
  Headers everywhere() const;
  Headers planned() const;
  // In words, a line for each dispatch: what the plan chose, and why.
  std::string explain() const;

  struct Run {
    double us = 0;
    std::optional<double> device_us{};  // TimingMode::batch and each
    bool correct = false;
    uint64_t wrong_bytes = 0;
  };
  Run run(const Headers& headers, Release release);
  // What is written for them: packets, doorbells, completion signals, barrier bits and scopes. What only a device knows stays empty.
  DeviceCounts counts(const Headers& headers) const;

  // The 64-byte packets as they would be sent, as text (aql/text.hpp), a block for each; nothing is sent.
  std::string dry_run(const Headers& headers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::fence_scope
