#include "cp/scheduler/scheduler.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cp/device_thread.hpp"
#include "cp/scheduler/launches.hpp"
#include "cp/scheduler/preempted.hpp"
#include "cp/scheduler/sleepers.hpp"
#include "device/caches/incoherent.hpp"

namespace uptempo::vgpu {
namespace {

// Wave instructions that a workgroup executes at a time, shared by its waves: some 50 us of
// interpretation.
constexpr uint64_t kWorkgroupQuantum = 8192;
constexpr uint64_t kMinWaveQuantum = 512;
// Instructions after which worker 0 reads the queues again: some 20 us.
constexpr uint64_t kSliceInstructions = 4096;
// A workgroup that ends a slice after fewer instructions is waiting (s_sleep, other waves of a
// barrier).
constexpr uint64_t kYieldInstructions = 256;
// Such slices in a row after which a worker assumes that all of its workgroups wait.
constexpr unsigned kYieldsWhenWaiting = 8;
// Finished workgroups kept for reuse. Their registers are mapped memory, and frequent allocation of
// the rest fragments malloc's heap.
constexpr size_t kMaxSpare = 64;
// Iterations for which a helper looks for work before it sleeps. Longer than the gap between two
// dispatches of a chain.
constexpr unsigned kHelperSpins = 4000;
constexpr uint64_t kHelpFromWorkgroups = 2;
// Instructions that take as long as waking a helper: some 5 us.
constexpr uint64_t kWorthHelp = 1024;
// Helpers that one worker wakes at a time. Each of them wakes others.
constexpr uint32_t kWakesAtOnce = 2;
// Waves whose registers a report holds: some 10 us each.
constexpr size_t kReportedRegisters = 64;

void relax() noexcept { __builtin_ia32_pause(); }

}  // namespace

struct Scheduler::Impl {
  // A workgroup that has started and not ended.
  struct Resident {
    Dispatch* dispatch;
    gfx9::Workgroup workgroup;
    uint32_t part;  // of the dispatch
    std::optional<uint32_t> scratch_slot;
    bool masked;  // counted in its queue's masked_waves
  };
  using ResidentPtr = std::unique_ptr<Resident>;

  struct alignas(64) Worker {
    Worker(uint32_t number, Device& device, gfx9::CodeCache& code, gfx9::Target target,
           WaveSlots& slots)
        : executor(device, code, target), view(number) {
      executor.wave_slots = &slots;
    }

    // The priority of the first chunk that it holds, or -1.
    int chunk_priority() const noexcept {
      int priority = static_cast<int>(chunks.size()) - 1;
      while (priority >= 0 && chunks[static_cast<size_t>(priority)].dispatch == nullptr) --priority;
      return priority;
    }

    gfx9::Executor executor;
    std::vector<ResidentPtr> spare;  // storage for reuse
    // One per priority: a worker leaves its chunk for one of higher priority.
    std::array<Chunk, kPipePriorities> chunks;
    Claims::View view;
    uint64_t spent = 0;  // instructions of new workgroups since the last round of preempted ones
    uint64_t due = 0;    // preempted workgroups to serve before the next new one
    unsigned yields = 0;
    size_t victim = 0;  // the worker whose queue was compared last
    std::thread thread;

    alignas(64) PreemptedQueue<ResidentPtr> waiting;
    // Executes nothing, because it sleeps or was asked to rest. seq_cst, with `attention`: either it
    // sees the request, or the thread that asks sees that it does not rest.
    std::atomic<bool> resting{false};
    // Whether it runs a workgroup, so that others may take its only preempted one.
    std::atomic<bool> running{false};
  };

