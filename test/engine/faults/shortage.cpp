// Rounds in which a queue runs out of a resource of its own: its first kernel waits for a gate, so
// nothing behind it completes. No fault is injected.
#include <fmt/format.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <string_view>
#include <vector>

#include <uptempo/uptempo.hpp>
#include "test/engine/faults/subject.hpp"

namespace uptempo::faults {
namespace {

struct Resource {
  std::string_view scenario;
  std::string_view named;  // in the Error
  QueueOptions options;
  Timing timing = Timing::none;
  uint32_t packets = 1;  // of a submission
};

// A resource of the process: other queues use its interrupt signals up.
constexpr std::string_view kSignals = "signals";
// A resource of the GPU.
constexpr std::string_view kMemory = "device memory";
constexpr size_t kBufferBytes = size_t{4} << 30;

const std::array<Resource, 6>& resources() {
  static const std::array<Resource, 6> all{{
      {.scenario = "kernargs",
       .named = "kernarg",
       .options = {.kernarg_bytes = 64 << 10, .kernarg_slab_bytes = 16 << 10}},
      {.scenario = "publications", .named = "4 publications", .options = {.publications = 4}},
      {.scenario = "timing signals",
       .named = "timing signals",
       .options = {.timing_signals = 8},
       .timing = Timing::each,
       .packets = 3},
      {.scenario = kSignals, .named = "signals", .options = {}},
      {.scenario = kMemory, .named = "too little memory", .options = {}},
      {.scenario = "ring",
       .named = "slots in the ring",
       .options = {.packets = 256, .publications = 512, .kernarg_bytes = 16 << 20}},
  }};
  return all;
}

constexpr uint32_t kMost = 4000;  // submissions; more than any of these resources has
constexpr uint32_t kFirst = 64;   // word of the first submission; the gate has the words before

class Shortage {
 public:
  Shortage(const Plan& plan, const Resource& resource)
      : plan_(plan),
        resource_(resource),
        gpu_(runtime_.gpu()),
        probes_(gpu_, builtin_kernels::probes()),
        basics_(gpu_, builtin_kernels::basics()),
        gate_(probes_.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate")),
        fill_(basics_.kernel<uint32_t*, uint32_t>("fill")),
        words_(gpu_, kFirst + kMost + 2),
        queue_(gpu_, resource.options),
        other_(gpu_) {
    std::ranges::fill(words_.span(), 0u);
    set_signal_budget({.interrupts = signal_use().in_use + 200});  // three more queues
  }

  void run() {
    say("at", "work");
    BatchSubmitter first{queue_};
    first.dispatch(gate_, Grid{1}, words_.data(), UINT32_MAX, words_.data() + 32);
    std::vector<Completion> submitted{first.submit()};
    use_up(submitted);
    say("at", "other queue");
    const bool other = finishes(fill(other_, kMost, Timing::none));
    say("other", other && value_of(kMost) == kMost + 1 ? "done" : "failed");
    std::atomic_ref(words_.data()[0]).store(1, std::memory_order_release);
    say("at", "unfinished work");
    bool all = true;
    for (uint32_t each = 0; each < submitted.size(); ++each)
      all = finishes(submitted[each]) && (each == 0 || value_of(each - 1) == each) && all;
    say("unfinished", all ? "done" : "failed");
    say("at", "the queue again");
    const bool again = finishes(fill(queue_, kMost + 1, resource_.timing));
    say("continues", again && value_of(kMost + 1) == kMost + 2 ? "done" : "failed");
    say("at", "tear-down");
  }

 private:
  // Submits until the queue refuses.
  void use_up(std::vector<Completion>& submitted) {
    if (resource_.scenario == kMemory) {
      // ROCr 6.1 and newer read destroyed queues when the driver refuses memory of the GPU.
      { const Queue destroyed{gpu_}; }
      reuse_heap();
    }
    for (uint32_t part = 0; part < kMost; ++part) {
      try {
        if (resource_.scenario == kSignals)
          users_.emplace_back(gpu_);
        else if (resource_.scenario == kMemory)
          buffers_.emplace_back(gpu_, kBufferBytes);
        else
          submitted.push_back(fill(queue_, part, resource_.timing));
      } catch (const Error& error) {
        say("error", text_of(error));
        if (error.found().find(resource_.named) == std::string::npos &&
            error.asked().find(resource_.named) == std::string::npos)
          say("foreign", "the Error does not name the resource");
        if (error.call().empty() || error.found().empty() || error.remedy().empty())
          say("foreign", "an Error without call, finding or remedy");
        return;
      }
    }
    say("foreign", "nothing is ever exhausted");
  }

  Completion fill(Queue& queue, uint32_t part, Timing timing) {
    BatchSubmitter batch{queue, {.timing = timing, .patience = std::chrono::milliseconds(50)}};
    for (uint32_t packet = 0; packet < resource_.packets; ++packet)
      batch.dispatch(fill_, Grid{1}, words_.data() + kFirst + part, part + 1);
    return batch.submit();
  }

  bool finishes(const Completion& completion) {
    if (completion.wait(Deadline::after(plan_.patience))) return true;
    say("stuck", "a completion");
    return false;
  }
  uint32_t value_of(uint32_t part) const { return words_.span()[kFirst + part]; }

  const Plan& plan_;
  const Resource& resource_;
  const Runtime runtime_;
  const Agent gpu_;
  const Program probes_, basics_;
  const Kernel<uint32_t*, uint32_t, uint32_t*> gate_;
  const Kernel<uint32_t*, uint32_t> fill_;
  PinnedBuffer<uint32_t> words_;
  Queue queue_, other_;
  std::vector<Queue> users_;
  std::vector<DeviceBuffer<std::byte>> buffers_;
};

}  // namespace

bool is_shortage(std::string_view scenario) {
  return std::ranges::find(resources(), scenario, &Resource::scenario) != resources().end();
}

void run_shortage(const Plan& plan) {
  say("at", "set-up");
  try {
    Shortage(plan, *std::ranges::find(resources(), plan.scenario, &Resource::scenario)).run();
  } catch (const std::exception& error) {
    say("foreign", error.what());
  }
}

}  // namespace uptempo::faults
