#include "cp/scheduler/scheduler.hpp"

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
#include "cp/scheduler/preempted.hpp"
#include "cp/scheduler/sleepers.hpp"
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

void relax() noexcept { __builtin_ia32_pause(); }

}  // namespace

Dispatch::Dispatch(std::unique_ptr<const gfx9::DispatchState> state, ScratchSlots& scratch,
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
    uint32_t part;  // of the dispatch
    std::optional<uint32_t> scratch_slot;
    bool masked;  // counted in its queue's masked_waves
  };
  using ResidentPtr = std::unique_ptr<Resident>;

  // Claimed workgroups, until the last of them has had its first slice.
  struct Chunk {
    Dispatch* dispatch = nullptr;  // null: none
    uint32_t part = 0;
    uint64_t next = 0, end = 0;  // numbers within the part
    uint64_t ended = 0;          // not yet counted in the dispatch's slot
    std::optional<uint32_t> scratch;
    ComputeUnitSet units;
    bool masked = false;
  };

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

    alignas(64) PreemptedQueue<ResidentPtr> preempted;
    std::atomic<bool> running{
        false};  // a workgroup, so that others may take a single preempted one
  };

  Impl(Device& the_device, gfx9::CodeCache& code, gfx9::Target target, uint32_t worker_count,
       std::function<void()> finished)
      : device(the_device),
        on_finished(std::move(finished)),
        all_units(ComputeUnitSet::all(*device.options.device)),
        waves_per_unit(uint64_t{device.options.device->simds_per_compute_unit} *
                       device.options.device->max_waves_per_simd),
        max_resident_waves(device.options.device->compute_units * waves_per_unit),
        wave_slots(*device.options.device),
        claims({preempted_waves, max_resident_waves, worker_count}),
        random(device.options.seed) {
    for (uint32_t index = 0; index < worker_count; ++index)
      workers.push_back(std::make_unique<Worker>(index, device, code, target, wave_slots));
    for (uint32_t index = 1; index < worker_count; ++index) {
      Worker& helper = *workers[index];
      helper.thread = start_device_thread("vgpu-worker", [this, &helper] { help(helper); });
      if (helper.thread.joinable()) ++helpers;
    }
  }

  ~Impl() {
    stop.store(true, std::memory_order_seq_cst);
    sleepers.wake(static_cast<uint32_t>(workers.size()));
    for (auto& worker : workers)
      if (worker->thread.joinable()) worker->thread.join();
  }

  void launch_after(Dispatch& dispatch, std::span<Dispatch* const> earlier) {
    if (dispatch.total_ == 0 && earlier.empty()) {
      dispatch.finished_.store(true, std::memory_order_release);
      return;
    }
    dispatch.slot_ = claims.reserve(dispatch, dispatch.total_);
    for (Dispatch* const one : earlier) {
      // The end of `one` is a unit of the dispatch, so that the dispatch exists until that worker has
      // stored there for the last time.
      dispatch.slot_->add_unit(1);
      dispatch.blockers_.fetch_add(1, std::memory_order_relaxed);
      Dispatch* none = nullptr;
      // release: the worker that ends `one` sees the dispatch. acquire: this thread sees its results.
      if (!one->successor_.compare_exchange_strong(none, &dispatch, std::memory_order_acq_rel)) {
        dispatch.slot_->add_unit(-1);
        dispatch.blockers_.fetch_sub(1, std::memory_order_relaxed);
      }
    }
    unblock(dispatch);
    if (helpers != 0 && dispatch.total_ >= kHelpFromWorkgroups && sleepers.count() == helpers &&
        dispatch.opened())
      sleepers.wake(1);
  }

  // One reason less to wait. acq_rel: whoever opens it sees the results of all that it waited for.
  void unblock(Dispatch& dispatch) {
    if (dispatch.blockers_.fetch_sub(1, std::memory_order_acq_rel) == 1) open(dispatch);
  }

  void open(Dispatch& dispatch) {
    const std::lock_guard lock(mutex);
    if (dispatch.abandoned_.load(std::memory_order_relaxed)) return;
    if (device.options.deterministic) shuffle(dispatch);
    const uint64_t xcds = device.options.device->xcds;
    dispatch.first_turn_ =
        std::exchange(turns, (turns + dispatch.total_ + xcds - 1) / xcds * xcds) +
        dispatch.share_.first_xcd;
    dispatch.masked_ = dispatch.share_.units != all_units;
    dispatch.opened_.store(true, std::memory_order_relaxed);
    dispatch.locked_ =
        dispatch.masked_ || dispatch.needs_scratch_ || dispatch.total_ > Claims::kMaxCounted;
    dispatch.deal_ = Deal::make(dispatch.total_, dispatch.waves_per_group_,
                                max_resident_waves / dispatch.waves_per_group_,
                                dispatch.locked_ ? 1 : static_cast<uint32_t>(workers.size()));
    if (dispatch.locked_) keep(dispatch, 0, 0, dispatch.total_);
    claims.open(*dispatch.slot_, dispatch.deal_, dispatch.locked_);
    show(dispatch);
  }

  // Keeps workgroups that are to be claimed under the mutex.
  void keep(Dispatch& dispatch, uint32_t part, uint64_t first, uint64_t last) {
    dispatch.rest_.push_back({part, first, last});
    dispatch.rest_count_ += last - first;
  }

  void show(Dispatch& dispatch) {  // requires the mutex
    const QueueShare& share = dispatch.share_;
    const bool starts = !share.units.empty() && !share.suspended;
    claims.show(*dispatch.slot_, starts ? std::optional(share.priority) : std::nullopt);
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

  template <typename Visit>
  void for_each_of(const QueueShare& share, Visit visit) {
    claims.for_each([&](Claims::Slot& slot, Dispatch& dispatch) {
      if (&dispatch.share_ == &share && dispatch.opened()) visit(slot, dispatch);
    });
  }

  void set_units(QueueShare& share, const ComputeUnitSet& units) {
    {
      const std::lock_guard lock(mutex);
      share.units = units;
      for_each_of(share, [&](Claims::Slot& slot, Dispatch& dispatch) {
        if (!std::exchange(dispatch.locked_, true))
          claims.lock(slot, [&](uint32_t part, uint64_t next, uint64_t last) {
            keep(dispatch, part, next, last);
          });
        show(dispatch);
      });
    }
    sleepers.wake(helpers);
  }

  void set_priority(QueueShare& share, PipePriority priority) {
    const std::lock_guard lock(mutex);
    share.priority = priority;
    for_each_of(share, [&](Claims::Slot&, Dispatch& dispatch) { show(dispatch); });
  }

  void set_suspended(QueueShare& share, bool suspended) {
    const std::lock_guard lock(mutex);
    share.suspended = suspended;
    for_each_of(share, [&](Claims::Slot&, Dispatch& dispatch) { show(dispatch); });
  }

  // Counts workgroups that do not run any more. After the last one the dispatch may be destroyed.
  // Returns whether it was the last one.
  bool end(Dispatch& dispatch, uint32_t part, uint64_t count) {
    if (!Claims::end(*dispatch.slot_, part, count)) return false;
    finish(dispatch);
    return true;
  }

  void finish(Dispatch& dispatch) {
    for (Dispatch* ended = &dispatch;;) {
      claims.release(*ended->slot_);
      // The results of an abandoned dispatch are not complete.
      const bool complete = !ended->abandoned_.load(std::memory_order_relaxed);
      // acq_rel: pairs with launch_after()
      Dispatch* const next = ended->successor_.exchange(ended, std::memory_order_acq_rel);
      ended->finished_.store(true, std::memory_order_release);
      if (next != nullptr && complete) unblock(*next);
      on_finished();
      if (next == nullptr || !next->slot_->end_units(1)) return;
      ended = next;  // it was abandoned
    }
  }

  void abandon(Dispatch& dispatch, std::optional<gfx9::Executor::Fault> fault) {
    bool never_opened = false;
    std::vector<Dispatch::Rest> dropped;
    {
      const std::lock_guard lock(mutex);
      if (dispatch.finished() || dispatch.abandoned_.load(std::memory_order_relaxed)) return;
      dispatch.abandoned_.store(true, std::memory_order_release);
      dispatch.fault_ = std::move(fault);
      never_opened = !dispatch.opened();
      if (!never_opened && !dispatch.locked_)
        claims.close(*dispatch.slot_, [&](uint32_t part, uint64_t next, uint64_t last) {
          keep(dispatch, part, next, last);
        });
      dropped.swap(dispatch.rest_);
      for (auto& worker : workers)
        worker->preempted.remove_if(
            [&](const ResidentPtr& resident) { return resident->dispatch == &dispatch; },
            [&](ResidentPtr resident) {
              count_preempted(dispatch, -1);
              leave(*resident);
              dropped.push_back({resident->part, 0, 1});
              if (spare.size() < kMaxSpare) spare.push_back(std::move(resident));
            });
      spares_left.store(!spare.empty(), std::memory_order_relaxed);
    }
    if (never_opened) {
      if (dispatch.slot_->end_units(dispatch.total_)) finish(dispatch);
      return;
    }
    // The dispatch exists until its last workgroup is counted.
    for (const Dispatch::Rest& one : dropped) end(dispatch, one.part, one.end - one.next);
  }

  void count_preempted(const Dispatch& dispatch, int sign) {
    preempted_waves.fetch_add(static_cast<uint64_t>(int64_t{sign} * dispatch.waves_per_group_),
                              std::memory_order_relaxed);
    preempted_groups.fetch_add(static_cast<uint64_t>(int64_t{sign}), std::memory_order_relaxed);
  }

  // The workgroup gives back what it has of its queue and its compute unit.
  void leave(Resident& resident) {  // requires the mutex if it has scratch or is masked
    Dispatch& dispatch = *resident.dispatch;
    resident.workgroup.leave_place();
    if (resident.masked) dispatch.share_.masked_waves -= dispatch.waves_per_group_;
    if (resident.scratch_slot)
      dispatch.scratch_.give_back(*resident.scratch_slot, dispatch.waves_per_group_);
    resident.scratch_slot.reset();
  }

  // Returns the number of workgroups that have room on the compute units of the queue and on the
  // device.
  uint64_t room_for(const Dispatch& dispatch, uint64_t resident) const {  // requires the mutex
    const uint64_t waves = waves_per_unit * dispatch.share_.units.size();
    const uint64_t used =
        dispatch.masked_ ? dispatch.share_.masked_waves : resident * dispatch.waves_per_group_;
    if (preempted_waves.load(std::memory_order_relaxed) + dispatch.waves_per_group_ >
            max_resident_waves ||
        used >= waves)
      return 0;
    return (waves - used) / dispatch.waves_per_group_;
  }

  // For dispatches that need more than a counter.
  std::optional<Claims::Claim> claim_locked(Claims::Slot& slot, uint32_t generation, Chunk& chunk,
                                            bool& exhausted) {
    const std::lock_guard lock(mutex);
    Dispatch* const found = Claims::current(slot, generation);
    exhausted = found == nullptr || found->rest_.empty();
    if (exhausted) return std::nullopt;
    Dispatch& dispatch = *found;
    if (dispatch.share_.units.empty() || dispatch.share_.suspended) return std::nullopt;
    const uint64_t resident = Claims::resident(slot, dispatch.rest_count_);
    const uint64_t room = room_for(dispatch, resident);
    // each dispatch has at least one resident workgroup
    if (room == 0 && resident != 0) return std::nullopt;
    Dispatch::Rest& rest = dispatch.rest_.back();
    uint64_t count = 1;
    if (dispatch.needs_scratch_) {
      chunk.scratch =
          dispatch.scratch_.take(dispatch.state_->scratch_waves, dispatch.waves_per_group_);
      // Until a resident workgroup releases its slots.
      if (!chunk.scratch) return std::nullopt;
    } else {
      const uint64_t share = dispatch.rest_count_ / (workers.size() * 4);
      count =
          std::clamp<uint64_t>(std::min({share, room, rest.end - rest.next}), 1, Claims::kMaxChunk);
    }
    chunk.units = dispatch.share_.units;
    chunk.masked = dispatch.masked_;
    if (chunk.masked) dispatch.share_.masked_waves += count * dispatch.waves_per_group_;
    const Claims::Claim claim{&dispatch, rest.part, rest.next, rest.next + count};
    rest.next += count;
    dispatch.rest_count_ -= count;
    if (rest.next == rest.end) dispatch.rest_.pop_back();
    return claim;
  }

  // Claims workgroups of priority `least` or higher.
  bool claim(Worker& worker, int least) {
    Chunk chunk;
    const auto claim = claims.claim(worker.view, least,
                                    [&](Claims::Slot& slot, uint32_t generation, bool& exhausted) {
                                      return claim_locked(slot, generation, chunk, exhausted);
                                    });
    if (!claim) return false;
    if (chunk.units.empty()) chunk.units = all_units;
    chunk.dispatch = claim->dispatch;
    chunk.part = claim->part;
    chunk.next = claim->first;
    chunk.end = claim->end;
    worker.chunks[static_cast<size_t>(claim->priority)] = chunk;
    return true;
  }

  // Counts what has ended of a chunk, of which nothing is left to start.
  bool end_chunk(Chunk& chunk) {
    Dispatch* const dispatch = std::exchange(chunk.dispatch, nullptr);
    // If all were preempted, the dispatch may have finished elsewhere.
    return chunk.ended != 0 && end(*dispatch, chunk.part, chunk.ended);
  }

  void drop_chunk(Chunk& chunk) {
    Dispatch& dispatch = *chunk.dispatch;
    const uint64_t count = chunk.end - chunk.next;
    if (chunk.masked || chunk.scratch) {
      const std::lock_guard lock(mutex);
      if (chunk.masked) dispatch.share_.masked_waves -= count * dispatch.waves_per_group_;
      if (chunk.scratch) dispatch.scratch_.give_back(*chunk.scratch, dispatch.waves_per_group_);
    }
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
    if (claims.highest(worker.view) > priority && claim(worker, priority + 1))
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
      const std::lock_guard lock(mutex);
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
    if (preempted_groups.load(std::memory_order_relaxed) == 0) return nullptr;
    worker.victim = (worker.victim + 1) % workers.size();
    ResidentPtr resident;
    if (workers[worker.victim]->preempted.size() > worker.preempted.size() + 1)
      resident = workers[worker.victim]->preempted.pop();
    if (resident == nullptr) resident = worker.preempted.pop();
    for (size_t tried = 1; idle && resident == nullptr && tried < workers.size(); ++tried) {
      worker.victim = (worker.victim + 1) % workers.size();
      Worker& other = *workers[worker.victim];
      // Leaves it alone if its owner is about to continue it.
      if (other.preempted.size() > 1 || other.running.load(std::memory_order_relaxed))
        resident = other.preempted.pop();
    }
    if (resident != nullptr) count_preempted(*resident->dispatch, -1);
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
      worker.due = worker.preempted.size();
    }
    bool finished = false;
    if (chunk != nullptr) {
      chunk->ended += ended ? 1 : 0;
      if (chunk->next == chunk->end) finished = end_chunk(*chunk);
    } else if (ended) {
      finished = end(dispatch, part, 1);
    }
    // All remaining workgroups wait for something else, so give the core to the program's threads.
    if (!ended && worker.yields > 8) sched_yield();
    return finished ? Step::finished_dispatch : Step::ran;
  }

  // Keeps the workgroup for later, unless its dispatch was abandoned; `resident` is empty then.
  void preempt(Worker& worker, ResidentPtr& resident) {
    const Dispatch& dispatch = *resident->dispatch;
    count_preempted(dispatch, 1);
    if (!worker.preempted.push(resident,
                               [&] { return dispatch.abandoned_.load(std::memory_order_acquire); }))
      count_preempted(dispatch, -1);
  }

  void retire(Worker& worker, ResidentPtr resident) {
    if (resident->masked || resident->scratch_slot) {
      const std::lock_guard lock(mutex);
      leave(*resident);
    } else {
      leave(*resident);
    }
    if (worker.spare.size() < kMaxSpare) worker.spare.push_back(std::move(resident));
  }

  // Wakes helpers if what is left of the dispatch, at `spent` instructions a workgroup, takes longer
  // than waking them.
  void wake_for(const Dispatch& dispatch, uint32_t part, uint64_t spent) {
    const uint64_t worth = Claims::left(*dispatch.slot_, part) * spent / kWorthHelp;
    const uint64_t awake = helpers + 1 - sleepers.count();
    if (worth > awake)
      sleepers.wake(static_cast<uint32_t>(std::min<uint64_t>(worth - awake, kWakesAtOnce)));
  }

  void help(Worker& worker) {
    unsigned idle = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      bool ran = false;
      if (has_work(worker)) {
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
      } else if (++idle < kHelperSpins) {
        relax();
      } else {
        sleepers.sleep([&] { return stop.load(std::memory_order_seq_cst); });
        idle = 0;
      }
    }
    for (Chunk& chunk : worker.chunks)
      if (chunk.dispatch != nullptr) drop_chunk(chunk);
  }

  bool has_work(const Worker& worker) const noexcept {
    return claims.highest(worker.view) >= 0 ||
           preempted_groups.load(std::memory_order_relaxed) != 0 || worker.chunk_priority() >= 0;
  }

  bool run_slice() {
    Worker& worker = *workers.front();
    if (!has_work(worker)) return false;
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
    // Several long dispatches of a workgroup each, or workgroups that were preempted.
    if (spent >= kWorthHelp && sleepers.count() != 0 &&
        (claims.highest(worker.view) >= 0 || preempted_groups.load(std::memory_order_relaxed) > 1))
      sleepers.wake(1);
    return ran;
  }

  Device& device;
  const std::function<void()> on_finished;
  const ComputeUnitSet all_units;
  const uint64_t waves_per_unit;
  const uint64_t max_resident_waves;
  WaveSlots wave_slots;

  // In a line of their own: they change when a workgroup is preempted, and idle workers read them.
  alignas(64) std::atomic<uint64_t> preempted_waves{0};
  std::atomic<uint64_t> preempted_groups{0};
  Claims claims;
  Sleepers sleepers;

  // Guards the three members below, and those of Dispatch and QueueShare that name it.
  alignas(64) std::mutex mutex;
  std::vector<ResidentPtr> spare;  // of abandoned dispatches
  uint64_t turns = 0;              // workgroups of all dispatches so far
  std::minstd_rand random;

  alignas(64) std::atomic<bool> stop{false};
  std::atomic<bool> spares_left{false};
  std::atomic<uint32_t> helpers{0};              // threads that could be started
  std::vector<std::unique_ptr<Worker>> workers;  // last, since helpers use all members above
};