  Impl(Device& the_device, gfx9::CodeCache& code, gfx9::Target target, uint32_t worker_count,
       std::function<void()> finished)
      : device(the_device),
        wave_slots(*device.options.device),
        launches(device, worker_count, wave_slots, std::move(finished)) {
    for (uint32_t index = 0; index < worker_count; ++index)
      workers.push_back(std::make_unique<Worker>(index, device, code, target, wave_slots));
    for (uint32_t index = 1; index < worker_count; ++index) {
      Worker& helper = *workers[index];
      helper.thread = start_device_thread("vgpu-worker", [this, &helper] { help(helper); });
      if (helper.thread.joinable()) ++helpers;
    }
  }

  ~Impl() {
    attention.fetch_or(kStop, std::memory_order_seq_cst);
    sleepers.wake(static_cast<uint32_t>(workers.size()));
    for (auto& worker : workers)
      if (worker->thread.joinable()) worker->thread.join();
  }

  void launch_after(Dispatch& dispatch, std::span<Dispatch* const> earlier) {
    launches.launch_after(dispatch, earlier);
    if (helpers != 0 && dispatch.total_ >= kHelpFromWorkgroups && sleepers.count() == helpers &&
        dispatch.opened())
      sleepers.wake(1);
  }

  void set_units(QueueShare& share, const ComputeUnitSet& units) {
    launches.set_units(share, units);
    sleepers.wake(helpers);
  }

  void abandon(Dispatch& dispatch, std::optional<gfx9::Executor::Fault> fault) {
    if (!launches.close(dispatch, std::move(fault))) return;
    std::vector<ResidentPtr> dropped;
    for (auto& worker : workers)
      worker->waiting.remove_if(
          [&](const ResidentPtr& resident) { return resident->dispatch == &dispatch; },
          [&](ResidentPtr resident) { dropped.push_back(std::move(resident)); });
    std::vector<uint32_t> parts;
    for (const ResidentPtr& resident : dropped) {
      preempted.fetch_sub(1, std::memory_order_relaxed);
      parts.push_back(resident->part);
      leave(*resident);
    }
    {
      const std::lock_guard lock(spare_mutex);
      for (ResidentPtr& resident : dropped)
        if (spare.size() < kMaxSpare) spare.push_back(std::move(resident));
      spares_left.store(!spare.empty(), std::memory_order_relaxed);
    }
    launches.drop_rest(dispatch, parts);
  }

  // The workgroup gives back what it has of its queue and its compute unit.
  void leave(Resident& resident) {
    resident.workgroup.leave_place();
    launches.give_back(*resident.dispatch, resident.masked ? 1 : 0, resident.scratch_slot);
    resident.scratch_slot.reset();
  }

  // Counts what has ended of a chunk, of which nothing is left to start.
  bool end_chunk(Chunk& chunk) {
    Dispatch* const dispatch = std::exchange(chunk.dispatch, nullptr);
    // If all were preempted, the dispatch may have finished elsewhere.
    return chunk.ended != 0 && launches.end(*dispatch, chunk.part, chunk.ended);
  }

  void drop_chunk(Chunk& chunk) {
    Dispatch& dispatch = *chunk.dispatch;
    const uint64_t count = chunk.end - chunk.next;
    launches.give_back(dispatch, chunk.masked ? count : 0, chunk.scratch);
    chunk.ended += count;
    end_chunk(chunk);
  }

  void drop_abandoned(Worker& worker) {
    for (Chunk& chunk : worker.chunks)
      if (chunk.dispatch != nullptr && chunk.dispatch->abandoned_.load(std::memory_order_acquire))
        drop_chunk(chunk);
  }

  // Returns the chunk whose workgroup starts next, or null.
  Chunk* next_chunk(Worker& worker) {
    drop_abandoned(worker);
    int priority = worker.chunk_priority();
    if (launches.highest(worker.view) > priority &&
        launches.claim(worker.view, priority + 1, worker.chunks))
      priority = worker.chunk_priority();
    return priority < 0 ? nullptr : &worker.chunks[static_cast<size_t>(priority)];
  }

