#include "cp/command_processor.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cp/aql_queue.hpp"
#include "cp/device_thread.hpp"
#include "cp/doorbell/doorbell_watch.hpp"
#include "cp/doorbell/idle_policy.hpp"
#include "cp/host_watch.hpp"
#include "cp/lost_memory.hpp"
#include "cp/sdma_queue.hpp"
#include "device/caches/incoherent.hpp"
#include "device/clock.hpp"
#include "device/host/host_pages.hpp"

namespace uptempo::vgpu {
namespace {

using gfx9::Target;

Target target_of(const DeviceDescription& device) {
  constexpr std::array<std::pair<std::string_view, Target>, 5> targets{
      {{"gfx900", Target::gfx900},
       {"gfx906", Target::gfx906},
       {"gfx908", Target::gfx908},
       {"gfx90a", Target::gfx90a},
       {"gfx942", Target::gfx942}}};
  for (const auto& [name, target] : targets)
    if (name == device.target) return target;
  throw std::invalid_argument("the command processor has no instruction set for '" +
                              std::string(device.target) +
                              "'; it has gfx900, gfx906, gfx908, gfx90a and gfx942");
}

gfx9::MemoryPolicy policy_of(const Device& device) {
  if (device.caches != nullptr) return gfx9::MemoryPolicy::cached;
  return is_observed(device) ? gfx9::MemoryPolicy::observed : gfx9::MemoryPolicy::direct;
}

uint32_t worker_count(const Options& options) {
  if (options.deterministic) return 1;
  if (options.workers != 0) return options.workers;
  // A worker that waits for a core delays the wave that it runs, and the waves that wait for that
  // one. So the GPUs share the cores, and the program's threads keep one. With few cores, one more
  // worker is worth more.
  const uint32_t cores = process_cores();
  const auto gpus = static_cast<uint32_t>(std::max<size_t>(1, options.gpus.size()));
  return std::max(1u, (cores < 8 ? cores : cores - 1) / gpus);
}

bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

// Turns per queue in one section of the address space. Compared with one turn, four save 2 ns a
// packet for the section's begin and end.
constexpr unsigned kRounds = 4;

std::chrono::nanoseconds now() { return std::chrono::nanoseconds(host_clock_ns()); }

}  // namespace

struct CommandProcessor::Impl final : private HostObserver {
  explicit Impl(Device& the_device)
      : device(the_device),
        creator(getpid()),
        code(device.memory, target_of(*device.options.device), policy_of(device)),
        memory(device.memory),
        kernels(target_of(*device.options.device), device.memory_check != nullptr),
        random(device.options.seed),
        late_interrupts(device.options.delay ? std::make_unique<LateInterrupts>(device.interrupts)
                                             : nullptr),
        host(device, memory),
        // Started before the workers, because the device can run without workers.
        thread(start_device_thread("vgpu-cp",
                                   [this] {
                                     complete.wait(false, std::memory_order_acquire);
                                     run();
                                   })),
        scheduler(device, code, target_of(*device.options.device), worker_count(device.options),
                  [this] { watch.wake(); }),
        context{device,
                memory,
                scheduler,
                kernels,
                code,
                [this] { take_noted_doorbells(); },
                [this](uint64_t host_ns) { look_for_checker(host_ns); },
                random,
                late_interrupts.get()} {
    if (!thread.joinable())
      throw std::system_error(EAGAIN, std::generic_category(),
                              "the device's thread cannot be started");
    if (device.trace.enabled() || device.host_stacks != nullptr)
      watch.record_all(device.host_stacks);
    if (device.checker != nullptr && device.host_pages != nullptr && device.options.checks.waits) {
      watch.record_all(device.host_stacks);  // keeps the doorbells closed
      watch.hold_producers(device.host_pages->waits.doorbells);
      device.host_pages->hold_by(&watch);
    }
    if (host.pages() != nullptr) host.pages()->observe_by(this);
    catch_lost_host_memory();
    // release: all members that run() uses are initialised
    complete.store(true, std::memory_order_release);
    complete.notify_one();
  }

  ~Impl() {
    stop.store(true, std::memory_order_release);
    watch.wake();
    thread.join();
  }

  // Runs `request` on the command processor's thread between two turns, after this call.
  void post(std::function<void()> request) {
    {
      const std::lock_guard lock(requests_mutex);
      requests.push_back(std::move(request));
      requested.store(true, std::memory_order_release);
    }
    watch.wake();
  }