Scheduler::Scheduler(Device& device, gfx9::CodeCache& code, gfx9::Target target, uint32_t workers,
                     std::function<void()> on_finished)
    : impl_(std::make_unique<Impl>(device, code, target, workers, std::move(on_finished))) {}
Scheduler::~Scheduler() = default;

bool Scheduler::has_room() const noexcept { return impl_->claims.has_room(); }
void Scheduler::launch_after(Dispatch& dispatch, std::span<Dispatch* const> earlier) {
  impl_->launch_after(dispatch, earlier);
}
bool Scheduler::has_helpers() const noexcept { return impl_->helpers != 0; }
void Scheduler::set_units(QueueShare& share, const ComputeUnitSet& units) {
  impl_->set_units(share, units);
}
void Scheduler::set_priority(QueueShare& share, PipePriority priority) {
  impl_->set_priority(share, priority);
}
void Scheduler::set_suspended(QueueShare& share, bool suspended) {
  impl_->set_suspended(share, suspended);
}
void Scheduler::abandon(Dispatch& dispatch) { impl_->abandon(dispatch, std::nullopt); }
bool Scheduler::run_slice() { return impl_->run_slice(); }
void Scheduler::drop_abandoned() { impl_->drop_abandoned(*impl_->workers.front()); }
bool Scheduler::busy() const noexcept { return impl_->has_work(*impl_->workers.front()); }

}  // namespace uptempo::vgpu