  ResidentPtr start(Worker& worker, Chunk& chunk) {
    Dispatch& dispatch = *chunk.dispatch;
    const uint64_t turn = dispatch.deal_.workgroup(chunk.part, chunk.next);
    const uint64_t index =
        dispatch.stride_ == 1
            ? (turn + dispatch.offset_) % dispatch.total_
            : static_cast<uint64_t>(
                  (static_cast<unsigned __int128>(turn) * dispatch.stride_ + dispatch.offset_) %
                  dispatch.total_);
    const auto& groups = dispatch.groups_;
    const std::array<uint32_t, 3> id{static_cast<uint32_t>(index % groups[0]),
                                     static_cast<uint32_t>(index / groups[0] % groups[1]),
                                     static_cast<uint32_t>(index / groups[0] / groups[1])};
    ResidentPtr resident = storage(worker);
    resident->dispatch = &dispatch;
    resident->part = chunk.part;
    resident->scratch_slot = std::exchange(chunk.scratch, std::nullopt);
    resident->masked = chunk.masked;
    resident->workgroup.units = chunk.units;
    const DeviceDescription& description = *device.options.device;
    // The XCD follows from the workgroup's number, so with several it is also the turn.
    resident->workgroup.turn = dispatch.first_turn_ + (description.xcds == 1 ? turn : index);
    if (device.caches != nullptr) {
      const uint32_t xcd = chunk.units.xcd_of_turn(description, resident->workgroup.turn);
      resident->workgroup.compute_unit = chunk.units.number_of(
          description, xcd,
          device.caches->any_compute_unit() % chunk.units.size_in(description, xcd));
    }
    resident->workgroup.start(*dispatch.state_, id, resident->scratch_slot.value_or(0));
    ++chunk.next;
    return resident;
  }

  ResidentPtr storage(Worker& worker) {
    if (worker.spare.empty() && spares_left.load(std::memory_order_relaxed)) {
      const std::lock_guard lock(spare_mutex);
      worker.spare.swap(spare);
      spares_left.store(false, std::memory_order_relaxed);
    }
    if (worker.spare.empty()) return std::make_unique<Resident>();
    ResidentPtr resident = std::move(worker.spare.back());
    worker.spare.pop_back();
    return resident;
  }

  // The worker's next preempted workgroup. Takes one of another worker whose queue is longer.
  ResidentPtr take_preempted(Worker& worker, bool idle) {
    // relaxed: a worker always finds those of its own queue.
    if (preempted.load(std::memory_order_relaxed) == 0) return nullptr;
    worker.victim = (worker.victim + 1) % workers.size();
    ResidentPtr resident;
    if (workers[worker.victim]->waiting.size() > worker.waiting.size() + 1)
      resident = workers[worker.victim]->waiting.pop();
    if (resident == nullptr) resident = worker.waiting.pop();
    for (size_t tried = 1; idle && resident == nullptr && tried < workers.size(); ++tried) {
      worker.victim = (worker.victim + 1) % workers.size();
      Worker& other = *workers[worker.victim];
      // Leaves it alone if its owner is about to continue it.
      if (other.waiting.size() > 1 || other.running.load(std::memory_order_relaxed))
        resident = other.waiting.pop();
    }
    if (resident != nullptr) preempted.fetch_sub(1, std::memory_order_relaxed);
    return resident;
  }

  enum class Step { idle, ran, finished_dispatch };