  // On the command processor's thread. A pass of the queues goes first, so that what they report is
  // what they wait for.
  DeviceSnapshot snapshot(CommandProcessor::SnapshotDepth depth, std::chrono::nanoseconds limit) {
    DeviceSnapshot result{.gpu = device.gpu, .answered = true, .queues = {}, .silent_workers = {}};
    advance_queues();
    // A dispatch that was launched just now then has waves.
    if (depth == CommandProcessor::SnapshotDepth::waves) scheduler.run_slice();
    memory.enter();
    for (const Entry& entry : queues) {
      QueueSnapshot& queue = result.queues.emplace_back();
      queue.gpu = device.gpu;
      queue.number = entry.queue->ordinal();
      entry.queue->describe(queue);
    }
    memory.leave();
    if (depth == CommandProcessor::SnapshotDepth::queues) return result;
    Scheduler::Residents residents = scheduler.residents(limit);
    for (size_t index = 0; index < queues.size(); ++index)
      queues[index].queue->describe_waves(result.queues[index], residents);
    result.silent_workers = std::move(residents.silent_workers);
    return result;
  }

  // Runs `work` on the command processor's thread between two turns and waits for it. Queues
  // therefore need no locks.
  template <typename Work>
  void on_thread(Work work) {
    if (std::this_thread::get_id() == thread.get_id()) return work();
    std::mutex done_mutex;
    std::condition_variable done_changed;
    bool done = false;
    post([&] {
      work();
      const std::lock_guard done_lock(done_mutex);
      done = true;
      done_changed.notify_one();  // under the lock, so that the waiter cannot return earlier
    });
    std::unique_lock lock(done_mutex);
    done_changed.wait(lock, [&] { return done; });
  }

  void serve_requests() {
    if (!requested.load(std::memory_order_acquire)) return;
    std::vector<std::function<void()>> taken;
    {
      const std::lock_guard lock(requests_mutex);
      taken.swap(requests);
      // relaxed: the mutex orders it with requests
      requested.store(false, std::memory_order_relaxed);
    }
    for (auto& request : taken) request();
  }

  void catch_up() noexcept override {
    if (on_device_thread()) return;
    const uint32_t wanted = catch_up_wanted.fetch_add(1, std::memory_order_release) + 1;
    watch.wake();
    // Tens of microseconds, unless the machine or the device is busy.
    constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 20'000};
    constexpr uint64_t kLimitNs = 10'000'000'000;
    const uint64_t begin = host_clock_ns();
    while (static_cast<int32_t>(caught_up.load(std::memory_order_acquire) - wanted) < 0 &&
           host_clock_ns() - begin < kLimitNs)
      nanosleep(&kLook, nullptr);
  }

  bool must_catch_up() const noexcept {
    return catch_up_wanted.load(std::memory_order_acquire) !=
           caught_up.load(std::memory_order_relaxed);  // only this thread stores it
  }

  void serve_catching_up() {
    const uint32_t wanted = catch_up_wanted.load(std::memory_order_acquire);
    if (wanted == caught_up.load(std::memory_order_relaxed)) return;
    memory.enter();
    host.report();
    memory.leave();
    caught_up.store(wanted, std::memory_order_release);
  }

  void run() {
    prefer_latency();
    while (!stop.load(std::memory_order_acquire)) {
      const uint32_t rings = watch.rings();
      serve_requests();
      serve_catching_up();
      bool progressed = advance_queues();
      watch.passed(progressed);
      // Deterministic: launched dispatches end before new packets are read, unless they wait for
      // something that only new packets can change.
      const unsigned slices = device.options.deterministic ? 256 : 1;
      for (unsigned slice = 0; slice < slices && scheduler.run_slice(); ++slice) progressed = true;
      // The queue that caused the access is no longer known. ROCr ends the process on memory faults
      // unless the program handles them.
      if (const auto lost = take_lost_host_memory(device.gpu))
        device.interrupts.memory_fault(*lost);
      if (progressed) {
        policy.progressed();
        watch.stored();
      } else {
        if (at_rest()) watch.rested(rings);
        idle(rings);
      }
    }
    if (device.host_pages != nullptr) {
      device.host_pages->hold_by(nullptr);
      device.host_pages->observe_by(nullptr);
    }
    serve_catching_up();
    watch.release_producers();
    abandon_all();
  }

