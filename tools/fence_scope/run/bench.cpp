#include "tools/fence_scope/run/bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <deque>
#include <span>

#include "aql/text.hpp"
#include "engine/memory/copy.hpp"
#include "engine/memory/pool.hpp"
#include "engine/runtime/error.hpp"
#include "engine/runtime/signal.hpp"
#include "kernels/transfer.hpp"
#include "tools/fence_scope/sequence/step_kernels.hpp"
#include "tools/support/packet_queue.hpp"

namespace uptempo::fence_scope {
namespace {

using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
// An interrupt adds 5 to 50 us to what it ends, so the host waits actively for runs up to this
// duration.
constexpr auto kSpin = 5ms;
constexpr HeaderFlags kSystem{Barrier::on, FenceScope::system, FenceScope::system};
constexpr HeaderFlags kOrderOnly{Barrier::off, FenceScope::none, FenceScope::none};
constexpr HeaderFlags kClosing{Barrier::on, FenceScope::none, FenceScope::none};
constexpr size_t kDependencies = 5;

MemoryKind memory_kind(BufferKind kind) {
  switch (kind) {
    case BufferKind::device:
      return MemoryKind::device;
    case BufferKind::coarse:
      return MemoryKind::pinned_coarse;
    case BufferKind::fine:
      break;
  }
  return MemoryKind::pinned;
}

// Actions of a run, in this order: packets of one queue with one doorbell, or a copy.
struct Action {
  uint32_t queue = 0;
  std::vector<aql::Packet64> packets{};
  std::vector<Bench::Packet> roles{};  // roles of the packets
  size_t copy = 0;                     // the step, if there are no packets
};

// Time of HSA's system clock in nanoseconds.
uint64_t system_ns() {
  uint64_t ticks = 0;
  check(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &ticks), "hsa_system_get_info",
        "HSA_SYSTEM_INFO_TIMESTAMP");
  return ticks;
}

}  // namespace

std::string in_words(const Bench::Packet& packet, const Sequence& sequence) {
  switch (packet.role) {
    case Bench::Packet::Role::gate:
      return "gate";
    case Bench::Packet::Role::waits:
      return fmt::format("'{}' waits", sequence.steps[packet.step].name);
    case Bench::Packet::Role::dispatch:
      return fmt::format("'{}'", sequence.steps[packet.step].name);
    case Bench::Packet::Role::closing:
      break;
  }
  return "closing packet";
}

aql::HeaderFlags flags_of(Bench::Packet::Role role) noexcept {
  return role == Bench::Packet::Role::closing ? kClosing : kOrderOnly;
}

struct Bench::Impl {
  Impl(const Agent& the_gpu, Sequence the_sequence, TimingMode the_timing)
      : gpu(the_gpu),
        sequence((require_valid(the_sequence), std::move(the_sequence))),
        timing(the_timing),
        plan(fence_scope::plan(sequence, &gpu)),
        kernels(gpu, sequence),
        transfer(gpu, uptempo::builtin_kernels::transfer()),
        fill(transfer.kernel<unsigned char*, uint64_t, uint64_t, uint64_t>("fill_bytes")),
        read(transfer.kernel<unsigned char*, const unsigned char*, uint64_t>("copy_bytes")),
        copier(gpu),
        gate(SignalKind::event_less) {
    make_queues();
    make_buffers();
    make_blocks();
    make_signals();
    try {
      reset();
      run_step_by_step();
    } catch (...) {
      leave_to_session();
      throw;
    }
  }

  ~Impl() {
    if (failed) leave_to_session();
  }

  // Keeps the memory allocated, because the device may still use it.
  void leave_to_session() noexcept {
    for (auto* const memories : {&memory, &initial, &blocks})
      for (Allocation& allocation : *memories) allocation.leave_to_session();
    staging.leave_to_session();
    trash.leave_to_session();
    gate.leave_to_session();
    for (Signal& signal : signals) signal.leave_to_session();
    for (Signal& signal : closed) signal.leave_to_session();
  }

  // ---- created once

