#include "cp/scheduler.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "cp/device_thread.hpp"
#include "device/incoherent.hpp"

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
// Maximum number of workgroups claimed under one lock.
constexpr uint64_t kMaxChunk = 8;
// Finished workgroups kept for reuse. Their registers are mapped memory, and frequent allocation of
// the rest fragments malloc's heap.
constexpr size_t kMaxSpare = 64;
// Iterations for which a helper looks for work before it sleeps. Longer than the gap between two
// dispatches of a chain.
constexpr unsigned kHelperSpins = 4000;
constexpr uint64_t kHelpFromWorkgroups = 2;
// For dispatches of one workgroup each: wakes helpers if a slice has taken longer than waking one
// (some 5 us) and two workgroups are left.
constexpr uint64_t kWorthHelp = 1024;

void relax() noexcept { __builtin_ia32_pause(); }

}  // namespace

Dispatch::Dispatch(std::shared_ptr<const gfx9::DispatchState> state, ScratchSlots& scratch,
                   QueueShare& share)
    : state_(std::move(state)),
      scratch_(scratch),
      share_(share),
      groups_(state_->workgroups()),
      total_(uint64_t{groups_[0]} * groups_[1] * groups_[2]),
      waves_per_group_(state_->waves_per_workgroup()),
      needs_scratch_(state_->packet.private_segment_size != 0) {}

struct Scheduler::Impl {
  // A workgroup that has started and not ended.
  struct Resident {
    Dispatch* dispatch;
    gfx9::Workgroup workgroup;
    std::optional<uint32_t> scratch_slot;
  };
  using ResidentPtr = std::unique_ptr<Resident>;

  // Claimed workgroups that have not started.
  struct Chunk {
    Dispatch* dispatch = nullptr;  // null: none
    uint64_t next = 0, end = 0;
    std::optional<uint32_t> scratch;
    ComputeUnitSet units;
  };

  struct Worker {
    Worker(Device& device, gfx9::CodeCache& code, gfx9::Target target, WaveSlots& slots)
        : executor(device, code, target) {
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
    uint64_t spent = 0;  // instructions of new workgroups since the last round of runnable ones
    uint64_t due = 0;    // runnable workgroups to serve before the next new one
    unsigned yields = 0;
    std::thread thread;
  };

  Impl(Device& the_device, gfx9::CodeCache& code, gfx9::Target target, uint32_t worker_count,
       std::function<void()> finished)
      : device(the_device),
        on_finished(std::move(finished)),
        waves_per_unit(uint64_t{device.options.device->simds_per_compute_unit} *
                       device.options.device->max_waves_per_simd),
        max_resident_waves(device.options.device->compute_units * waves_per_unit),
        wave_slots(*device.options.device),
        random(device.options.seed) {
    workers.push_back(std::make_unique<Worker>(device, code, target, wave_slots));
    for (uint32_t index = 1; index < worker_count; ++index) {
      workers.push_back(std::make_unique<Worker>(device, code, target, wave_slots));
      Worker& helper = *workers.back();
      helper.thread = start_device_thread("vgpu-worker", [this, &helper] { help(helper); });
    }
  }

  ~Impl() {
    stop.store(true, std::memory_order_relaxed);
    epoch.fetch_add(1, std::memory_order_release);
    epoch.notify_all();
    for (auto& worker : workers)
      if (worker->thread.joinable()) worker->thread.join();
  }

  void launch(Dispatch& dispatch) {
    if (dispatch.total_ == 0) {
      dispatch.finished_.store(true, std::memory_order_release);
      return;
    }
    {
      const std::lock_guard lock(mutex);
      if (device.options.deterministic) shuffle(dispatch);
      const uint64_t xcds = device.options.device->xcds;
      dispatch.first_turn_ =
          std::exchange(turns, (turns + dispatch.total_ + xcds - 1) / xcds * xcds) +
          dispatch.share_.first_xcd;
      dispatch.masked_ = dispatch.share_.units.size() != device.options.device->compute_units;
      active.push_back(&dispatch);
      publish_pending();
    }
    if (workers.size() > 1 && dispatch.total_ >= kHelpFromWorkgroups) wake_helpers();
  }