  bool advance_queues() {
    const bool raised = late_interrupts != nullptr && begin_delayed_pass();
    if (queues.empty()) return raised;
    memory.enter();
    if (code_changed.exchange(false, std::memory_order_acq_rel)) {
      kernels.forget_code();
      code.invalidate();
    }
    kernels.forget_unmapped(device.memory.generation());
    take_noted_doorbells();
    if (device.checker != nullptr) {
      const auto section = device.checker->section();
      look_for_checker(host_clock_ns());
    }
    bool progressed = raised;
    for (unsigned round = 0; round < kRounds && advance_each(); ++round) progressed = true;
    memory.leave();
    return progressed;
  }

  // For delays only. Returns whether an interrupt was due.
  [[gnu::cold]] bool begin_delayed_pass() {
    for (const Entry& entry : queues) entry.queue->begin_pass();
    return late_interrupts->raise_due(host_clock_ns());
  }

  // Always in the same order: between two turns of a queue, every other queue has exactly one.
  bool advance_each() {
    bool progressed = false;
    for (const Entry& entry : queues) progressed = entry.queue->advance() || progressed;
    return progressed;
  }

  // Takes the records that wait now, and leaves those that threads add meanwhile (DoorbellLines
  // relies on that).
  void take_noted_doorbells() {
    for (uint64_t left = watch.records_waiting(); left > 0; --left) {
      const auto record = watch.take_record();
      if (!record) return;
      const auto rung = [&](const Entry& entry) {
        return entry.queue->doorbell() == record->doorbell;
      };
      const auto queue = std::find_if(queues.begin(), queues.end(), rung);
      if (queue != queues.end()) queue->queue->noted_doorbell(*record);
    }
  }

  void look_for_checker(uint64_t host_ns) {
    for (const Entry& entry : queues) entry.queue->look_for_checker(host_ns);
  }

  // Whether anything must be polled because it does not end the watch's sleep: a word in memory, a
  // doorbell outside the attached pages, a doorbell that a running kernel may ring, or one whose
  // store the watch has let through.
  bool must_poll() const {
    return watch.awaits_store() ||
           std::any_of(queues.begin(), queues.end(), [this](const Entry& entry) {
             const Queue& queue = *entry.queue;
             if (queue.waiting() == Waiting::memory || queue.executing()) return true;
             return queue.waiting() != Waiting::nothing && queue.doorbell() != nullptr &&
                    !watch.watches(queue.doorbell());
           });
  }

  bool at_rest() const {
    return !scheduler.busy() && std::all_of(queues.begin(), queues.end(), [](const Entry& entry) {
      return entry.queue->at_rest() && entry.queue->next_look_ns() == QueueDelays::kNever;
    });
  }

  // `rings`: the doorbells before this pass, of threads that are held.
  void idle(uint32_t rings) {
    const bool polls = must_poll();
    IdlePolicy::Decision decision = policy.decide(
        now(), polls, watch.awaits_store() ? IdlePolicy::kStoreSpin : IdlePolicy::kPollSpin);
    if (!polls && late_interrupts != nullptr && is_delayed_for_long())
      decision = {IdlePolicy::Action::sleep};  // only a doorbell can come earlier
    switch (decision.action) {
      case IdlePolicy::Action::spin:
        for (int turn = 0; turn < 8; ++turn) __builtin_ia32_pause();
        if (++spins % 64 == 0) sched_yield();  // a producer may need this core to ring
        return;
      case IdlePolicy::Action::doze:
      case IdlePolicy::Action::sleep:
        break;
    }
    watch.arm();
    // Changes before arming do not wake the processor, so it checks once more.
    const bool nothing_new = !stop.load(std::memory_order_acquire) &&
                             !requested.load(std::memory_order_acquire) && !must_catch_up() &&
                             watch.rings() == rings && !host_memory_was_lost(device.gpu) &&
                             !scheduler.busy() && !advance_queues();
    // A doorbell seen just now may have left its queue waiting for a header, which must be polled.
    if (nothing_new && (polls || !must_poll())) {
      const auto begin = now();
      const bool dozes = decision.action == IdlePolicy::Action::doze;
      const auto limit = dozes ? decision.duration : std::chrono::nanoseconds(0);
      const bool delays = late_interrupts != nullptr && next_look_ns() != LateInterrupts::kNever;
      watch.sleep(delays ? until_next_look(begin, limit) : limit);
      // The length of a delay does not predict when doorbells come.
      if (!dozes && !delays) policy.slept(now() - begin);
      // Before disarm(), which interrupts the other cores and would delay the doorbell further.
      if (advance_queues()) {
        policy.progressed();
        watch.stored();
      }
    }
    watch.disarm();
  }