  void make_queues() {
    for (const uint32_t number : {0u, 1u}) {
      // Two per dispatch are enough for those that wait for up to five others; plus gate and
      // closing packet.
      uint64_t packets = 2;
      for (const size_t step : sequence.dispatches(number))
        packets += 1 + (sequence.steps[step].after.size() + kDependencies - 1) / kDependencies;
      used[number] = packets > 2;
      if (packets > gpu.properties().queue_max_packets)
        throw support::UsageError(fmt::format(
            "steps: queue {1} needs {0} packets, but this device's queues hold at most {2}",
            packets, number, gpu.properties().queue_max_packets));
      // Queue 0 also has the packets before and after a run.
      const uint64_t size =
          std::bit_ceil(std::max<uint64_t>(packets, 2 * sequence.buffers.size() + 1));
      queues.emplace_back(gpu, static_cast<uint32_t>(std::max<uint64_t>(size, 64)), kPatience);
      if (timing != TimingMode::none) queues.back().enable_profiling();
    }
  }

  void make_buffers() {
    uint64_t largest = 0;
    for (const Buffer& buffer : sequence.buffers) {
      memory.emplace_back(gpu, memory_kind(buffer.kind), buffer.bytes);
      std::byte* const bytes = static_cast<std::byte*>(
          initial.emplace_back(gpu, MemoryKind::pinned, buffer.bytes).data());
      const size_t period = buffer.initial.size();
      for (uint64_t i = 0; i < buffer.bytes; ++i)
        bytes[i] = period == 0 ? std::byte{0} : buffer.initial[i % period];
      largest = std::max(largest, buffer.bytes);
    }
    if (largest == 0) return;
    staging = Allocation(gpu, MemoryKind::pinned, largest);
    trash = Allocation(gpu, MemoryKind::device, largest);
  }
  std::byte* at(size_t buffer, uint64_t begin = 0) const {
    return static_cast<std::byte*>(memory[buffer].data()) + begin;
  }

  // A kernarg block of `kernel`, with its hidden arguments.
  std::byte* new_block(const KernelInfo& kernel, const Grid& grid, uint32_t queue) {
    if (kernel.arguments.size_bytes() == 0) return nullptr;
    const size_t line = std::max<size_t>(64, kernel.arguments.alignment());
    constexpr size_t page = 65536;
    block_at = (block_at + line - 1) / line * line;
    if (blocks.empty() || block_at + kernel.arguments.size_bytes() > blocks.back().size_bytes()) {
      blocks.emplace_back(gpu, MemoryKind::kernarg,
                          std::max<size_t>(page, kernel.arguments.size_bytes()));
      block_at = 0;
    }
    std::byte* const block = static_cast<std::byte*>(blocks.back().data()) + block_at;
    block_at += kernel.arguments.size_bytes();
    kernel.arguments.fill_hidden(block, grid, queues[queue].facts());
    return block;
  }
  template <class T>
  static void put(std::byte* block, const KernelInfo& kernel, size_t argument, const T& value) {
    std::memcpy(block + kernel.arguments.offset(argument), &value, sizeof value);
  }
  static aql::KernelDispatch dispatch_of(const KernelInfo& kernel, const Grid& grid,
                                         std::byte* block) {
    return {.grid = grid.items,
            .workgroup = grid.workgroup,
            .dimensions = grid.dimensions,
            .private_segment_size = kernel.private_segment_size,
            .group_segment_size = kernel.group_segment_size + grid.lds_bytes,
            .kernel_object = kernel.object,
            .kernarg_address = block};
  }

  void make_blocks() {
    for (size_t i = 0; i < sequence.steps.size(); ++i) {
      const Step& step = sequence.steps[i];
      aql::KernelDispatch& dispatch = dispatches.emplace_back();
      if (step.kind == Step::Kind::copy) continue;
      const KernelInfo& kernel = kernels.of(i);
      std::byte* const block = new_block(kernel, step.grid, step.queue);
      dispatch = dispatch_of(kernel, step.grid, block);
      for (size_t a = 0; a < step.arguments.size(); ++a) {
        const Argument& argument = step.arguments[a];
        std::byte* const to = block + kernel.arguments.offset(a);
        if (argument.kind == Argument::Kind::value) {
          std::memcpy(to, argument.value.data(), argument.value.size());
        } else if (argument.kind == Argument::Kind::address) {
          const std::byte* const address = at(argument.buffer, argument.begin);
          std::memcpy(to, &address, sizeof address);
        } else {
          detail::store_argument(block, kernel.arguments.offset(a),
                                 LocalBytes{argument.local_bytes}, dispatch.group_segment_size);
        }
      }
    }
    make_spoiling();
  }