  // Seeded order of workgroups: n -> n * stride + offset. It is a permutation because stride and
  // total are coprime.
  void shuffle(Dispatch& dispatch) {
    const uint64_t total = dispatch.total_;
    uint64_t offset = random();  // 31 bits
    if (total >> 31 != 0) offset = offset << 31 | random();
    dispatch.offset_ = offset % total;
    dispatch.stride_ = 1 + random() % std::min<uint64_t>(total, 1u << 16);
    while (std::gcd(dispatch.stride_, total) != 1) ++dispatch.stride_;
  }

  void wake_helpers() {
    // seq_cst pairs with the helper's announcement: either the helper sees the new epoch, or it is
    // counted here.
    epoch.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) epoch.notify_all();
  }

  void set_units(QueueShare& share, const ComputeUnitSet& units) {
    {
      const std::lock_guard lock(mutex);
      share.units = units;
      publish_pending();
    }
    wake_helpers();
  }

  void set_priority(QueueShare& share, PipePriority priority) {
    const std::lock_guard lock(mutex);
    share.priority = priority;
    publish_pending();
  }

  // Publishes the number of unclaimed and runnable workgroups, and the highest priority of
  // unclaimed ones. Both are read without the lock. Workgroups of queues without compute units do
  // not count.
  void publish_pending() {
    uint64_t count = runnable.size();
    int highest = -1;
    for (const Dispatch* dispatch : active) {
      if (dispatch->share_.units.empty()) continue;
      count += dispatch->total_ - dispatch->next_;
      highest = std::max(highest, static_cast<int>(dispatch->share_.priority));
    }
    pending.store(count, std::memory_order_release);
    // Stored only if it changes, because every worker reads it before each start. relaxed: decided
    // under the mutex.
    if (highest_unclaimed.load(std::memory_order_relaxed) != highest)
      highest_unclaimed.store(highest, std::memory_order_release);
  }

  // Counts `count` workgroups of `dispatch` that do not run any more. After the last one the
  // dispatch may be destroyed.
  bool end(Dispatch& dispatch, uint64_t count) {
    if (count == 0) return false;
    const uint64_t total = dispatch.total_;
    // acq_rel: the last workgroup to end publishes the results of all.
    if (dispatch.ended_.fetch_add(count, std::memory_order_acq_rel) + count != total) return false;
    dispatch.finished_.store(true, std::memory_order_release);
    on_finished();
    return true;
  }

  void abandon(Dispatch& dispatch, std::optional<gfx9::Executor::Fault> fault) {
    uint64_t dropped = 0;
    std::vector<ResidentPtr> surplus;
    {
      const std::lock_guard lock(mutex);
      if (dispatch.abandoned_.exchange(true, std::memory_order_acq_rel)) return;
      dispatch.fault_ = std::move(fault);
      dropped = dispatch.total_ - dispatch.next_;
      dispatch.next_ = dispatch.total_;
      std::erase(active, &dispatch);
      for (auto& resident : runnable) {
        if (resident->dispatch != &dispatch) continue;
        runnable_waves -= dispatch.waves_per_group_;
        release_resident(*resident);
        (spare.size() < kMaxSpare ? spare : surplus).push_back(std::move(resident));
        ++dropped;
      }
      std::erase(runnable, nullptr);
      publish_pending();
    }
    end(dispatch, dropped);
  }

  void release_resident(Resident& resident) {  // requires the mutex
    Dispatch& dispatch = *resident.dispatch;
    resident.workgroup.leave_place();
    add_resident(dispatch, -1);
    if (resident.scratch_slot)
      dispatch.scratch_.give_back(*resident.scratch_slot, dispatch.waves_per_group_);
    resident.scratch_slot.reset();
  }

  void add_resident(Dispatch& dispatch, int64_t workgroups) {  // requires the mutex
    dispatch.resident_ += static_cast<uint64_t>(workgroups);
    if (dispatch.masked_)
      dispatch.share_.masked_waves += static_cast<uint64_t>(workgroups) * dispatch.waves_per_group_;
  }

  // Returns the number of workgroups that have room on the compute units of the queue and on the
  // device.
  uint64_t room_for(const Dispatch& dispatch) const {  // requires the mutex
    const uint64_t waves = waves_per_unit * dispatch.share_.units.size();
    const uint64_t used = dispatch.masked_ ? dispatch.share_.masked_waves
                                           : dispatch.resident_ * dispatch.waves_per_group_;
    if (runnable_waves + dispatch.waves_per_group_ > max_resident_waves || used >= waves) return 0;
    return (waves - used) / dispatch.waves_per_group_;
  }

