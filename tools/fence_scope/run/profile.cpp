#include "tools/fence_scope/run/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <tuple>

#include "tools/support/program.hpp"

namespace uptempo::fence_scope {
namespace {

using aql::Barrier;
using aql::FenceScope;

// ---- the article's figures, and the parameters of fiji derived from them

constexpr double kBaseline = 1943, kSignal = 1906, kKernarg = 1869, kNoWait = 1665, kFence = 1221,
                 kPinned = 1137;
constexpr uint32_t kKernels = 120;
constexpr uint64_t kSortBytes = 32768 * 4;

constexpr double us_for(double bytes, double gigabytes_per_second) {
  return bytes / (gigabytes_per_second * 1e3);
}

constexpr double kFijiMemory = 512, kFijiPinnedRate = 13.5, kFijiPageableRate = 6.5;
constexpr double kFijiBarrier = 0.5, kFijiAgentAcquire = 0.3, kFijiAgentRelease = 0,
                 kFijiDoorbell = 0.2, kFijiSignalUpdate = 0.1, kFijiInterrupt = 0.9,
                 kFijiPinnedCopy = 10;
// Each of 119 waits removed saves a doorbell, a signal, an interrupt and a wake-up, and adds a
// barrier bit that has something to wait for.
constexpr double kFijiRoundTrip = (kKernarg - kNoWait) / (kKernels - 1) + kFijiBarrier;
constexpr double kFijiHostWait =
    kFijiRoundTrip - kFijiDoorbell - kFijiSignalUpdate - kFijiInterrupt;
// Agent scopes replace system scopes 119 times; the bytes of each pass are written back.
constexpr double kFijiSystemPair = (kNoWait - kFence) / (kKernels - 1) -
                                   us_for(kSortBytes, kFijiMemory) + kFijiAgentAcquire +
                                   kFijiAgentRelease;
constexpr double kFijiSystemAcquire = kFijiSystemPair / 2, kFijiSystemRelease = kFijiSystemPair / 2;
// For two copies.
constexpr double kFijiPageableCopy =
    kFijiPinnedCopy + ((kFence - kPinned) - us_for(2 * kSortBytes, kFijiPageableRate) +
                       us_for(2 * kSortBytes, kFijiPinnedRate)) /
                          2;
// The rest of the best rung's time is the launches'.
constexpr double kFijiLaunch =
    (kPinned - 2 * kFijiPinnedCopy - us_for(2 * kSortBytes, kFijiPinnedRate) - kFijiRoundTrip -
     (kKernels - 1) * (kFijiBarrier + kFijiAgentAcquire + kFijiAgentRelease) - kFijiSystemAcquire -
     kFijiSystemRelease - us_for(kSortBytes, kFijiMemory)) /
        kKernels -
    us_for(2 * kSortBytes, kFijiMemory);

// Beside each parameter: the publication, "fitted" to it, or "assumed".
constexpr std::array<Profile, 3> kProfiles{
    Profile{
        .name = "fiji",           // AMD Fiji (gfx803)
        .launch = kFijiLaunch,    // fitted: the rest of 1137 us for 120 kernels
        .barrier = kFijiBarrier,  // assumed: part of the 1.7 us of a launch with a host wait
        .agent_acquire = kFijiAgentAcquire,  // assumed: part of a kernel's time
        // assumed: L1 writes through, so there is nothing to do
        .agent_release = kFijiAgentRelease,
        // fitted: 1665 - 1221 us for 119 pairs of system fences; half of a pair is assumed
        .system_acquire = kFijiSystemAcquire,
        .system_release = kFijiSystemRelease,  // fitted: as system_acquire
        .doorbell = kFijiDoorbell,             // assumed: a posted write over PCIe
        .signal_update = kFijiSignalUpdate,    // assumed: a posted write over PCIe
        .interrupt = kFijiInterrupt,           // assumed: its share of a host wait
        // fitted: 1869 - 1665 us for 119 host waits, less the shares above
        .host_wait = kFijiHostWait,
        .signal_creation = kBaseline - kSignal,    // fitted: 1943 - 1906 us
        .kernarg_allocation = kSignal - kKernarg,  // fitted: 1906 - 1869 us
        .pinned_copy = kFijiPinnedCopy,            // assumed
        // fitted: 1221 - 1137 us for two copies, less the time that the rates explain
        .pageable_copy = kFijiPageableCopy,
        // AMD, Radeon R9 Fury X specifications: 4096 bits of HBM at 1 Gbit/s, 512 GB/s
        .memory_rate = kFijiMemory,
        .pinned_rate = kFijiPinnedRate,      // the article: 13 to 14 GB/s
        .pageable_rate = kFijiPageableRate,  // the article: 6 to 7 GB/s
        .l2_bytes = 2 << 20,  // assumed: 2 MiB of L2; no page of AMD's was found that gives it
    },
    Profile{
        .name = "mi210",       // AMD Instinct MI210 (gfx90a)
        .launch = 4,           // assumed: launch-bound programs consist of kernels of 3 to 5 us
        .barrier = 0.5,        // assumed: as fiji
        .agent_acquire = 0.3,  // assumed: as fiji
        .agent_release = 0,    // assumed: L1 writes through (LLVM AMDGPUUsage, memory model gfx90a)
        .system_acquire = 1.5,     // assumed: less than fiji's, whose clock is lower
        .system_release = 1.5,     // assumed: as system_acquire
        .doorbell = 0.2,           // assumed: a posted write over PCIe
        .signal_update = 0.1,      // assumed: a posted write over PCIe
        .interrupt = 1,            // assumed
        .host_wait = 8,            // assumed: a thread that sleeps in the kernel driver is woken
        .signal_creation = 20,     // assumed
        .kernarg_allocation = 20,  // assumed
        .pinned_copy = 8,          // assumed
        .pageable_copy = 30,       // assumed: as fiji
        // AMD Instinct MI210 data sheet: 4096 bits of HBM2e at 3.2 Gbit/s, 1638 GB/s
        .memory_rate = 1638,
        .pinned_rate = 26,    // assumed: 5/6 of PCIe 4.0 x16 (data sheet), 31.5 GB/s
        .pageable_rate = 10,  // assumed: a copy by one processor core between
        .l2_bytes = 8 << 20,  // ROCm, AMD GPU specifications: 8 MiB
    },
    Profile{
        .name = "mi300x",      // AMD Instinct MI300X (gfx942)
        .launch = 4,           // assumed: as mi210
        .barrier = 1,          // assumed: eight dies agree on it
        .agent_acquire = 0.5,  // assumed: eight dies agree on it
        // assumed: eight L2 caches are kept coherent with one another (LLVM AMDGPUUsage, memory
        // model gfx942)
        .agent_release = 0.5,
        .system_acquire = 2,   // assumed: as mi210, on eight dies
        .system_release = 2,   // assumed: as mi210, on eight dies
        .doorbell = 0.2,       // assumed: a posted write over PCIe
        .signal_update = 0.1,  // assumed: a posted write over PCIe
        .interrupt = 1,        // assumed
        // assumed: below the 16.9 us that a launch with a synchronisation takes through PyTorch on
        // MI325X (github.com/pytorch/FBGEMM/pull/6219)
        .host_wait = 8,
        .signal_creation = 20,     // assumed
        .kernarg_allocation = 20,  // assumed
        .pinned_copy = 8,          // assumed
        .pageable_copy = 30,       // assumed: as fiji
        .memory_rate = 5300,       // AMD Instinct MI300X data sheet: 5.3 TB/s
        .pinned_rate = 52,         // assumed: 5/6 of PCIe 5.0 x16 (data sheet), 63 GB/s
        .pageable_rate = 12,       // assumed: a copy by one processor core between
        .l2_bytes = 32 << 20,      // ROCm, AMD GPU specifications: 4 MiB in each of 8 dies
    }};

constexpr HostSide rung_host(bool waits, uint32_t signals, uint32_t kernargs, bool pinned) {
  return {.waits_after_each = waits,
          .signals_created = signals,
          .kernargs_allocated = kernargs,
          .copies = 2,
          .copy_bytes = 2 * kSortBytes,
          .pinned = pinned};
}
constexpr std::array<PublishedRung, 6> kLadder{{
    {"baseline", rung_host(true, 1, 1, false), false, kBaseline},
    {"prealloc-signal", rung_host(true, 0, 1, false), false, kSignal},
    {"prealloc-kernarg", rung_host(true, 0, 0, false), false, kKernarg},
    {"avoid-host-sync", rung_host(false, 0, 0, false), false, kNoWait},
    {"fence", rung_host(false, 0, 0, false), true, kFence},
    {"pinned-host", rung_host(false, 0, 0, true), true, kPinned},
}};

// ---- the model

double acquire_us(const Profile& profile, FenceScope scope) {
  return scope == FenceScope::system  ? profile.system_acquire
         : scope == FenceScope::agent ? profile.agent_acquire
                                      : 0;
}

class ModelClock {
 public:
  ModelClock(const Profile& profile, const Sequence& sequence, const Headers& headers,
             const HostSide& host)
      : profile_(profile), sequence_(sequence), headers_(headers), host_(host) {}