  // Creates kernels that fill and read all buffers, to leave other bytes in the caches. Nothing
  // invalidates the caches afterwards.
  void make_spoiling() {
    constexpr uint64_t pattern = 0xa5a5a5a5a5a5a5a5, unit = 16;
    std::vector<aql::Packet64> reads;
    for (size_t i = 0; i < memory.size(); ++i) {
      const uint64_t bytes = sequence.buffers[i].bytes;
      const Grid grid =
          Grid{static_cast<uint32_t>(std::clamp<uint64_t>(bytes / unit, 64, 65536))}.by(64);
      std::byte* const filling = new_block(fill.info(), grid, 0);
      put(filling, fill.info(), 0, at(i));
      put(filling, fill.info(), 1, bytes);
      put(filling, fill.info(), 2, pattern);
      put(filling, fill.info(), 3, pattern);
      aql::KernelDispatch packet = dispatch_of(fill.info(), grid, filling);
      packet.flags = {Barrier::on, i == 0 ? FenceScope::system : FenceScope::none,
                      FenceScope::agent};
      spoiling.push_back(aql::to_packet(packet));

      std::byte* const reading = new_block(read.info(), grid, 0);
      put(reading, read.info(), 0, trash.data());
      put(reading, read.info(), 1, at(i));
      put(reading, read.info(), 2, bytes);
      packet = dispatch_of(read.info(), grid, reading);
      packet.flags = {Barrier::on, i == 0 ? FenceScope::agent : FenceScope::none, FenceScope::none};
      reads.push_back(aql::to_packet(packet));
    }
    spoiling.insert(spoiling.end(), reads.begin(), reads.end());
    spoiling.push_back(
        aql::to_packet(aql::BarrierAnd{.flags = {Barrier::on, FenceScope::none, FenceScope::system},
                                       .completion_signal = closed[0].handle()}));
  }

  void make_signals() {
    signal_of.resize(sequence.steps.size());
    for (const Step& step : sequence.steps)
      for (const size_t waited : step.after) need_signal(waited, SignalKind::event_less);
    for (size_t i = 0; i < sequence.steps.size(); ++i)
      if (sequence.steps[i].kind == Step::Kind::copy) need_signal(i, SignalKind::interrupt);
    if (timing == TimingMode::none) return;
    for (const uint32_t queue : {0u, 1u}) {
      const std::vector<size_t> steps = sequence.dispatches(queue);
      for (const size_t step : steps)
        if (timing == TimingMode::each || step == steps.front() || step == steps.back()) {
          need_signal(step, SignalKind::event_less);
          timed.push_back(step);
        }
    }
    // Applies to all later copies of this process.
    if (timing == TimingMode::each)
      check(hsa_amd_profiling_async_copy_enable(true), "hsa_amd_profiling_async_copy_enable",
            "time stamps of copies");
  }
  void need_signal(size_t step, SignalKind kind) {
    // the host also waits for it
    if (sequence.steps[step].kind == Step::Kind::copy) kind = SignalKind::interrupt;
    if (signal_of[step].handle == 0) signal_of[step] = signals.emplace_back(kind).handle();
  }

  // ---- before and after a run

  void reset() {
    if (!spoiling.empty() && !memory.empty()) {
      hsa_signal_store_relaxed(closed[0].handle(), 1);
      queues[0].publish(spoiling);
      queues[0].wait(closed[0].handle(), "the kernels before a run");
    }
    for (size_t i = 0; i < memory.size(); ++i) {
      const uint64_t bytes = sequence.buffers[i].bytes;
      if (sequence.buffers[i].kind == BufferKind::device)
        copier.to_device(memory[i].data(), initial[i].data(), bytes);
      else
        std::memcpy(memory[i].data(), initial[i].data(), bytes);
    }
    for (const Signal& signal : signals) hsa_signal_store_relaxed(signal.handle(), 1);
    for (const Signal& signal : closed) hsa_signal_store_relaxed(signal.handle(), 1);
    hsa_signal_store_screlease(gate.handle(), 1);
  }

