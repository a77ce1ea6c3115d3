#include "tools/fence_scope/run/bench.hpp"

#include <fmt/format.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include <uptempo/memory/buffer.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/stream.hpp>
#include "tools/fence_scope/run/bench_buffers.hpp"
#include "tools/fence_scope/run/cache_spoiler.hpp"
#include "tools/fence_scope/run/run_packets.hpp"
#include "tools/fence_scope/run/run_signals.hpp"
#include "tools/fence_scope/sequence/step_kernels.hpp"
#include "tools/support/packets.hpp"

namespace uptempo::fence_scope {
namespace {

using SteadyClock = std::chrono::steady_clock;

// An interrupt adds 5 to 50 us to what it ends, so the host waits actively for runs up to this
// duration.
constexpr std::chrono::milliseconds kSpin{5};

// Time of HSA's system clock in nanoseconds.
uint64_t system_ns() {
  uint64_t ticks = 0;
  check(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &ticks), "hsa_system_get_info",
        "HSA_SYSTEM_INFO_TIMESTAMP");
  return ticks;
}

// The dispatches of the steps, ready for any headers: geometry, and kernargs that are written once.
// One element per step; those of copies are unused.
std::vector<aql::KernelDispatch> step_dispatches(const Sequence& sequence,
                                                 const StepKernels& kernels,
                                                 const BenchBuffers& buffers,
                                                 std::span<const support::PacketQueue> queues,
                                                 KernargBlocks& blocks) {
  std::vector<aql::KernelDispatch> dispatches;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const Step& step = sequence.steps[i];
    aql::KernelDispatch& dispatch = dispatches.emplace_back();
    if (step.kind == Step::Kind::copy) continue;
    const KernelInfo& kernel = kernels.of(i);
    std::byte* const block = blocks.make(kernel, step.grid, queues[step.queue].facts());
    dispatch = support::dispatch_of(kernel, step.grid, block);
    const auto put = [&](size_t argument, const auto& value) {
      std::memcpy(block + kernel.arguments.offset(argument), &value, sizeof value);
    };
    for (size_t a = 0; a < step.arguments.size(); ++a) {
      const Argument& argument = step.arguments[a];
      switch (argument.kind) {
        case Argument::Kind::value:
          std::memcpy(block + kernel.arguments.offset(a), argument.value.data(),
                      argument.value.size());
          break;
        case Argument::Kind::address:
          put(a, buffers.at(argument.buffer, argument.begin));
          break;
        case Argument::Kind::local: {
          const auto offset = static_cast<uint32_t>(align_local(dispatch.group_segment_size));
          put(a, offset);
          dispatch.group_segment_size = offset + argument.local_bytes;
          break;
        }
      }
    }
  }
  return dispatches;
}

}  // namespace

std::string in_words(const Bench::Packet& packet, const Sequence& sequence) {
  using Role = Bench::Packet::Role;
  switch (packet.role) {
    case Role::gate:
      return "gate";
    case Role::waits:
      return fmt::format("'{}' waits", sequence.steps[packet.step].name);
    case Role::dispatch:
      return fmt::format("'{}'", sequence.steps[packet.step].name);
    case Role::closing:
      break;
  }
  return "closing packet";
}

aql::HeaderFlags flags_of(Bench::Packet::Role role) noexcept {
  const aql::Barrier barrier =
      role == Bench::Packet::Role::closing ? aql::Barrier::on : aql::Barrier::off;
  return {barrier, aql::FenceScope::none, aql::FenceScope::none};
}

// The steps of a run, in their order. The parts hold what a run needs.
struct Bench::Impl {
  Impl(const Agent& the_gpu, Sequence the_sequence, TimingMode the_timing)
      : gpu(the_gpu),
        sequence((require_valid(the_sequence), std::move(the_sequence))),
        timing(the_timing),
        plan(fence_scope::plan(sequence, &gpu)),
        kernels(gpu, sequence),
        copier(gpu),
        queues(queues_for(gpu, sequence, timing)),
        buffers(gpu, sequence, copier),
        blocks(gpu),
        dispatches(step_dispatches(sequence, kernels, buffers, queues, blocks)),
        signals(sequence, timing),
        spoiler(gpu, sequence, buffers, blocks, queues[0].facts(), signals.handles().closing[0]) {}