  // The end of the first delay of all queues and interrupts.
  [[gnu::cold]] uint64_t next_look_ns() const {
    uint64_t first = late_interrupts->next_ns();
    for (const Entry& entry : queues) first = std::min(first, entry.queue->next_look_ns());
    return first;
  }

  // Whether the delay is longer than falling asleep and waking up.
  [[gnu::cold]] bool is_delayed_for_long() const {
    const uint64_t look_ns = next_look_ns();
    return look_ns != LateInterrupts::kNever &&
           std::chrono::nanoseconds(look_ns) > now() + 2 * IdlePolicy::kMinSpin;
  }

  // The timeout for DoorbellWatch::sleep(): at most `limit` (0: no limit).
  [[gnu::cold]] std::chrono::nanoseconds until_next_look(std::chrono::nanoseconds from,
                                                         std::chrono::nanoseconds limit) const {
    const auto left = std::chrono::nanoseconds(next_look_ns()) - from;
    const auto least = std::max(left, std::chrono::nanoseconds(1));
    return limit.count() == 0 ? least : std::min(least, limit);
  }

  void abandon_all() {
    for (Entry& entry : queues)
      while (!entry.queue->abandon()) sched_yield();
    memory.enter();
    queues.clear();
    memory.leave();
  }

  struct Entry {
    QueueId id;
    std::unique_ptr<Queue> queue;
  };

  Queue* find(QueueId id) {
    const auto found = std::find_if(queues.begin(), queues.end(),
                                    [id](const Entry& entry) { return entry.id == id; });
    return found == queues.end() ? nullptr : found->queue.get();
  }

  template <typename Make>
  QueueId add(Make make) {
    QueueId id = 0;
    on_thread([&] {
      id = device.group == nullptr
               ? ++last_id
               : device.group->last_queue.fetch_add(1, std::memory_order_relaxed) + 1;
      queues.push_back({id, make(ordinal_of(id))});
      if (queues_stopped) queues.back().queue->abandon();  // which stops it
    });
    return id;
  }

  Device& device;
  const pid_t creator;
  gfx9::CodeCache code;
  AddressSpace::Reader memory;
  KernelTable kernels;
  std::minstd_rand random;
  const std::unique_ptr<LateInterrupts> late_interrupts;  // null: nothing is delayed
  HostWatch host;
  DoorbellWatch watch;
  std::atomic<bool> complete{false};
  std::thread thread;
  Scheduler scheduler;
  QueueContext context;

  // Used only by the command processor's thread.
  std::vector<Entry> queues;
  QueueId last_id = 0;  // of a device that is in no group
  bool queues_stopped = false;
  IdlePolicy policy;
  unsigned spins = 0;

