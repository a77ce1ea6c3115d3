#include "device/fences/judge.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "device/description.hpp"
#include "device/fences/host_meetings.hpp"
#include "device/fences/shadow.hpp"

namespace uptempo::vgpu::fences {
namespace {

using ViewPtr = std::shared_ptr<const View>;

// The bytes of a signal's value in its line (amd_signal_t).
constexpr uint64_t kSignalValueBits = line_bits(kSignalValueOffset, sizeof(int64_t));

// The view of a queue at each moment, and what its doorbells carried.
struct QueueState {
  QueueKind kind = QueueKind::compute;
  uint32_t ordinal = 0;
  uint32_t agent = 0;
  View started;             // what the last launched packet could rely on; the next one can, too
  View completed;           // from all completed packets
  uint64_t operations = 0;  // SDMA: number of tasks so far

  struct Ring {
    uint64_t value;
    ViewPtr host;
  };
  std::deque<Ring> rings;
  bool shared = false;  // several producers: doorbells arrived out of order
  std::unordered_map<uint64_t, std::shared_ptr<Task>> running;  // by packet index
};

}  // namespace

struct Judge::Impl {
  using Pages = std::vector<TouchedPage>;
  // Signals with more completions before the host looks keep the oldest together.
  static constexpr size_t kMostUnseen = 64;

  Impl(JudgeOptions the_options, Sink the_sink)
      : targets(std::move(the_options.other_targets)),
        specification(the_options.specification),
        waits(the_options.waits),
        peer_writes_probe(the_options.peer_writes_probe),
        sink(std::move(the_sink)) {
    targets.insert(targets.begin(), std::move(the_options.target));
    ages.resize(targets.size());
    for (const std::string& target : targets)
      several_l2s.push_back(find_device_description(target)->xcds > 1);
    queues.emplace_back();  // the host
  }

  struct Announcement {
    uint64_t host_ns;
    View view;
  };
  using Announcements = std::deque<Announcement>;

  struct Signal {
    View view;                    // from tasks that completed it since the host last set it
    std::optional<int64_t> left;  // the last value stored by the device; empty: none, or a kernel's
    Announcements unseen;         // completions that the host has not looked at, in order of time
  };

  // The agent of a compute queue; nothing for other actors.
  std::optional<uint32_t> agent_of(ActorId actor) const {
    if (actor == kHost || queues[actor].kind != QueueKind::compute) return std::nullopt;
    return queues[actor].agent;
  }
  void acquire(View& view, FenceScope scope, uint32_t agent) {
    if (scope == FenceScope::none) return;
    ++ages[agent].l1;
    if (scope == FenceScope::system) ++ages[agent].l2;
    view.acquire(scope, agent, [this](ActorId actor) { return agent_of(actor); });
  }

  // ---- the host

  // Returns what the host may know at that time.
  const ViewPtr& host_at(uint64_t host_ns) {
    if (announcements.empty() || announcements.front().host_ns > host_ns) return host;
    View next = *host;
    for (; !announcements.empty() && announcements.front().host_ns <= host_ns;
         announcements.pop_front())
      next.join(announcements.front().view);
    host = std::make_shared<const View>(std::move(next));
    return host;
  }

  void announce(Signal& signal, const View& view) {
    announced.join(view);
    if (!waits) return tell(now_ns, view);
    signal.unseen.push_back({now_ns, view});
    if (signal.unseen.size() <= kMostUnseen) return;
    signal.unseen[1] = {signal.unseen[0].host_ns, signal.unseen[1].view};
    signal.unseen[1].view.join(signal.unseen[0].view);
    signal.unseen.pop_front();
  }

  // From that time on the host knows all of `view`.
  void tell(uint64_t host_ns, const View& view) {
    auto place = announcements.end();
    while (place != announcements.begin() && std::prev(place)->host_ns > host_ns) --place;
    announcements.insert(place, {host_ns, view});
  }

  // The host looked at the signal at that time.
  void look(Signal& signal, uint64_t host_ns) {
    for (; !signal.unseen.empty() && signal.unseen.front().host_ns <= host_ns;
         signal.unseen.pop_front())
      tell(host_ns, signal.unseen.front().view);
  }

  // Dispatches and the host synchronise where the host reads what a dispatch has written atomically
  // or past L1.
  void learn(const Task& reader, const Pages& pages, uint64_t host_ns) {
    for (const TouchedPage& page : pages)
      shadow.meet(reader, page.page, *page.accesses, [&](const TaskPtr& writer) {
        host_meetings.meet(writer->id, reader.thread);
        if (!waits) return;
        View known;
        known.ordered = writer->view.ordered;
        known.ordered.add(writer->id);
        known.released_agent = known.released_system = known.ordered;
        tell(host_ns, known);
      });
  }