  ~Impl() {
    // The device may still use all of this.
    if (in_use) {
      buffers.leave_to_session();
      blocks.leave_to_session();
      signals.leave_to_session();
      spoiler.leave_to_session();
    }
    queues.clear();
  }

  void make_reference(const std::function<void()>& before_step) {
    in_use = true;
    prepare();
    for (size_t i = 0; i < sequence.steps.size(); ++i) {
      in_use = false;  // nothing is in flight between two steps
      if (before_step) before_step();
      in_use = true;
      run_alone(i);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      const auto bytes = buffers.contents(i);
      expected.emplace_back(bytes.begin(), bytes.end());
    }
    in_use = false;
  }

  Run run(const Headers& headers, Release release) {
    std::vector<Action> all = actions(headers, release);
    Run result;
    in_use = true;
    prepare();
    if (before) before();
    SteadyClock::time_point start = SteadyClock::now();
    submit(all, release);
    if (release == Release::gated) {
      start = SteadyClock::now();
      hsa_signal_store_screlease(signals.handles().gate, 0);
    }
    wait();
    result.us = std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count();
    if (after) after();
    result.packets = published(all);
    result.spans = signals.spans(gpu);
    result.device_us = signals.device_us(result.spans);
    result.wrong_bytes = wrong_bytes();
    result.correct = result.wrong_bytes == 0;
    // Write back unreleased data, so that it does not overwrite later contents.
    for (support::PacketQueue& queue : queues) queue.flush();
    in_use = false;
    return result;
  }

  std::vector<Action> actions(const Headers& headers, Release release) const {
    return fence_scope::actions(sequence, dispatches, signals.handles(), headers, release);
  }

  // Other bytes in the caches, the initial ones in memory, signals armed.
  void prepare() {
    if (!spoiler.packets().empty()) {
      const hsa_signal_t done = signals.handles().closing[0];
      hsa_signal_store_relaxed(done, 1);
      queues[0].publish(spoiler.packets());
      queues[0].wait(done, "the kernels before a run");
    }
    buffers.reset();
    signals.arm();
  }

  bool to_device(const Step& copy) const {
    return sequence.buffers[copy.to.buffer].kind == BufferKind::device_local;
  }

  // A step with system scopes, and a wait for its end.
  void run_alone(size_t number) {
    const Step& step = sequence.steps[number];
    if (step.kind == Step::Kind::copy) {
      std::byte *const to = buffers.at(step.to), *const from = buffers.at(step.from);
      const uint64_t bytes = step.to.bytes;
      if (to_device(step))
        copier.copy(CopyTarget::device(to, bytes), CopySource::pinned(from, bytes));
      else
        copier.copy(CopyTarget::pinned(to, bytes), CopySource::device(from, bytes));
      return;
    }
    aql::KernelDispatch dispatch = dispatches[number];
    dispatch.flags = {aql::Barrier::on, aql::FenceScope::system, aql::FenceScope::system};
    const aql::Packet64 packet = aql::to_packet(dispatch);
    queues[step.queue].publish({&packet, 1});
    queues[step.queue].flush(fmt::format("steps[{}], '{}'", number, step.name));
  }

  // Stores in each action's first role where its packets were published, at the cost of a load.
  // Reading the clock costs more, so it is read only if times of each packet are requested.
  void submit(std::vector<Action>& all, Release release) {
    for (Action& action : all) {
      if (action.packets.empty()) {
        start_copy(action.copy, release);
        continue;
      }
      support::PacketQueue& queue = queues[action.queue];
      action.roles[0].index = queue.next_index();
      if (timing == TimingMode::each) action.roles[0].published_ns = system_ns();
      queue.publish(action.packets);
    }
  }

