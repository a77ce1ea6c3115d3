#include "device/fences/checker.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/clock.hpp"
#include "device/fences/shadow.hpp"

namespace uptempo::vgpu::fences {
namespace {

using ViewPtr = std::shared_ptr<const View>;

// What a queue knows at each moment, and what it was told by doorbells.
struct QueueState {
  Checker::QueueKind kind = Checker::QueueKind::compute;
  std::uint32_t ordinal = 0;
  View started;                  // what the packet launched last relied on: the next one may, too
  View completed;                // of all packets that have completed
  std::uint64_t operations = 0;  // of SDMA: tasks so far

  struct Ring {
    std::uint64_t value;
    ViewPtr host;
  };
  std::deque<Ring> rings;
  bool shared = false;  // doorbells have come out of order: several producers
};

}  // namespace

struct Checker::Impl {
  Impl(CheckerOptions the_options, Sink the_sink)
      : options(std::move(the_options)), sink(std::move(the_sink)) {
    queues.emplace_back();  // the host
  }

  bool is_dispatcher(ActorId actor) const {
    return actor != kHost && queues[actor].kind == QueueKind::compute;
  }
  void acquire(View& view, FenceScope scope) {
    if (scope == FenceScope::none) return;
    ++ages.l1;
    if (scope == FenceScope::system) ++ages.l2;
    view.acquire(scope, [this](ActorId actor) { return is_dispatcher(actor); });
  }

  // ---- the host

  // What it may know at that time.
  const ViewPtr& host_at(std::uint64_t host_ns) {
    if (announcements.empty() || announcements.front().host_ns > host_ns) return host;
    View next = *host;
    for (; !announcements.empty() && announcements.front().host_ns <= host_ns; announcements.pop_front())
      next.join(announcements.front().view);
    host = std::make_shared<const View>(std::move(next));
    return host;
  }

  void announce(const View& view) {
    announced.join(view);
    announcements.push_back({host_clock_ns(), view});
  }

  // ---- queues

  // What the host knew when it published the packet (of SDMA: the bytes) at `position`: when it first rang for it. Positions only grow, so
  // doorbells for earlier ones are not asked for again.
  ViewPtr host_behind(QueueState& queue, std::uint64_t position) {
    while (!queue.rings.empty() && queue.rings.front().value < position) queue.rings.pop_front();
    // Of several producers, nobody knows who rang for whom.
    if (queue.shared || queue.rings.empty()) return host_at(host_clock_ns());
    return queue.rings.front().host;
  }

  View begin(ActorId actor, const Packet& packet) {
    QueueState& queue = queues[actor];
    View view = queue.started;
    view.join(*host_behind(queue, packet.index));
    if (packet.barrier) {
      view.join(queue.completed);
      view.ordered.add_below(actor, packet.index);
    }
    return view;
  }

  // What comes after the packet may rely on this, too: `view`, itself and its release.
  View finish_packet(ActorId actor, const Packet& packet, View view) {
    QueueState& queue = queues[actor];
    view.ordered.add({actor, packet.index});
    view.release(packet.release);
    queue.completed.join(view);
    if (packet.signal) complete_signal(*packet.signal, view);
    return view;
  }

  void complete_signal(const SignalValue& signal, const View& view) {
    Signal& state = signals[signal.handle];
    // A value that the device did not leave there: the host uses the signal anew, and who waits for it waits for what comes now.
    if (state.left && *state.left != signal.value) state.view = {};
    state.view.join(view);
    state.left = signal.value - 1;
    announce(view);
  }

  void depend(View& view, const SignalValue& dependency) {
    const auto found = signals.find(dependency.handle);
    if (found != signals.end()) view.join(found->second.view);
    // A value that the device did not leave there came from the host, which passes on what it knows.
    if (found == signals.end() || !found->second.left || *found->second.left != dependency.value)
      view.join(*host_at(host_clock_ns()));
  }

  // ---- findings