  // Claims workgroups of priority `least` or higher. The highest comes first, and active dispatches
  // of equal priority take turns.
  bool claim(Worker& worker, int least) {
    const std::lock_guard lock(mutex);
    // relaxed: decided under this mutex
    for (int priority = highest_unclaimed.load(std::memory_order_relaxed); priority >= least;
         --priority)
      if (claim_of(worker, static_cast<PipePriority>(priority))) return true;
    return false;
  }

  bool claim_of(Worker& worker, PipePriority priority) {  // requires the mutex
    Chunk& chunk = worker.chunks[static_cast<size_t>(priority)];
    for (size_t tried = 0; tried < active.size(); ++tried) {
      const size_t at = turn++ % active.size();
      Dispatch& dispatch = *active[at];
      if (dispatch.share_.priority != priority || dispatch.share_.units.empty()) continue;
      const uint64_t room = room_for(dispatch);
      // each dispatch has at least one resident workgroup
      if (room == 0 && dispatch.resident_ != 0) continue;
      uint64_t count = 1;
      chunk.scratch.reset();
      if (dispatch.needs_scratch_) {
        chunk.scratch =
            dispatch.scratch_.take(dispatch.state_->scratch_waves, dispatch.waves_per_group_);
        if (!chunk.scratch) continue;  // until a resident workgroup releases its slots
      } else {
        const uint64_t share = (dispatch.total_ - dispatch.next_) / (workers.size() * 4);
        count = std::clamp<uint64_t>(std::min(share, room), 1, kMaxChunk);
      }
      chunk.dispatch = &dispatch;
      chunk.next = dispatch.next_;
      chunk.end = dispatch.next_ + count;
      chunk.units = dispatch.share_.units;
      dispatch.next_ += count;
      add_resident(dispatch, static_cast<int64_t>(count));
      for (; !spare.empty() && worker.spare.size() < count; spare.pop_back())
        worker.spare.push_back(std::move(spare.back()));
      if (dispatch.next_ == dispatch.total_)
        active.erase(active.begin() + static_cast<ptrdiff_t>(at));
      publish_pending();
      return true;
    }
    return false;
  }

  void drop_chunk(Chunk& chunk) {
    Dispatch& dispatch = *chunk.dispatch;
    const uint64_t count = chunk.end - chunk.next;
    {
      const std::lock_guard lock(mutex);
      add_resident(dispatch, -static_cast<int64_t>(count));
      if (chunk.scratch) dispatch.scratch_.give_back(*chunk.scratch, dispatch.waves_per_group_);
      chunk.scratch.reset();
    }
    chunk.dispatch = nullptr;
    end(dispatch, count);
  }

  void drop_abandoned(Worker& worker) {
    for (Chunk& chunk : worker.chunks)
      if (chunk.dispatch != nullptr && chunk.dispatch->abandoned_.load(std::memory_order_acquire))
        drop_chunk(chunk);
  }

  ResidentPtr start_new(Worker& worker) {
    drop_abandoned(worker);
    int priority = worker.chunk_priority();
    if (highest_unclaimed.load(std::memory_order_acquire) > priority && claim(worker, priority + 1))
      priority = worker.chunk_priority();
    if (priority < 0) return nullptr;
    Chunk& chunk = worker.chunks[static_cast<size_t>(priority)];
    Dispatch& dispatch = *chunk.dispatch;
    const uint64_t index =
        dispatch.stride_ == 1
            ? (chunk.next + dispatch.offset_) % dispatch.total_
            : static_cast<uint64_t>((static_cast<unsigned __int128>(chunk.next) * dispatch.stride_ +
                                     dispatch.offset_) %
                                    dispatch.total_);
    const auto& groups = dispatch.groups_;
    const std::array<uint32_t, 3> id{static_cast<uint32_t>(index % groups[0]),
                                     static_cast<uint32_t>(index / groups[0] % groups[1]),
                                     static_cast<uint32_t>(index / groups[0] / groups[1])};
    ResidentPtr resident;
    if (worker.spare.empty()) {
      resident = std::make_unique<Resident>();
    } else {
      resident = std::move(worker.spare.back());
      worker.spare.pop_back();
    }
    resident->dispatch = &dispatch;
    resident->scratch_slot = std::exchange(chunk.scratch, std::nullopt);
    resident->workgroup.units = chunk.units;
    const DeviceDescription& description = *device.options.device;
    // The XCD follows from the workgroup's number, so with several it is also the turn.
    resident->workgroup.turn = dispatch.first_turn_ + (description.xcds == 1 ? chunk.next : index);
    if (device.caches != nullptr) {
      const uint32_t xcd = chunk.units.xcd_of_turn(description, resident->workgroup.turn);
      resident->workgroup.compute_unit = chunk.units.number_of(
          description, xcd,
          device.caches->any_compute_unit() % chunk.units.size_in(description, xcd));
    }
    resident->workgroup.start(dispatch.state_, id, resident->scratch_slot.value_or(0));
    if (++chunk.next == chunk.end) chunk.dispatch = nullptr;
    return resident;
  }