  // The contents of a buffer, readable by the host.
  std::span<const std::byte> contents(size_t buffer) {
    const uint64_t bytes = sequence.buffers[buffer].bytes;
    const void* from = memory[buffer].data();
    if (sequence.buffers[buffer].kind == BufferKind::device) {
      copier.to_host(staging.data(), from, bytes);
      from = staging.data();
    }
    return {static_cast<const std::byte*>(from), bytes};
  }

  void run_step_by_step() {
    for (size_t i = 0; i < sequence.steps.size(); ++i) {
      const Step& step = sequence.steps[i];
      if (step.kind == Step::Kind::copy) {
        std::byte* const to = at(step.to.buffer, step.to.begin);
        const std::byte* const from = at(step.from.buffer, step.from.begin);
        if (to_device(step))
          copier.to_device(to, from, step.to.bytes);
        else
          copier.to_host(to, from, step.to.bytes);
        continue;
      }
      aql::KernelDispatch dispatch = dispatches[i];
      dispatch.flags = kSystem;
      const aql::Packet64 packet = aql::to_packet(dispatch);
      queues[step.queue].publish({&packet, 1});
      queues[step.queue].flush(fmt::format("steps[{}], '{}'", i, step.name));
    }
    for (size_t i = 0; i < memory.size(); ++i) {
      const auto bytes = contents(i);
      expected.emplace_back(bytes.begin(), bytes.end());
    }
  }

  uint64_t wrong_bytes() {
    uint64_t wrong = 0;
    for (size_t i = 0; i < memory.size(); ++i) {
      const std::span<const std::byte> found = contents(i);
      if (std::memcmp(found.data(), expected[i].data(), found.size()) == 0) continue;
      for (size_t byte = 0; byte < found.size(); ++byte)
        wrong += found[byte] != expected[i][byte] ? 1 : 0;
    }
    return wrong;
  }

  // ---- a run

  bool to_device(const Step& copy) const {
    return sequence.buffers[copy.to.buffer].kind == BufferKind::device;
  }

  void require(const Headers& headers) const {
    if (headers.size() != sequence.steps.size())
      throw std::invalid_argument(fmt::format("Bench: {} headers for a sequence of {} steps",
                                              headers.size(), sequence.steps.size()));
  }

  // Actions in the order of the steps, so that no step waits for a later one; packets are published
  // together as far as possible.
  std::vector<Action> actions(const Headers& headers, Release release) const {
    require(headers);
    std::vector<Action> open(2), all;
    using Role = Packet::Role;
    const auto add = [&](const Packet& role, const aql::Packet64& packet) {
      open[role.queue].packets.push_back(packet);
      open[role.queue].roles.push_back(role);
    };
    const auto send = [&] {
      for (const uint32_t queue : {0u, 1u}) {
        if (open[queue].packets.empty()) continue;
        open[queue].queue = queue;
        all.push_back(std::move(open[queue]));
        open[queue] = {};
      }
    };
    for (const uint32_t queue : {0u, 1u})
      if (used[queue] && release == Release::gated)
        add({.role = Role::gate, .queue = queue},
            aql::to_packet(aql::BarrierAnd{kOrderOnly, {gate.handle()}, {}}));
    for (size_t i = 0; i < sequence.steps.size(); ++i) {
      const Step& step = sequence.steps[i];
      if (step.kind == Step::Kind::copy) {
        send();
        all.push_back({.copy = i});
        continue;
      }
      for (size_t first = 0; first < step.after.size(); first += kDependencies) {
        const std::span<const size_t> awaited =
            std::span(step.after)
                .subspan(first, std::min(kDependencies, step.after.size() - first));
        aql::BarrierAnd packet{.flags = kOrderOnly, .dependencies = {}, .completion_signal = {}};
        for (size_t d = 0; d < awaited.size(); ++d) packet.dependencies[d] = signal_of[awaited[d]];
        add({.role = Role::waits, .queue = step.queue, .step = i, .after = awaited},
            aql::to_packet(packet));
      }
      aql::KernelDispatch packet = dispatches[i];
      packet.flags = headers[i];
      packet.completion_signal = signal_of[i];
      add({.role = Role::dispatch, .queue = step.queue, .step = i}, aql::to_packet(packet));
    }
    for (const uint32_t queue : {0u, 1u})
      if (used[queue])
        add({.role = Role::closing, .queue = queue},
            aql::to_packet(
                aql::BarrierAnd{.flags = kClosing, .completion_signal = closed[queue].handle()}));
    send();
    return all;
  }