  Shadow::Report reporter() {
    return [this](const Violation& violation, Finding::Conflict conflict, const TaskPtr& writer,
                  const TaskPtr& reader, GpuAddress address, std::uint32_t bytes) {
      if (!violation.possible_on_target && !options.specification) return;
      const auto key =
          std::tuple(violation.what, conflict, violation.reason.data(), violation.possible_on_target,
                     writer->id.actor, writer->id.index, reader->id.actor, reader->id.index);
      Finding& finding = collected[key];
      if (finding.bytes == 0) {
        finding = {violation.what,   conflict,       writer,
                   reader,           address,        0,
                   violation.reason, violation.rule, violation.possible_on_target};
      }
      finding.address = std::min(finding.address, address);
      finding.bytes += bytes;
    };
  }

  // Hands on what reporter() has collected, in the order of addresses.
  void deliver() {
    if (collected.empty()) return;
    std::vector<Finding> findings;
    for (auto& [key, finding] : collected) findings.push_back(std::move(finding));
    collected.clear();
    std::sort(findings.begin(), findings.end(),
              [](const Finding& a, const Finding& b) { return a.address < b.address; });
    for (const Finding& finding : findings) {
      switch (finding.what) {
        case Finding::Class::unordered:
          ++counts.unordered;
          break;
        case Finding::Class::stale:
          ++counts.stale;
          break;
        case Finding::Class::unreleased:
          ++counts.unreleased;
          break;
      }
      auto& seen = repetitions[{static_cast<int>(finding.what), finding.reason.data(), finding.writer->name,
                                finding.reader->name}];
      if (seen < kRepetitions) {
        ++seen;
        sink(finding);
      }
    }
  }

  std::optional<MemoryType> type_at(GpuAddress address, const KindOf& kind_of) const {
    const auto kind = kind_of(page_of(address));
    if (!kind) return std::nullopt;
    return memory_type(options.target, *kind);
  }

  // Pages of one memory type, with what a task does to each: visit(page part, type).
  template <typename Visit>
  void for_pages(Range range, const KindOf& kind_of, Visit visit) const {
    while (range.bytes != 0) {
      const auto count = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(range.bytes, kPageBytes - range.address % kPageBytes));
      if (const auto type = type_at(range.address, kind_of)) visit(range.address, count, *type);
      range.address += count;
      range.bytes -= count;
    }
  }

  TaskPtr host_task(TaskId id, ViewPtr view) {
    auto task = std::make_shared<Task>();
    task->id = id;
    task->kind = Task::Kind::host;
    task->name = "host";
    task->view = *view;
    return task;
  }
  // A time of the host at which it does something: its later doorbells carry that.
  TaskId host_event(std::uint64_t host_ns) {
    View next = *host_at(host_ns);
    const TaskId id{kHost, host_events++};
    next.ordered.add(id);
    next.released_agent.add(id);
    next.released_system.add(id);
    host = std::make_shared<const View>(std::move(next));
    return id;
  }

  void unreleased(GpuAddress begin, GpuAddress end, const KindOf& kind_of) {
    const TaskPtr reader = host_task({kHost, host_events}, host_at(host_clock_ns()));
    const Shadow::Report report = reporter();
    shadow.for_each_write(begin, end, [&](const TaskPtr& writer, GpuAddress address, std::uint32_t bytes) {
      // Device-local memory need never be seen by the host.
      const auto kind = kind_of(page_of(address));
      if (!kind || *kind == MemoryKind::device_local || *kind == MemoryKind::device_local_fine) return;
      if (const auto found = judge_announced(*writer, announced, memory_type(options.target, *kind)))
        report(*found, Finding::Conflict::read_after_write, writer, reader, address, bytes);
    });
    deliver();
  }

  const CheckerOptions options;
  const Sink sink;
  mutable std::mutex mutex;
  std::deque<QueueState> queues;  // by actor
  Shadow shadow;
  CacheAges ages;

  struct Signal {
    View view;                         // of what has completed it since the host gave it a value
    std::optional<std::int64_t> left;  // the value that the device gave it last
  };
  std::unordered_map<std::uint64_t, Signal> signals;

  struct Announcement {
    std::uint64_t host_ns;
    View view;
  };
  std::deque<Announcement> announcements;  // that the host has not been taken to know yet, in order of time
  View announced;                          // all of them
  ViewPtr host = std::make_shared<const View>();
  std::uint64_t host_events = 0;
  std::unordered_map<GpuAddress, TaskId> opened;  // pages to which the host is storing