  // Runs one workgroup for one slice. Call it inside the worker's executor section.
  Step step(Worker& worker) {
    ResidentPtr resident;
    Chunk* chunk = nullptr;  // the workgroup is new and of this chunk
    if (worker.due > 0) {
      --worker.due;
      resident = take_preempted(worker, false);
    }
    if (resident == nullptr) {
      chunk = next_chunk(worker);
      if (chunk != nullptr) resident = start(worker, *chunk);
    }
    if (resident == nullptr) resident = take_preempted(worker, true);
    if (resident == nullptr) return Step::idle;

    Dispatch& dispatch = *resident->dispatch;
    const uint32_t part = resident->part;
    const bool abandoned = dispatch.abandoned_.load(std::memory_order_acquire);
    gfx9::Workgroup::Result result = gfx9::Workgroup::Result::ended;
    uint64_t spent = 0;
    if (!abandoned) {
      worker.running.store(true, std::memory_order_relaxed);
      const uint64_t before = worker.executor.instructions;
      const uint64_t quantum =
          std::max(kWorkgroupQuantum / dispatch.waves_per_group_, kMinWaveQuantum);
      result = resident->workgroup.run(worker.executor, quantum);
      spent = worker.executor.instructions - before;
      worker.running.store(false, std::memory_order_relaxed);
    }
    if (chunk != nullptr) {
      worker.spent += spent;
      if (sleepers.count() != 0) wake_for(dispatch, chunk->part, spent);
    }
    switch (result) {
      case gfx9::Workgroup::Result::ended:
        worker.yields = 0;
        break;
      case gfx9::Workgroup::Result::faulted: {
        auto fault = std::exchange(worker.executor.fault, std::nullopt);
        if (!fault)
          fault = gfx9::Executor::Fault{QueueError::illegal_instruction, std::nullopt,
                                        "a wave stopped without a reason"};
        add_source_line(worker, *fault);
        abandon(dispatch, std::move(fault));
        break;
      }
      case gfx9::Workgroup::Result::preempted:
        worker.yields = spent < kYieldInstructions ? worker.yields + 1 : 0;
        preempt(worker, resident);
        break;
    }
    const bool ended = resident != nullptr;
    if (ended) retire(worker, std::move(resident));
    if (worker.spent >= kWorkgroupQuantum && worker.due == 0) {
      worker.spent = 0;
      worker.due = worker.waiting.size();
    }
    bool finished = false;
    if (chunk != nullptr) {
      chunk->ended += ended ? 1 : 0;
      if (chunk->next == chunk->end) finished = end_chunk(*chunk);
    } else if (ended) {
      finished = launches.end(dispatch, part, 1);
    }
    // All remaining workgroups wait for something else, so give the core to the program's threads.
    if (!ended && worker.yields > kYieldsWhenWaiting) sched_yield();
    return finished ? Step::finished_dispatch : Step::ran;
  }

  // Call it inside the worker's executor section, which it leaves and enters again.
  void add_source_line(Worker& worker, gfx9::Executor::Fault& fault) {
    if (!device.source_line || fault.pc == 0) return;
    worker.executor.leave();
    const std::string line = device.source_line(fault.pc);
    worker.executor.enter();
    if (line.empty()) return;
    fault.message += " at " + line;
    if (fault.memory) fault.memory->where += " at " + line;
  }

  // Keeps the workgroup for later, unless its dispatch was abandoned; `resident` is empty then.
  void preempt(Worker& worker, ResidentPtr& resident) {
    const Dispatch& dispatch = *resident->dispatch;
    // It holds its compute unit from now on. Shorter workgroups take no place.
    resident->workgroup.place(worker.executor);
    preempted.fetch_add(1, std::memory_order_relaxed);
    if (!worker.waiting.push(resident,
                             [&] { return dispatch.abandoned_.load(std::memory_order_acquire); }))
      preempted.fetch_sub(1, std::memory_order_relaxed);
  }

  void retire(Worker& worker, ResidentPtr resident) {
    leave(*resident);
    if (worker.spare.size() < kMaxSpare) worker.spare.push_back(std::move(resident));
  }

  // Wakes helpers if what is left of the dispatch, at `spent` instructions a workgroup, takes
  // longer than waking them.
  void wake_for(const Dispatch& dispatch, uint32_t part, uint64_t spent) {
    const uint64_t worth = Launches::left(dispatch, part) * spent / kWorthHelp;
    const uint64_t awake = helpers + 1 - sleepers.count();
    if (worth > awake)
      sleepers.wake(static_cast<uint32_t>(std::min<uint64_t>(worth - awake, kWakesAtOnce)));
  }