  // Until the closing packets and the copies of a run are complete.
  void wait() {
    const SignalHandles& handles = signals.handles();
    for (const uint32_t queue : kQueues)
      if (used[queue]) queues[queue].wait(handles.closing[queue], "the end of a run", kSpin);
    for (size_t i = 0; i < sequence.steps.size(); ++i)
      if (sequence.steps[i].kind == Step::Kind::copy)
        queues[0].wait(handles.of_step[i], "a copy of a run", kSpin);
  }

  void start_copy(size_t number, Release release) {
    const Step& step = sequence.steps[number];
    const SignalHandles& handles = signals.handles();
    std::vector<hsa_signal_t> awaited;
    if (release == Release::gated) awaited.push_back(handles.gate);
    for (const size_t waited : step.after) awaited.push_back(handles.of_step[waited]);
    const hsa_agent_t own = gpu.handle();
    const bool goes_in = to_device(step);
    // Without a stream, whose packets would add fences of their own.
    check(hsa_amd_memory_async_copy(
              buffers.at(step.to), goes_in ? own : host, buffers.at(step.from),
              goes_in ? host : own, step.to.bytes, static_cast<uint32_t>(awaited.size()),
              awaited.empty() ? nullptr : awaited.data(), handles.of_step[number]),
          "hsa_amd_memory_async_copy");
  }

  uint64_t wrong_bytes() {
    uint64_t wrong = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const std::span<const std::byte> found = buffers.contents(i);
      if (std::memcmp(found.data(), expected[i].data(), found.size()) == 0) continue;
      for (size_t byte = 0; byte < found.size(); ++byte)
        wrong += found[byte] != expected[i][byte] ? 1 : 0;
    }
    return wrong;
  }

  const Agent gpu;
  const hsa_agent_t host = find_pool(gpu, MemoryKind::pinned).owner;
  const Sequence sequence;
  const std::array<bool, 2> used{is_used(sequence, 0), is_used(sequence, 1)};  // [queue]
  const TimingMode timing;
  const PlannedHeaders plan;
  const StepKernels kernels;
  Copier copier;
  // created first, because kernargs have facts of them; destroyed in ~Impl()
  std::vector<support::PacketQueue> queues;
  BenchBuffers buffers;
  KernargBlocks blocks;
  std::vector<aql::KernelDispatch> dispatches;  // [step]
  RunSignals signals;
  CacheSpoiler spoiler;
  std::vector<std::vector<std::byte>> expected{};  // [buffer]
  std::function<void()> before{}, after{};
  bool in_use = false;  // a run has begun and not ended: in flight, or failed
};

Bench::Bench(const Agent& gpu, Sequence sequence, TimingMode timing,
             const std::function<void()>& before_step)
    : impl_(std::make_unique<Impl>(gpu, std::move(sequence), timing)) {
  impl_->make_reference(before_step);
}
Bench::~Bench() = default;

const Sequence& Bench::sequence() const noexcept { return impl_->sequence; }
const PlannedHeaders& Bench::plan() const noexcept { return impl_->plan; }

const std::vector<std::byte>& Bench::reference(size_t buffer) const noexcept {
  return impl_->expected[buffer];
}

Bench::Run Bench::run(const Headers& headers, Release release) {
  return impl_->run(headers, release);
}

void Bench::watch(std::function<void()> before, std::function<void()> after) {
  impl_->before = std::move(before);
  impl_->after = std::move(after);
}

std::optional<Bench::Place> Bench::place_of(uint64_t address) const noexcept {
  return impl_->buffers.place_of(address);
}

const void* Bench::ring(uint32_t queue) const noexcept { return impl_->queues[queue].ring(); }

DeviceCounts Bench::counts(const Headers& headers) const {
  return counts_of(impl_->actions(headers, Release::ungated), impl_->sequence, headers,
                   impl_->signals.of_steps());
}

}  // namespace uptempo::fence_scope