  void start_copy(size_t number, Release release) {
    const Step& step = sequence.steps[number];
    std::vector<hsa_signal_t> awaited;
    if (release == Release::gated) awaited.push_back(gate.handle());
    for (const size_t waited : step.after) awaited.push_back(signal_of[waited]);
    std::byte* const to = at(step.to.buffer, step.to.begin);
    const std::byte* const from = at(step.from.buffer, step.from.begin);
    if (to_device(step))
      copier.start_to_device(to, from, step.to.bytes, signal_of[number], awaited);
    else
      copier.start_to_host(to, from, step.to.bytes, signal_of[number], awaited);
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

  std::vector<Packet> published(const std::vector<Action>& all) const {
    std::vector<Packet> packets;
    for (const Action& action : all) {
      for (size_t i = 0; i < action.roles.size(); ++i) {
        Packet& packet = packets.emplace_back(action.roles[i]);
        packet.index = action.roles[0].index + i;
        packet.published_ns = action.roles[0].published_ns;
      }
    }
    std::ranges::stable_sort(packets, {}, &Packet::queue);
    return packets;
  }

  void wait() {
    for (const uint32_t queue : {0u, 1u})
      if (used[queue]) queues[queue].wait(closed[queue].handle(), "the end of a run", kSpin);
    for (size_t i = 0; i < sequence.steps.size(); ++i)
      if (sequence.steps[i].kind == Step::Kind::copy)
        queues[0].wait(signal_of[i], "a copy of a run", kSpin);
  }

  std::vector<std::optional<Span>> spans() const {
    std::vector<std::optional<Span>> all;
    if (timing == TimingMode::none) return all;
    all.resize(sequence.steps.size());
    for (const size_t step : timed) {
      hsa_amd_profiling_dispatch_time_t time{};
      check(hsa_amd_profiling_get_dispatch_time(gpu.handle(), signal_of[step], &time),
            "hsa_amd_profiling_get_dispatch_time", sequence.steps[step].name);
      all[step] = {time.start, time.end};
    }
    if (timing != TimingMode::each) return all;
    for (size_t step = 0; step < all.size(); ++step) {
      if (sequence.steps[step].kind != Step::Kind::copy) continue;
      hsa_amd_profiling_async_copy_time_t time{};
      check(hsa_amd_profiling_get_async_copy_time(signal_of[step], &time),
            "hsa_amd_profiling_get_async_copy_time", sequence.steps[step].name);
      all[step] = {time.start, time.end};
    }
    return all;
  }
  std::optional<double> device_us(const std::vector<std::optional<Span>>& all) const {
    if (timed.empty()) return std::nullopt;
    uint64_t first = UINT64_MAX, last = 0;
    for (const size_t step : timed) {
      first = std::min(first, all[step]->begin_ns);
      last = std::max(last, all[step]->end_ns);
    }
    return static_cast<double>(last - first) / 1e3;
  }

  Run run(const Headers& headers, Release release) {
    std::vector<Action> all = actions(headers, release);
    Run result;
    // The device may use all of this until the end of the run.
    failed = true;
    reset();
    if (before) before();
    Clock::time_point start = Clock::now();
    submit(all, release);
    if (release == Release::gated) {
      start = Clock::now();
      hsa_signal_store_screlease(gate.handle(), 0);
    }
    wait();
    result.us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    if (after) after();
    result.packets = published(all);
    result.spans = spans();
    result.device_us = device_us(result.spans);
    result.wrong_bytes = wrong_bytes();
    result.correct = result.wrong_bytes == 0;
    // Writes back unreleased data, so that it does not overwrite later contents.
    for (support::PacketQueue& queue : queues) queue.flush();
    failed = false;
    return result;
  }

  const Agent gpu;
  const Sequence sequence;
  const TimingMode timing;
  const PlannedHeaders plan;
  StepKernels kernels;
  Program transfer;
  Kernel<unsigned char*, uint64_t, uint64_t, uint64_t> fill;
  Kernel<unsigned char*, const unsigned char*, uint64_t> read;
  Copier copier;
  std::function<void()> before, after;
  bool failed = false;

  std::vector<Allocation> memory, initial;       // [buffer]
  std::vector<std::vector<std::byte>> expected;  // [buffer]
  std::vector<Allocation> blocks;
  size_t block_at = 0;
  Allocation staging, trash;
  std::vector<aql::KernelDispatch> dispatches;  // [step]
  std::vector<aql::Packet64> spoiling;
  Signal gate;
  std::array<Signal, 2> closed;         // [queue]
  std::deque<Signal> signals;           // per step
  std::vector<hsa_signal_t> signal_of;  // [step]; null handle without a signal
  std::vector<size_t> timed;            // steps
  std::array<bool, 2> used{};           // [queue]
  // last member: destroyed before the memory and signals that the queues use
  std::vector<support::PacketQueue> queues;
};

Bench::Bench(const Agent& gpu, Sequence sequence, TimingMode timing)
    : impl_(std::make_unique<Impl>(gpu, std::move(sequence), timing)) {}
Bench::~Bench() = default;

const Sequence& Bench::sequence() const noexcept { return impl_->sequence; }
Headers Bench::everywhere() const { return fence_scope::everywhere(impl_->sequence); }
Headers Bench::planned() const { return impl_->plan.headers; }

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
  for (size_t i = 0; i < impl_->memory.size(); ++i) {
    const auto begin = reinterpret_cast<uint64_t>(impl_->memory[i].data());
    if (address >= begin && address - begin < impl_->sequence.buffers[i].bytes)
      return Place{i, address - begin};
  }
  return std::nullopt;
}