  void help(Worker& worker) {
    unsigned idle = 0;
    for (;;) {
      if (const uint32_t asked = attention.load(std::memory_order_relaxed); asked != 0)
          [[unlikely]] {
        if ((asked & kStop) != 0) break;
        rest(worker);
      }
      if (has_work(worker) && run_workgroups(worker).ran) {
        idle = 0;
      } else if (++idle < kHelperSpins) {
        relax();
      } else {
        worker.resting.store(true, std::memory_order_seq_cst);
        sleepers.sleep([&] { return (attention.load(std::memory_order_seq_cst) & kStop) != 0; });
        worker.resting.store(false, std::memory_order_seq_cst);
        if ((attention.load(std::memory_order_seq_cst) & kRest) != 0) rest(worker);
        idle = 0;
      }
    }
    for (Chunk& chunk : worker.chunks)
      if (chunk.dispatch != nullptr) drop_chunk(chunk);
  }

  // Rests for as long as it is asked to.
  void rest(Worker& worker) {
    while ((attention.load(std::memory_order_seq_cst) & (kRest | kStop)) == kRest) {
      worker.resting.store(true, std::memory_order_seq_cst);
      while ((attention.load(std::memory_order_acquire) & (kRest | kStop)) == kRest) sched_yield();
      worker.resting.store(false, std::memory_order_seq_cst);
    }
  }

  Scheduler::Residents residents(std::chrono::nanoseconds limit) {
    Scheduler::Residents result;
    attention.fetch_or(kRest, std::memory_order_seq_cst);
    const auto end = std::chrono::steady_clock::now() + limit;
    for (size_t index = 0; index < workers.size(); ++index) {
      Worker& worker = *workers[index];
      const bool helps = worker.thread.joinable();
      while (helps && !worker.resting.load(std::memory_order_seq_cst) &&
             std::chrono::steady_clock::now() < end)
        sched_yield();
      if (helps && !worker.resting.load(std::memory_order_seq_cst)) {
        result.silent_workers.push_back(static_cast<uint32_t>(index));
        continue;
      }
      for (const Chunk& chunk : worker.chunks)
        if (chunk.dispatch != nullptr && chunk.next != chunk.end)
          result.claimed.push_back({chunk.dispatch, chunk.end - chunk.next});
    }
    size_t registers = kReportedRegisters;
    for (auto& worker : workers)
      worker->waiting.for_each([&](const ResidentPtr& resident) {
        result.workgroups.push_back(
            {resident->dispatch, snapshot_of(resident->workgroup, registers)});
      });
    // release, with the acquire in rest(): their stores follow these loads.
    attention.fetch_and(~kRest, std::memory_order_seq_cst);
    return result;
  }

  // `registers`: waves whose registers may still be copied.
  static WorkgroupSnapshot snapshot_of(gfx9::Workgroup& workgroup, size_t& registers) {
    WorkgroupSnapshot snapshot{.id = workgroup.id(), .waves = {}};
    snapshot.waves.reserve(workgroup.waves());
    for (unsigned index = 0; index < workgroup.waves(); ++index) {
      const gfx9::Wave& wave = workgroup.wave(index);
      WaveSnapshot& copy = snapshot.waves.emplace_back();
      copy.pc = wave.pc;
      copy.exec = wave.exec();
      copy.stop = wave.stop;
      copy.global_barrier = wave.sync_phase != 0;
      if (registers == 0 || copy.exec == 0 || wave.stop == gfx9::WaveStop::ended) continue;
      --registers;
      const auto lane = static_cast<unsigned>(std::countr_zero(copy.exec));
      const auto held = std::make_shared<WaveRegisters>();
      std::copy_n(wave.scalar, held->scalar.size(), held->scalar.begin());
      for (uint32_t vgpr = 0; vgpr < workgroup.dispatch().kernel.vgprs; ++vgpr)
        held->vector.push_back(wave.vgpr[vgpr].lane[lane]);
      copy.registers = held;
    }
    return snapshot;
  }