  using Key = std::tuple<Finding::Class, Finding::Conflict, const char*, bool, ActorId, std::uint64_t,
                         ActorId, std::uint64_t>;
  std::map<Key, Finding> collected;
  std::map<std::tuple<int, const char*, std::string, std::string>, std::uint32_t> repetitions;
  Counts counts;
};

Checker::Checker(CheckerOptions options, Sink sink)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(sink))) {}
Checker::~Checker() = default;

ActorId Checker::add_queue(QueueKind kind, std::uint32_t ordinal) {
  const std::lock_guard lock(impl_->mutex);
  QueueState& queue = impl_->queues.emplace_back();
  queue.kind = kind;
  queue.ordinal = ordinal;
  return static_cast<ActorId>(impl_->queues.size() - 1);
}

void Checker::doorbell(ActorId actor, std::uint64_t value, std::uint64_t host_ns) {
  const std::lock_guard lock(impl_->mutex);
  QueueState& queue = impl_->queues[actor];
  if (!queue.rings.empty() && value < queue.rings.back().value) queue.shared = true;
  queue.rings.push_back({value, impl_->host_at(host_ns)});
}

Running Checker::launch(ActorId actor, const Packet& packet, std::string kernel,
                        AccessSet::Listener* listener) {
  const std::lock_guard lock(impl_->mutex);
  auto task = std::make_shared<Task>();
  task->id = {actor, packet.index};
  task->queue = impl_->queues[actor].ordinal;
  task->position = packet.index;
  task->name = std::move(kernel);
  task->barrier = packet.barrier;
  task->acquire = packet.acquire;
  task->release = packet.release;
  task->view = impl_->begin(actor, packet);
  impl_->acquire(task->view, packet.acquire);
  impl_->queues[actor].started = task->view;
  return {std::move(task), std::make_unique<AccessSet>(listener)};
}

void Checker::end(Running& running, const Packet& packet, const KindOf& kind_of) {
  const std::lock_guard lock(impl_->mutex);
  Impl& impl = *impl_;
  const std::shared_ptr<Task> task = std::move(running.task);
  const std::unique_ptr<AccessSet> accesses = std::move(running.accesses);
  std::vector<TaskPtr> partners;
  accesses->for_each([&](GpuAddress page, const AccessSet::Page& touched) {
    impl.shadow.meet(task, page, touched, [&](const TaskPtr& partner) { partners.push_back(partner); });
  });
  View before = task->view;
  for (const TaskPtr& partner : partners) {
    // Whatever the partner came after, and it itself, is taken to be ordered and visible.
    Clock known = partner->view.ordered;
    known.add(partner->id);
    View& view = task->view;
    for (Clock* clock :
         {&view.ordered, &view.released_agent, &view.released_system, &view.visible, &view.l1_clean})
      clock->join(known);
  }
  const Shadow::Report report = impl.reporter();
  accesses->for_each([&](GpuAddress page, const AccessSet::Page& touched) {
    if (const auto type = impl.type_at(page, kind_of))
      impl.shadow.apply(task, page, touched, *type, impl.ages, report);
  });
  impl.finish_packet(task->id.actor, packet, std::move(before));
  if (accesses->incomplete()) ++impl.counts.unrecorded;
  impl.deliver();
}

void Checker::complete(ActorId actor, const Packet& packet, std::span<const SignalValue> satisfied) {
  const std::lock_guard lock(impl_->mutex);
  View view = impl_->begin(actor, packet);
  for (const SignalValue& dependency : satisfied) impl_->depend(view, dependency);
  impl_->acquire(view, packet.acquire);
  // What comes behind it waited for it.
  impl_->queues[actor].started = impl_->finish_packet(actor, packet, std::move(view));
}

void Checker::wait(ActorId actor, std::uint64_t offset, const SignalValue& satisfied) {
  const std::lock_guard lock(impl_->mutex);
  QueueState& queue = impl_->queues[actor];
  queue.started.join(*impl_->host_behind(queue, offset + 1));
  impl_->depend(queue.started, satisfied);
}