  std::mutex requests_mutex;
  std::vector<std::function<void()>> requests;
  std::atomic<bool> requested{false};
  // Calls of catch_up(), and how many of them are served. A call neither locks nor allocates.
  std::atomic<uint32_t> catch_up_wanted{0}, caught_up{0};
  std::atomic<bool> code_changed{false};
  std::atomic<bool> stop{false};
};

CommandProcessor::CommandProcessor(Device& device) {
  const StartsThreadsOf threads(device.gpu);
  impl_ = std::make_unique<Impl>(device);
}

CommandProcessor::~CommandProcessor() {
  // After fork() the child has the object but none of its threads, so it joins none.
  if (impl_->creator != getpid()) [[maybe_unused]]
    Impl* leaked = impl_.release();
}

QueueId CommandProcessor::create_compute_queue(const ComputeQueueConfig& config) {
  if (config.ring_bytes != 0 &&
      (!is_power_of_two(config.ring_bytes) || config.ring_bytes < kAqlPacketBytes))
    throw std::invalid_argument("a compute queue's ring of " + std::to_string(config.ring_bytes) +
                                " bytes is not a power of two of whole packets");
  return impl_->add([&](uint32_t ordinal) {
    // ROCr creates its utility queue before the program's first queue (amd_gpu_agent.cpp,
    // QueueCreate), and again after hsa_shut_down has destroyed all queues.
    const bool runtime_owned = std::ranges::none_of(impl_->queues, [](const Impl::Entry& entry) {
      return dynamic_cast<const AqlQueue*>(entry.queue.get()) != nullptr;
    });
    return std::make_unique<AqlQueue>(impl_->context, ordinal, config, runtime_owned);
  });
}

QueueId CommandProcessor::create_sdma_queue(const SdmaQueueConfig& config) {
  if (config.ring_bytes != 0 && !is_power_of_two(config.ring_bytes))
    throw std::invalid_argument("an SDMA queue's ring of " + std::to_string(config.ring_bytes) +
                                " bytes is not a power of two");
  return impl_->add([&](uint32_t ordinal) {
    return std::make_unique<SdmaQueue>(impl_->context, ordinal, config);
  });
}

bool CommandProcessor::destroy_queue(QueueId id) {
  bool found = false;
  impl_->on_thread([&] {
    Queue* queue = impl_->find(id);
    if (queue == nullptr) return;
    found = true;
    while (!queue->abandon()) sched_yield();
    impl_->memory.enter();  // the end of a queue is reported to the checker
    std::erase_if(impl_->queues, [id](const Impl::Entry& entry) { return entry.id == id; });
    impl_->memory.leave();
  });
  return found;
}

void CommandProcessor::stop_queues() {
  impl_->on_thread([&] {
    impl_->queues_stopped = true;
    for (Impl::Entry& entry : impl_->queues)
      while (!entry.queue->abandon()) sched_yield();
  });
}

bool CommandProcessor::update_queue(QueueId id, GpuAddress ring, uint64_t ring_bytes,
                                    uint32_t percentage, uint32_t priority) {
  bool updated = false;
  impl_->on_thread([&] {
    Queue* queue = impl_->find(id);
    if (auto* compute = dynamic_cast<AqlQueue*>(queue)) {
      updated = compute->update(ring, ring_bytes, percentage, priority);
    } else if (auto* sdma = dynamic_cast<SdmaQueue*>(queue)) {
      sdma->suspend(percentage == 0 || ring_bytes == 0);
      updated = true;
    }
  });
  return updated;
}

bool CommandProcessor::set_cu_mask(QueueId id, std::span<const uint32_t> mask) {
  const ComputeUnitSet units = ComputeUnitSet::of_mask(*impl_->device.options.device, mask);
  bool found = false;
  impl_->on_thread([&] {
    Queue* queue = impl_->find(id);
    found = queue != nullptr;
    if (auto* compute = dynamic_cast<AqlQueue*>(queue)) compute->set_compute_units(units);
  });
  return found;
}

DeviceSnapshot CommandProcessor::snapshot(SnapshotDepth depth, std::chrono::nanoseconds limit) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable changed;
    DeviceSnapshot snapshot;  // `answered` is set last
  };
  // Shared, because this call may return before the answer comes.
  const auto answer = std::make_shared<Answer>();
  answer->snapshot.gpu = impl_->device.gpu;
  impl_->post([impl = impl_.get(), answer, depth, limit] {
    DeviceSnapshot snapshot = impl->snapshot(depth, limit / 10);
    const std::lock_guard lock(answer->mutex);
    answer->snapshot = std::move(snapshot);
    answer->changed.notify_one();
  });
  std::unique_lock lock(answer->mutex);
  answer->changed.wait_for(lock, limit, [&] { return answer->snapshot.answered; });
  return std::move(answer->snapshot);
}

void CommandProcessor::attach_doorbell_page(std::byte* program_address, std::byte* alias,
                                            size_t size_bytes) {
  impl_->watch.attach(program_address, alias, size_bytes);
}

void CommandProcessor::detach_doorbell_page(std::byte* program_address) {
  const DoorbellWatch::Range range = impl_->watch.detach(program_address);
  impl_->on_thread([&] {
    for (Impl::Entry& entry : impl_->queues)
      if (entry.queue->doorbell() != nullptr && range.contains(entry.queue->doorbell()))
        entry.queue->lose_doorbell();
  });
}

void CommandProcessor::doorbell_rung() noexcept { impl_->watch.wake(); }

void CommandProcessor::unmap(GpuAddress begin) {
  if (impl_->device.caches == nullptr) {
    impl_->device.memory.unmap(begin);
    return;
  }
  // Runs in one turn of the thread that also executes kernels, so no kernel can fetch a line of the
  // mapping in between.
  impl_->on_thread([&] {
    impl_->memory.enter();
    const Mapping* mapping = impl_->memory.find(begin);
    if (mapping != nullptr) impl_->device.caches->forget(*mapping);
    impl_->memory.leave();
    impl_->device.memory.unmap(begin);
  });
}

void CommandProcessor::invalidate_code() noexcept {
  impl_->code_changed.store(true, std::memory_order_release);
}

}  // namespace uptempo::vgpu