const void* Bench::ring(uint32_t queue) const noexcept { return impl_->queues[queue].ring(); }

DeviceCounts Bench::counts(const Headers& headers) const {
  DeviceCounts counts;
  for (const Action& action : impl_->actions(headers, Release::ungated)) {
    counts.packets += action.packets.size();
    counts.doorbells += action.packets.empty() ? 0 : 1;
  }
  for (const bool used : impl_->used) counts.interrupts += used ? 1 : 0;
  for (const Step& step : impl_->sequence.steps)
    counts.interrupts += step.kind == Step::Kind::copy ? 1 : 0;
  counts.signal_updates = impl_->signals.size();
  for (const bool used : impl_->used) counts.signal_updates += used ? 1 : 0;
  for (size_t i = 0; i < headers.size(); ++i) {
    if (impl_->sequence.steps[i].kind == Step::Kind::copy) continue;
    counts.barrier_bits += headers[i].barrier == Barrier::on ? 1 : 0;
    counts.agent_acquires += headers[i].acquire == FenceScope::agent ? 1 : 0;
    counts.agent_releases += headers[i].release == FenceScope::agent ? 1 : 0;
    counts.system_acquires += headers[i].acquire == FenceScope::system ? 1 : 0;
    counts.system_releases += headers[i].release == FenceScope::system ? 1 : 0;
  }
  return counts;
}

std::string Bench::dry_run(const Headers& headers) const {
  std::string text;
  for (const Action& action : impl_->actions(headers, Release::ungated)) {
    if (action.packets.empty()) {
      const Step& copy = impl_->sequence.steps[action.copy];
      text += fmt::format("copy engine: '{}', {} bytes\n\n", copy.name, copy.to.bytes);
      continue;
    }
    for (size_t i = 0; i < action.packets.size(); ++i)
      text += fmt::format("queue {}: {}\n{}\n{}\n\n", action.queue,
                          in_words(action.roles[i], impl_->sequence),
                          aql::format(action.packets[i]), aql::format_words(action.packets[i]));
  }
  return text;
}

}  // namespace uptempo::fence_scope