void Checker::copy(ActorId actor, std::uint64_t offset, std::string_view engine, std::optional<Range> source,
                   Range destination, const KindOf& kind_of) {
  const std::lock_guard lock(impl_->mutex);
  Impl& impl = *impl_;
  QueueState& queue = impl.queues[actor];
  queue.started.join(*impl.host_behind(queue, offset + 1));
  auto task = std::make_shared<Task>();
  task->id = {actor, queue.operations++};
  task->kind = Task::Kind::copy;
  task->queue = queue.ordinal;
  task->position = offset;
  task->name = engine;
  task->view = queue.started;
  const Shadow::Report report = impl.reporter();
  if (source)
    impl.for_pages(*source, kind_of, [&](GpuAddress address, std::uint32_t bytes, MemoryType type) {
      impl.shadow.read(task, address, bytes, type, report);
    });
  impl.for_pages(destination, kind_of, [&](GpuAddress address, std::uint32_t bytes, MemoryType type) {
    impl.shadow.write(task, address, bytes, type, impl.ages, report);
  });
  for (Clock* clock : {&queue.started.ordered, &queue.started.released_agent, &queue.started.released_system})
    clock->add(task->id);
  impl.deliver();
}

void Checker::signal(ActorId actor, std::uint64_t offset, const SignalValue& signal) {
  const std::lock_guard lock(impl_->mutex);
  QueueState& queue = impl_->queues[actor];
  queue.started.join(*impl_->host_behind(queue, offset + 1));
  impl_->complete_signal(signal, queue.started);
}

void Checker::host_read(GpuAddress address, std::uint64_t host_ns, const KindOf& kind_of) {
  const std::lock_guard lock(impl_->mutex);
  const auto type = impl_->type_at(address, kind_of);
  if (!type) return;
  const ViewPtr known = impl_->host_at(host_ns);
  const TaskPtr task = impl_->host_task(impl_->host_event(host_ns), known);
  impl_->shadow.read(task, address, 1, *type, impl_->reporter());
  impl_->deliver();
}

void Checker::host_opened(GpuAddress page, std::uint64_t host_ns) {
  const std::lock_guard lock(impl_->mutex);
  impl_->opened[page] = impl_->host_event(host_ns);
}

void Checker::host_wrote(GpuAddress address, std::uint32_t bytes, std::uint64_t closed_ns,
                         const KindOf& kind_of) {
  PageMask mask{};
  for (GpuAddress byte = address % kPageBytes; byte < address % kPageBytes + bytes; ++byte)
    mask[byte / 64] |= std::uint64_t{1} << byte % 64;
  host_wrote(page_of(address), mask, closed_ns, kind_of);
}

void Checker::host_wrote(GpuAddress page, const PageMask& bytes, std::uint64_t closed_ns,
                         const KindOf& kind_of) {
  const std::lock_guard lock(impl_->mutex);
  const auto type = impl_->type_at(page, kind_of);
  const auto opened = impl_->opened.find(page);
  if (!type || opened == impl_->opened.end()) return;
  // It stored between opening and closing: what was launched after the first may rely on it, and it on what had completed by the second.
  const TaskPtr task = impl_->host_task(opened->second, impl_->host_at(closed_ns));
  impl_->shadow.write(task, page, bytes, *type, impl_->ages, impl_->reporter());
  impl_->deliver();
}

void Checker::unknown(GpuAddress address, std::uint32_t bytes) {
  const std::lock_guard lock(impl_->mutex);
  impl_->shadow.forget_bytes(address, bytes);
}

void Checker::forget(GpuAddress begin, GpuAddress end, const KindOf& kind_of) {
  const std::lock_guard lock(impl_->mutex);
  impl_->unreleased(begin, end, kind_of);
  impl_->shadow.forget(begin, end);
  std::erase_if(impl_->opened, [&](const auto& page) { return page.first >= begin && page.first < end; });
}

void Checker::finish(const KindOf& kind_of) {
  const std::lock_guard lock(impl_->mutex);
  impl_->unreleased(0, ~GpuAddress{0}, kind_of);
}

Checker::Counts Checker::counts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->counts;
}

}  // namespace uptempo::vgpu::fences