  struct Slice {
    bool ran = false;
    uint64_t spent = 0;  // instructions
  };

  // Runs workgroups for about one slice, or less if a dispatch finishes or all of them wait.
  Slice run_workgroups(Worker& worker) {
    Slice slice;
    worker.executor.enter();
    const uint64_t begin = worker.executor.instructions;
    while (slice.spent < kSliceInstructions) {
      const Step result = step(worker);
      slice.spent = worker.executor.instructions - begin;
      if (result == Step::idle) break;
      slice.ran = true;
      if (result == Step::finished_dispatch || worker.yields > kYieldsWhenWaiting) break;
    }
    worker.executor.leave();
    return slice;
  }

  bool has_work(const Worker& worker) const noexcept {
    return launches.highest(worker.view) >= 0 || preempted.load(std::memory_order_relaxed) != 0 ||
           worker.chunk_priority() >= 0;
  }

  bool run_slice() {
    Worker& worker = *workers.front();
    if (!has_work(worker)) return false;
    const Slice slice = run_workgroups(worker);
    // Several long dispatches of a workgroup each, or workgroups that were preempted.
    if (slice.spent >= kWorthHelp && sleepers.count() != 0 &&
        (launches.highest(worker.view) >= 0 || preempted.load(std::memory_order_relaxed) > 1))
      sleepers.wake(1);
    return slice.ran;
  }

  Device& device;
  WaveSlots wave_slots;

  // Workgroups that were preempted and wait for their next slice.
  alignas(64) std::atomic<uint64_t> preempted{0};
  Launches launches;
  Sleepers sleepers;

  std::mutex spare_mutex;
  std::vector<ResidentPtr> spare;  // of abandoned dispatches

  // Requests to the helpers.
  static constexpr uint32_t kStop = 1, kRest = 2;
  alignas(64) std::atomic<uint32_t> attention{0};
  std::atomic<bool> spares_left{false};
  std::atomic<uint32_t> helpers{0};              // threads that could be started
  std::vector<std::unique_ptr<Worker>> workers;  // last, since helpers use all members above
};

Scheduler::Scheduler(Device& device, gfx9::CodeCache& code, gfx9::Target target, uint32_t workers,
                     std::function<void()> on_finished)
    : impl_(std::make_unique<Impl>(device, code, target, workers, std::move(on_finished))) {}
Scheduler::~Scheduler() = default;

bool Scheduler::has_room() const noexcept { return impl_->launches.has_room(); }
void Scheduler::launch_after(Dispatch& dispatch, std::span<Dispatch* const> earlier) {
  impl_->launch_after(dispatch, earlier);
}
bool Scheduler::has_helpers() const noexcept { return impl_->helpers != 0; }
void Scheduler::set_units(QueueShare& share, const ComputeUnitSet& units) {
  impl_->set_units(share, units);
}
void Scheduler::set_priority(QueueShare& share, PipePriority priority) {
  impl_->launches.set_priority(share, priority);
}
void Scheduler::set_suspended(QueueShare& share, bool suspended) {
  impl_->launches.set_suspended(share, suspended);
}
void Scheduler::abandon(Dispatch& dispatch) { impl_->abandon(dispatch, std::nullopt); }
bool Scheduler::run_slice() { return impl_->run_slice(); }
void Scheduler::drop_abandoned() { impl_->drop_abandoned(*impl_->workers.front()); }
Scheduler::Residents Scheduler::residents(std::chrono::nanoseconds limit) {
  return impl_->residents(limit);
}
uint64_t Scheduler::unclaimed(const Dispatch& dispatch) {
  return impl_->launches.unclaimed(dispatch);
}
bool Scheduler::fits(const ComputeUnitSet& units, const WorkgroupNeeds& needs) const {
  return impl_->wave_slots.room(units, needs) != 0;
}
bool Scheduler::busy() const noexcept { return impl_->has_work(*impl_->workers.front()); }

}  // namespace uptempo::vgpu
