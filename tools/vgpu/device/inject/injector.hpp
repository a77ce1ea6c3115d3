// Decides when the rules of --inject apply, and counts.
//
// The driver and the device ask it at each place that a rule can name. Counting begins at 1 with
// the process's first event. Events of one place are counted in the order in which they are asked
// about, so with one thread and one queue the same event is hit on every run.
//
// Thread safety: any thread, and signal handlers, since it takes no lock. A process without rules
// has no Injector, so each place tests one pointer.
// Lifetime: that of the process; rules stay valid.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device/inject/rules.hpp"

namespace uptempo::vgpu {

class Injector {
 public:
  struct Counts {
    uint64_t matched = 0;   // events that the rule's place and filters describe
    uint64_t injected = 0;  // of these, those to which it applied
  };
  struct Packet {
    uint32_t gpu = 0, queue = 0;
    uint64_t index = 0;
    InjectRule::Packets type = InjectRule::Packets::all;  // `all`: of another type
    bool runtime_owned = false;
  };

  explicit Injector(std::vector<InjectRule> rules);

  // Returns whether a rule names a place of the device: packet, interrupt, hdp or copy.
  bool concerns_device() const noexcept;

  // Each counts an event. They return the positive error number, or the rule, that applies to it;
  // 0 or nullptr if none does. If several apply, the first wins, and the others count as well.
  int ioctl(uint32_t number) noexcept;
  int mmap() noexcept;
  int open() noexcept;
  const InjectRule* packet(const Packet& packet) noexcept;
  const InjectRule* interrupt(uint32_t gpu, uint32_t queue) noexcept;
  // Whether it is lost: a flush of the HDP or a read-back; a copy.
  bool hdp() noexcept;
  bool copy(uint32_t gpu, uint32_t queue) noexcept;

  // Rules count from 0.
  std::span<const InjectRule> rules() const noexcept { return rules_; }
  Counts counts(size_t rule) const noexcept;

 private:
  template <typename Matches>
  const InjectRule* apply(InjectRule::Place place, Matches matches) noexcept;

  // relaxed throughout: counts order nothing else
  struct Counters {
    std::atomic<uint64_t> matched = 0, injected = 0;
  };

  const std::vector<InjectRule> rules_;
  std::vector<Counters> counters_;  // by rule
};

}  // namespace uptempo::vgpu