  ResidentPtr take_runnable() {
    if (pending.load(std::memory_order_acquire) == 0) return nullptr;
    const std::lock_guard lock(mutex);
    if (runnable.empty()) return nullptr;
    ResidentPtr resident = std::move(runnable.front());
    runnable.pop_front();
    runnable_waves -= resident->dispatch->waves_per_group_;
    publish_pending();
    return resident;
  }

  enum class Step { idle, ran, finished_dispatch };

  // Runs one workgroup for one slice. Call it inside the worker's executor section.
  Step step(Worker& worker) {
    ResidentPtr resident;
    bool is_new = false;
    if (worker.due > 0) {
      --worker.due;
      resident = take_runnable();
    }
    if (resident == nullptr) {
      resident = start_new(worker);
      is_new = resident != nullptr;
    }
    if (resident == nullptr) resident = take_runnable();
    if (resident == nullptr) return Step::idle;

    Dispatch& dispatch = *resident->dispatch;
    if (dispatch.abandoned_.load(std::memory_order_acquire))
      return retire(worker, std::move(resident));

    gfx9::Executor& executor = worker.executor;
    const uint64_t before = executor.instructions;
    const uint64_t quantum =
        std::max(kWorkgroupQuantum / dispatch.waves_per_group_, kMinWaveQuantum);
    const gfx9::Workgroup::Result result = resident->workgroup.run(executor, quantum);
    const uint64_t spent = executor.instructions - before;

    if (is_new) worker.spent += spent;
    switch (result) {
      case gfx9::Workgroup::Result::ended:
        worker.yields = 0;
        break;
      case gfx9::Workgroup::Result::faulted: {
        auto fault = std::exchange(executor.fault, std::nullopt);
        if (!fault)
          fault = gfx9::Executor::Fault{QueueError::illegal_instruction, std::nullopt,
                                        "a wave stopped without a reason"};
        abandon(dispatch, std::move(fault));
        break;
      }
      case gfx9::Workgroup::Result::preempted: {
        worker.yields = spent < kYieldInstructions ? worker.yields + 1 : 0;
        const std::lock_guard lock(mutex);
        // relaxed: decided under this mutex
        if (dispatch.abandoned_.load(std::memory_order_relaxed)) break;
        runnable_waves += dispatch.waves_per_group_;
        runnable.push_back(std::move(resident));
        publish_pending();
        break;
      }
    }
    if (worker.spent >= kWorkgroupQuantum && worker.due == 0) {
      const std::lock_guard lock(mutex);
      worker.spent = 0;
      worker.due = (runnable.size() + workers.size() - 1) / workers.size();
    }
    if (resident == nullptr) {
      // All remaining workgroups wait for something else, so give the core to the program's
      // threads.
      if (worker.yields > 8) sched_yield();
      return Step::ran;
    }
    return retire(worker, std::move(resident));
  }

  Step retire(Worker& worker, ResidentPtr resident) {
    Dispatch& dispatch = *resident->dispatch;
    {
      const std::lock_guard lock(mutex);
      release_resident(*resident);
    }
    if (worker.spare.size() < kMaxSpare) worker.spare.push_back(std::move(resident));
    return end(dispatch, 1) ? Step::finished_dispatch : Step::ran;
  }