  static TaskPtr host_task(TaskId id, ViewPtr view, uint64_t thread, uint64_t site = 0) {
    auto task = std::make_shared<Task>();
    task->id = id;
    task->kind = Task::Kind::host;
    task->name = "host";
    task->thread = thread;
    task->site = site;
    task->view = *view;
    return task;
  }
  // Records an action of the host. Later doorbells carry it.
  TaskId host_event(uint64_t host_ns) {
    View next = *host_at(host_ns);
    const TaskId id{kHost, host_events++};
    next.ordered.add(id);
    next.released_agent.add(id);
    next.released_system.add(id);
    host = std::make_shared<const View>(std::move(next));
    return id;
  }

  // ---- queues

  // Returns what the host knew when it published the packet (SDMA: the bytes) at `position`, that
  // is, when it first rang for it. Drops earlier doorbells, because positions only grow.
  ViewPtr host_behind(QueueState& queue, uint64_t position) {
    while (!queue.rings.empty() && queue.rings.front().value < position) queue.rings.pop_front();
    // With several producers, the producer of a packet is not known.
    if (queue.shared || queue.rings.empty()) return host_at(now_ns);
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

  // Adds the packet and its release to `view`; work after the packet may rely on both.
  void finish_packet(ActorId actor, const Packet& packet, View& view) {
    view.ordered.add({actor, packet.index});
    view.release(packet.release, queues[actor].agent,
                 [this](ActorId one) { return agent_of(one); });
    queues[actor].completed.join(view);
    if (packet.signal) complete_signal(*packet.signal, view);
  }

  Signal& signal_of(uint64_t handle) {
    const auto [found, is_new] = signals.try_emplace(handle);
    if (is_new) signal_pages.insert(page_of(handle));
    return found->second;
  }

  // A kernel may use a signal before a packet does, and signals that no packet uses: an atomic load
  // of what would be its value, in a line of host memory of which the dispatch reads nothing else,
  // or a store of that which is all that the dispatch writes.
  void find_signals(const std::vector<TouchedPage>& pages) {
    uint32_t written_lines = 0;
    std::optional<uint64_t> stored;
    for (const TouchedPage& page : pages) {
      const bool may_hold = is_coherent_host(page.kind);
      for (uint32_t line = 0; line < kLinesPerPage; ++line) {
        const uint64_t handle = page.page + uint64_t{line} * kLineBytes;
        const PageAccesses& accesses = *page.accesses;
        if (accesses.written[line] != 0) ++written_lines;
        if (!may_hold) continue;
        if (accesses.written[line] == kSignalValueBits) stored = handle;
        if (accesses.read[line] == kSignalValueBits &&
            accesses.synchronising[line] == kSignalValueBits)
          signal_of(handle);
      }
    }
    if (stored && written_lines == 1) signal_of(*stored);
  }

  void complete_signal(const SignalValue& signal, const View& view) {
    Signal& state = signal_of(signal.handle);
    // If the device did not leave this value, the host has reset the signal. A waiter then waits
    // for work that completes from now on.
    if (state.left && *state.left != signal.value) state.view = {};
    state.view.join(view);
    state.left = signal.value - 1;
    announce(state, view);
  }

  void depend(View& view, const SignalValue& dependency) {
    const Signal& signal = signal_of(dependency.handle);
    view.join(signal.view);
    // If the device did not leave this value, the host has stored it and passes on what it knows.
    if (!signal.left || *signal.left != dependency.value) view.join(*host_at(now_ns));
  }
  // Running dispatches have stored to signals that the packet waited for.
  void depend(View& view, const std::vector<TaskId>& storers) {
    for (const TaskId& storer : storers)
      view.join(queues[storer.actor].running.at(storer.index)->view);
  }

  // The accesses of a task without those to values of signals that packets have used.
  struct Data {
    std::vector<TouchedPage> pages;
    std::vector<Signal*> read, written;  // signals
    std::vector<std::unique_ptr<PageAccesses>> copies;
  };
  Data without_signals(const std::vector<TouchedPage>& pages) {
    Data data;
    data.pages = pages;
    for (TouchedPage& page : data.pages) {
      if (!signal_pages.contains(page.page)) continue;
      data.copies.push_back(std::make_unique<PageAccesses>(*page.accesses));
      PageAccesses& accesses = *data.copies.back();
      page.accesses = &accesses;
      for (uint32_t line = 0; line < kLinesPerPage; ++line) {
        if (((accesses.read[line] | accesses.written[line]) & kSignalValueBits) == 0) continue;
        const auto found = signals.find(page.page + uint64_t{line} * kLineBytes);
        if (found == signals.end()) continue;
        if ((accesses.read[line] & kSignalValueBits) != 0) data.read.push_back(&found->second);
        if ((accesses.written[line] & kSignalValueBits) != 0)
          data.written.push_back(&found->second);
        for (auto* bytes : {&accesses.read, &accesses.written, &accesses.synchronising})
          (*bytes)[line] &= ~kSignalValueBits;
      }
    }
    return data;
  }

  // ---- findings

  Shadow::Report reporter() {
    return [this](const Violation& violation, Finding::Conflict conflict, const TaskPtr& writer,
                  const TaskPtr& reader, GpuAddress address, uint32_t bytes) {
      if (!violation.possible_on_target && !specification) return;
      if (violation.what == Finding::Class::unordered && host_meetings.have_met(*writer, *reader) &&
          is_coherent_host(kinds[page_of(address)])) {
        excused_bytes += bytes;
        return;
      }
      const auto key = std::tuple(violation.what, conflict, violation.reason.data(),
                                  violation.possible_on_target, writer->id.actor, writer->id.index,
                                  reader->id.actor, reader->id.index);
      Finding& finding = collected[key];
      if (finding.bytes == 0) {
        finding = {violation.what,
                   conflict,
                   writer,
                   reader,
                   address,
                   0,
                   violation.reason,
                   violation.rule,
                   violation.possible_on_target,
                   targets.size() > 1};
      }
      finding.address = std::min(finding.address, address);
      finding.bytes += bytes;
    };
  }

  // Passes on the findings that reporter() has collected, in order of address.
  void deliver() {
    if (collected.empty()) return;
    std::vector<Finding> findings;
    for (auto& [key, finding] : collected) findings.push_back(std::move(finding));
    collected.clear();
    std::stable_sort(findings.begin(), findings.end(),
                     [](const Finding& a, const Finding& b) { return a.address < b.address; });
    for (const Finding& finding : findings) sink(finding);
  }

  Reach reach(const TouchedPage& page, uint32_t agent) {
    kinds[page.page] = page.kind;
    return {memory_type(targets[agent], page.kind), peer_writes_probe && is_peer_local(page.kind)};
  }

  void find_unreleased(GpuAddress begin, GpuAddress end) {
    const TaskPtr reader = host_task({kHost, host_events}, host_at(now_ns), 0);
    const Shadow::Report report = reporter();
    shadow.for_each_write(
        begin, end,
        [&](const TaskPtr& writer, bool synchronising, MemoryType type, GpuAddress address,
            uint32_t bytes) {
          const auto kind = kinds.find(page_of(address));
          // The host need not see device-local memory.
          if (kind == kinds.end() || is_device_local(kind->second) || is_peer_local(kind->second))
            return;
          const auto found = judge_announced(*writer, announced, type);
          if (!found) return;
          // An atomic needs no later fence if L2 does not hide its result from the host.
          if (synchronising && !found->possible_on_target) {
            excused_bytes += bytes;
          } else {
            report(*found, Finding::Conflict::read_after_write, writer, reader, address, bytes);
          }
        });
  }

  // ---- events

  void process(const events::AddQueue& event, const Pages&) {
    QueueState& queue = queues.emplace_back();
    queue.kind = event.kind;
    queue.ordinal = event.ordinal;
    queue.agent = event.agent;
  }

  void process(const events::Doorbell& event, const Pages&) {
    QueueState& queue = queues[event.queue];
    if (!queue.rings.empty() && event.value < queue.rings.back().value) queue.shared = true;
    queue.rings.push_back({event.value, host_at(event.host_ns)});
  }

  void process(const events::Launch& event, const Pages&) {
    QueueState& queue = queues[event.queue];
    auto task = std::make_shared<Task>();
    task->id = {event.queue, event.packet.index};
    task->agent = queue.agent;
    task->several_l2s = several_l2s[queue.agent];
    task->queue = queue.ordinal;
    task->position = event.packet.index;
    task->name = event.kernel;
    task->barrier = event.packet.barrier;
    task->acquire = event.packet.acquire;
    task->release = event.packet.release;
    task->origin = event.origin;
    task->view = begin(event.queue, event.packet);
    acquire(task->view, event.packet.acquire, queue.agent);
    queue.started = task->view;
    queue.running[event.packet.index] = std::move(task);
  }

  void process(const events::End& event, const Pages& pages) {
    const auto running = queues[event.queue].running.extract(event.packet.index);
    const std::shared_ptr<Task>& task = running.mapped();
    task->instructions = event.instructions;
    find_signals(pages);
    const Data data = without_signals(pages);
    host_meetings.ended(task->id, task->view, pages, event.may_meet_any_thread);
    std::optional<View> by_packets = meet(*task, data.pages);
    const Shadow::Report report = reporter();
    for (const TouchedPage& page : data.pages)
      shadow.apply(task, page.page, *page.accesses, reach(page, task->agent), ages, report);
    View& view = by_packets ? *by_packets : task->view;
    for (const Signal* const signal : data.read) {
      view.join(signal->view);
      view.join(*host_at(now_ns));  // the host may have stored the value
    }
    for (Signal* const signal : data.written) {
      // Not replaced: packets may have completed the signal since the kernel stored its value.
      signal->view.join(view);
      signal->left.reset();
    }
    finish_packet(event.queue, event.packet, view);
    if (waits && (event.tells_host || has_met_host || !data.written.empty())) tell(now_ns, view);
    forget_fences(*task);
  }

  // Keeps only the order of a task that has ended, because the rest is not used any more and
  // thousands of tasks are kept.
  static void forget_fences(Task& task) {
    View ended;
    ended.ordered = std::move(task.view.ordered);
    task.view = std::move(ended);
  }

  // Treats the tasks that the dispatch met, and the tasks before those, as ordered and visible.
  // Returns the view without them, or nothing if it met none.
  std::optional<View> meet(Task& task, const Pages& pages) {
    std::vector<TaskPtr> partners;
    has_met_host = false;
    for (const TouchedPage& page : pages)
      shadow.meet(task, page.page, *page.accesses,
                  [&](const TaskPtr& partner) { partners.push_back(partner); });
    if (partners.empty()) return std::nullopt;
    std::sort(partners.begin(), partners.end());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
    View before = task.view;
    task.by_packets = before.ordered;
    for (const TaskPtr& partner : partners) {
      ++meetings;
      has_met_host = has_met_host || partner->kind == Task::Kind::host;
      Clock known = partner->view.ordered;
      known.add(partner->id);
      View& view = task.view;
      Acquired& acquired = view.of(task.agent);
      for (Clock* clock : {&view.ordered, &view.released_agent, &view.released_system,
                           &acquired.visible, &acquired.l1_clean})
        clock->join(known);
    }
    return before;
  }

  void process(const events::Complete& event, const Pages&) {
    View view = begin(event.queue, event.packet);
    for (const SignalValue& dependency : event.satisfied) depend(view, dependency);
    depend(view, event.storers);
    acquire(view, event.packet.acquire, queues[event.queue].agent);
    CacheAges& age = ages[queues[event.queue].agent];
    if (event.caches.invalidate_vector_l1 && event.caches.invalidate_scalar_l1) ++age.l1;
    if (event.caches.invalidate_l2) ++age.l2;
    // Later packets wait for a barrier packet.
    finish_packet(event.queue, event.packet, view);
    queues[event.queue].started = std::move(view);
  }

  void process(const events::Wait& event, const Pages&) {
    QueueState& queue = queues[event.queue];
    queue.started.join(*host_behind(queue, event.offset + 1));
    depend(queue.started, event.satisfied);
    depend(queue.started, event.storers);
  }

  void process(const events::Copy& event, const Pages& pages) {
    QueueState& queue = queues[event.queue];
    queue.started.join(*host_behind(queue, event.offset + 1));
    auto task = std::make_shared<Task>();
    task->id = {event.queue, queue.operations++};
    task->kind = Task::Kind::copy;
    task->agent = queue.agent;
    task->queue = queue.ordinal;
    task->position = event.offset;
    task->name = event.engine;
    task->origin = event.origin;
    task->view = queue.started;
    const Shadow::Report report = reporter();
    for (const TouchedPage& page : pages) shadow.read(task, page.page, page.accesses->read, report);
    for (const TouchedPage& page : pages)
      shadow.write(task, page.page, page.accesses->written, reach(page, queue.agent), ages, report);
    for (Clock* clock :
         {&queue.started.ordered, &queue.started.released_agent, &queue.started.released_system})
      clock->add(task->id);
  }

  // Accesses of the host.
  void read(const TaskPtr& task, const Pages& pages) {
    const Shadow::Report report = reporter();
    for (const TouchedPage& page : pages) shadow.read(task, page.page, page.accesses->read, report);
  }
  void write(const TaskPtr& task, const Pages& pages) {
    const Shadow::Report report = reporter();
    for (const TouchedPage& page : pages)
      shadow.write(task, page.page, page.accesses->written, {}, ages, report);
  }

  void process(const events::Signal& event, const Pages&) {
    QueueState& queue = queues[event.queue];
    queue.started.join(*host_behind(queue, event.offset + 1));
    complete_signal(event.signal, queue.started);
  }

  void process(const events::HostRead& event, const Pages& pages) {
    const ViewPtr known = host_at(event.host_ns);
    const TaskPtr task = host_task(host_event(event.host_ns), known, event.thread, event.site);
    const Data data = without_signals(pages);
    for (const TouchedPage& page : pages) host_meetings.accessed(*task, page.page);
    read(task, data.pages);
    learn(*task, data.pages, event.host_ns);
  }

  void process(const events::HostOpened& event, const Pages& pages) {
    const ViewPtr known = host_at(event.host_ns);
    const TaskPtr task = host_task(host_event(event.host_ns), known, event.thread, event.site);
    for (const TouchedPage& page : pages) {
      opened[page.page] = {task->id, task->thread};
      host_meetings.accessed(*task, page.page);
      if (page.accesses == nullptr) continue;
      const Data data = without_signals({page});
      learn(*task, data.pages, event.host_ns);  // the store may be a part of an atomic operation
      write(task, data.pages);
    }
  }

  void process(const events::DestroyQueue& event, const Pages&) {
    QueueState& queue = queues[event.queue];
    queue.completed.join(queue.started);
    tell(now_ns, queue.completed);
  }

  void process(const events::HostLooked& event, const Pages&) {
    if (event.signal != 0) return look(signal_of(event.signal), event.host_ns);
    for (auto& [handle, signal] : signals) {
      for (const Announcement& unseen : signal.unseen) tell(unseen.host_ns, unseen.view);
      signal.unseen.clear();
    }
  }

  void process(const events::HostWrote& event, const Pages& pages) {
    for (const TouchedPage& page : pages) {
      const auto found = opened.find(page.page);
      // The host stored between opening and closing. Work launched after the opening may rely on
      // the stores, and the stores on work completed by the closing.
      if (found != opened.end())
        write(host_task(found->second.id, host_at(event.closed_ns), found->second.thread),
              without_signals({page}).pages);
    }
  }

  void process(const events::Unknown&, const Pages& pages) {
    for (const TouchedPage& page : pages) shadow.forget_bytes(page.page, page.accesses->written);
  }

  void process(const events::Forget& event, const Pages&) {
    find_unreleased(event.begin, event.end);
    shadow.forget(event.begin, event.end);
    host_meetings.forget(event.begin, event.end);
    const auto is_forgotten = [&](const auto& page) {
      return page.first >= event.begin && page.first < event.end;
    };
    std::erase_if(opened, is_forgotten);
    std::erase_if(kinds, is_forgotten);
  }

  void process(const events::Finish&, const Pages&) { find_unreleased(0, ~GpuAddress{0}); }

  std::vector<std::string> targets;  // by agent
  std::vector<bool> several_l2s;     // by agent
  const bool specification;
  const bool waits;
  const bool peer_writes_probe;
  const Sink sink;
  uint64_t now_ns = 0;            // time of the current event
  std::deque<QueueState> queues;  // by actor
  Shadow shadow;
  AgentAges ages;
  uint64_t meetings = 0, excused_bytes = 0;

  std::unordered_map<uint64_t, Signal> signals;  // that packets have used, by handle
  std::unordered_set<GpuAddress> signal_pages;

  Announcements announcements;  // not yet known to the host, in order of time
  View announced;               // all announcements
  bool has_met_host = false;    // the dispatch of the last call of meet()
  HostMeetings host_meetings;
  ViewPtr host = std::make_shared<const View>();
  uint64_t host_events = 0;
  struct Opened {
    TaskId id;
    uint64_t thread;
  };
  std::unordered_map<GpuAddress, Opened> opened;     // pages to which the host is storing
  std::unordered_map<GpuAddress, MemoryKind> kinds;  // of pages that the device has used

  using Key = std::tuple<Finding::Class, Finding::Conflict, const char*, bool, ActorId, uint64_t,
                         ActorId, uint64_t>;
  std::map<Key, Finding> collected;
};

Judge::Judge(JudgeOptions options, Sink sink)
    : impl_(std::make_unique<Impl>(options, std::move(sink))) {}
Judge::~Judge() = default;

void Judge::process(const Event& event) {
  impl_->now_ns = event.now_ns;
  std::visit([&](const auto& what) { impl_->process(what, event.pages); }, event.what);
  impl_->deliver();
}

Judge::Presumed Judge::presumed() const noexcept {
  return {impl_->meetings, impl_->shadow.presumed_bytes() + impl_->excused_bytes};
}

}  // namespace uptempo::vgpu::fences