  double end() {
    const double round_trip = profile_.signal_update + profile_.interrupt + profile_.host_wait;
    double now = profile_.doorbell, last = now;
    ends_.reserve(sequence_.steps.size());
    queues_.fill({now, now});
    for (size_t number = 0; number < sequence_.steps.size(); ++number) {
      const Step& step = sequence_.steps[number];
      double ready = host_.waits_after_each ? now : 0;
      for (const size_t earlier : step.after)
        ready = std::max(ready, ends_.at(earlier) + profile_.signal_update);
      ends_.push_back(step.kind == Step::Kind::copy ? copied(step, ready)
                                                    : dispatched(step, headers_[number], ready));
      last = std::max(last, ends_.back());
      // The host sees the completion, then rings the doorbell for the next packet.
      if (host_.waits_after_each) now = last + round_trip + profile_.doorbell;
    }
    double us = last + round_trip + host_.signals_created * profile_.signal_creation +
                host_.kernargs_allocated * profile_.kernarg_allocation;
    us += host_.copies * (host_.pinned ? profile_.pinned_copy : profile_.pageable_copy);
    us += us_for(static_cast<double>(host_.copy_bytes),
                 (host_.pinned ? profile_.pinned_rate : profile_.pageable_rate));
    return us;
  }

 private:
  // When the packet processor can take a queue's next packet, and when all its packets have ended.
  struct QueueTime {
    double free = 0, ended = 0;
  };