  void help(Worker& worker) {
    unsigned idle = 0;
    uint32_t seen = epoch.load(std::memory_order_acquire);
    while (!stop.load(std::memory_order_relaxed)) {
      bool ran = false;
      if (pending.load(std::memory_order_acquire) != 0 || worker.chunk_priority() >= 0) {
        worker.executor.enter();
        const uint64_t begin = worker.executor.instructions;
        while (worker.executor.instructions - begin < kSliceInstructions) {
          const Step result = step(worker);
          if (result == Step::idle) break;
          ran = true;
          if (result == Step::finished_dispatch) break;
        }
        worker.executor.leave();
      }
      if (ran) {
        idle = 0;
        continue;
      }
      if (++idle < kHelperSpins) {
        relax();
        continue;
      }
      sleepers.fetch_add(1, std::memory_order_seq_cst);  // pairs with wake_helpers()
      if (epoch.load(std::memory_order_seq_cst) == seen)
        epoch.wait(seen, std::memory_order_acquire);
      sleepers.fetch_sub(1, std::memory_order_relaxed);
      seen = epoch.load(std::memory_order_acquire);
      idle = 0;
    }
    for (Chunk& chunk : worker.chunks)
      if (chunk.dispatch != nullptr) drop_chunk(chunk);
  }

  bool busy() const noexcept {
    return pending.load(std::memory_order_acquire) != 0 || workers.front()->chunk_priority() >= 0;
  }

  bool run_slice() {
    Worker& worker = *workers.front();
    if (!busy()) return false;
    bool ran = false;
    worker.executor.enter();
    const uint64_t begin = worker.executor.instructions;
    while (worker.executor.instructions - begin < kSliceInstructions) {
      const Step result = step(worker);
      if (result == Step::idle) break;
      ran = true;
      if (result == Step::finished_dispatch) break;
      if (worker.yields > 8) break;
    }
    const uint64_t spent = worker.executor.instructions - begin;
    worker.executor.leave();
    // relaxed: the next slice reads it again.
    if (spent >= kWorthHelp && pending.load(std::memory_order_relaxed) > 1 &&
        sleepers.load(std::memory_order_relaxed) != 0)
      wake_helpers();
    return ran;
  }

  Device& device;
  const std::function<void()> on_finished;
  const uint64_t waves_per_unit;
  const uint64_t max_resident_waves;
  WaveSlots wave_slots;

  // Guards the seven members below, and those of Dispatch and QueueShare that name it.
  std::mutex mutex;
  std::vector<Dispatch*> active;  // with unclaimed workgroups
  std::deque<ResidentPtr> runnable;
  std::vector<ResidentPtr> spare;  // of abandoned dispatches
  uint64_t runnable_waves = 0;
  size_t turn = 0;
  uint64_t turns = 0;  // workgroups of all dispatches so far
  std::minstd_rand random;

  std::atomic<uint64_t> pending{0};
  // In a line of its own, which changes only with the priorities of waiting workgroups. -1: none.
  alignas(64) std::atomic<int> highest_unclaimed{-1};
  alignas(64) std::atomic<uint32_t> epoch{0};
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Worker>> workers;  // last, since helpers use all members above
};

Scheduler::Scheduler(Device& device, gfx9::CodeCache& code, gfx9::Target target, uint32_t workers,
                     std::function<void()> on_finished)
    : impl_(std::make_unique<Impl>(device, code, target, workers, std::move(on_finished))) {}
Scheduler::~Scheduler() = default;

void Scheduler::launch(Dispatch& dispatch) { impl_->launch(dispatch); }
void Scheduler::set_units(QueueShare& share, const ComputeUnitSet& units) {
  impl_->set_units(share, units);
}
void Scheduler::set_priority(QueueShare& share, PipePriority priority) {
  impl_->set_priority(share, priority);
}
void Scheduler::abandon(Dispatch& dispatch) { impl_->abandon(dispatch, std::nullopt); }
bool Scheduler::run_slice() { return impl_->run_slice(); }
void Scheduler::drop_abandoned() { impl_->drop_abandoned(*impl_->workers.front()); }
bool Scheduler::busy() const noexcept { return impl_->busy(); }

}  // namespace uptempo::vgpu