  double copied(const Step& copy, double ready) const {
    return std::max(ready, profile_.doorbell) + profile_.pinned_copy +
           us_for(static_cast<double>(copy.to.bytes), profile_.pinned_rate);
  }

  double dispatched(const Step& step, aql::HeaderFlags flags, double ready) {
    QueueTime& queue = queues_.at(step.queue);
    double at = std::max(queue.free, ready);
    if (!step.after.empty()) at += profile_.launch;  // of the barrier-AND packet
    // If the host has waited, nothing is left to wait for.
    if (flags.barrier == Barrier::on && queue.ended > profile_.doorbell && !host_.waits_after_each)
      at = std::max(at, queue.ended) + profile_.barrier;
    at += acquire_us(profile_, flags.acquire) + profile_.launch;
    queue.free = at;
    double read = 0, written = 0;
    for (const Access& access : step.accesses)
      (access.writes ? written : read) += static_cast<double>(access.bytes);
    at += us_for(read + written, profile_.memory_rate);
    for (const Access& access : step.accesses)
      if (access.writes && dirty_.insert({access.buffer, access.begin, access.bytes}).second)
        dirty_bytes_ += static_cast<double>(access.bytes);
    if (flags.release == FenceScope::system) {
      at += profile_.system_release +
            us_for(std::min(dirty_bytes_, profile_.l2_bytes), profile_.memory_rate);
      dirty_.clear();
      dirty_bytes_ = 0;
    } else if (flags.release == FenceScope::agent) {
      at += profile_.agent_release;
    }
    queue.ended = std::max(queue.ended, at);
    return at;
  }

  const Profile& profile_;
  const Sequence& sequence_;
  const Headers& headers_;
  const HostSide& host_;
  std::array<QueueTime, 2> queues_;
  std::vector<double> ends_;  // [step]
  // Bytes in L2 since the last release of system scope; writing a range again does not add bytes.
  std::set<std::tuple<size_t, uint64_t, uint64_t>> dirty_;
  double dirty_bytes_ = 0;
};

// The article's sort: 120 passes over 128 KiB of device memory in one queue, and nothing else.
bool is_published_sort(const Sequence& sequence) {
  return sequence.steps.size() == kKernels &&
         std::ranges::all_of(sequence.steps, [](const Step& step) {
           return step.kind == Step::Kind::dispatch && step.kernel == "bitonic_sort" &&
                  step.queue == 0 && step.after.empty() && step.accesses.size() == 2 &&
                  step.accesses[0].bytes == kSortBytes && step.accesses[1].bytes == kSortBytes;
         });
}

}  // namespace

std::span<const Profile> profiles() noexcept { return kProfiles; }
std::span<const PublishedRung> published_ladder() noexcept { return kLadder; }

const Profile& find_profile(std::string_view name) {
  std::string names;
  for (const Profile& profile : kProfiles) {
    if (profile.name == name) return profile;
    names += (names.empty() ? "" : ", ") + std::string(profile.name);
  }
  throw support::UsageError(fmt::format("there is no profile '{}'; use one of {}", name, names));
}

Headers PublishedRung::headers(size_t kernels) const {
  if (!fences_minimal)
    return Headers(kernels, {Barrier::on, FenceScope::system, FenceScope::system});
  Headers headers(kernels, {Barrier::on, FenceScope::agent, FenceScope::agent});
  if (kernels == 0) return headers;
  headers.front().acquire = FenceScope::system;
  headers.back().release = FenceScope::system;
  return headers;
}

ModelTime model_time(const Profile& profile, const Sequence& sequence, const Headers& headers,
                     const HostSide& host) {
  if (headers.size() != sequence.steps.size())
    throw std::invalid_argument(fmt::format("{} headers for a sequence of {} steps", headers.size(),
                                            sequence.steps.size()));
  const bool restated = profile.name == "fiji" && is_published_sort(sequence) &&
                        std::ranges::any_of(kLadder, [&](const PublishedRung& rung) {
                          return rung.host == host && rung.headers(headers.size()) == headers;
                        });
  return {.profile = std::string(profile.name),
          .us = ModelClock(profile, sequence, headers, host).end(),
          .restated = restated};
}

}  // namespace uptempo::fence_scope
