// Thousands of small random programs, judged by the checker and by an oracle that shares nothing with it.
#include <random>

#include "fence_oracle.hpp"
#include "fence_program.hpp"
#include "support/catch.hpp"

using namespace uptempo::test;

namespace {

using Verdict = FenceOracle::Verdict;
using Width = FenceOracle::Width;
using Agent = FenceOracle::Agent;
using Node = FenceOracle::Node;
using Nodes = FenceOracle::Nodes;

constexpr Width width(FenceScope scope) { return static_cast<Width>(scope); }

// Two neighbouring bytes of coarse-grained memory, one of fine-grained and one of device-local memory.
constexpr GpuAddress kCells[] = {kCoarse + 0x40, kCoarse + 0x41, kFine + 0x100, kLocal + 0x200};
constexpr std::uint32_t kCellBytes = 1;  // as much as a page fault of the host shows
constexpr std::uint64_t kSignals = 3;
constexpr std::size_t kQueues = 2;

// A program that makes itself up as it runs, on a device that does only what packets allow.
class RandomProgram {
 public:
  // `synchronising`: half of the accesses of dispatches are atomics or loads that bypass L1.
  RandomProgram(std::uint64_t seed, bool synchronising) : random_(seed), synchronising_(synchronising) {
    oracle_.is_coherent("2");
    for (Queue& queue : queues_) queue.actor = checker().add_queue(Checker::QueueKind::compute, 1);
    sdma_ = checker().add_queue(Checker::QueueKind::sdma, 3);
    for (Signal& signal : signals_) signal.value = 1;
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      switch (pick(16)) {
        case 0:
        case 1:
        case 2:
        case 3:
          launch(queues_[pick(kQueues)]);
          break;
        case 4:
        case 5:
        case 6:
        case 7:
          end(queues_[pick(kQueues)]);
          break;
        case 8:
          barrier_packet(queues_[pick(kQueues)]);
          break;
        case 9:
          ring(queues_[pick(kQueues)]);
          break;
        case 10:
          sdma_wait();
          break;
        case 11:
          sdma_copy();
          break;
        case 12:
          sdma_signal();
          break;
        case 13:
          store_signal(pick(kSignals));
          break;
        case 14:
          host_read(pick(4));
          break;
        case 15:
          host_write(pick(4));
          break;
      }
    }
    for (Queue& queue : queues_)
      while (!queue.running.empty()) end(queue);
    finish();
  }

  const std::set<Verdict>& found() const { return found_; }
  const std::set<Verdict>& expected() const { return oracle_.verdicts(); }
  const std::set<Verdict>& perhaps() const { return oracle_.perhaps(); }
  std::size_t meetings() const { return oracle_.meetings(); }
  const std::string& text() const { return text_; }

 private:
  struct CellAccess {
    bool read = false;  // ahead of its own write, if any
    bool write = false;
    bool synchronising = false;
  };
  struct Dispatch {
    std::string name;
    Checker::Packet packet;
    Running running;
    Node launch;
    std::map<std::size_t, CellAccess> accesses;
    std::optional<std::size_t> signal;
  };
  struct Queue {
    ActorId actor = 0;
    std::uint64_t next = 0, published = 0;
    bool several_producers = false;
    std::optional<Node> last;             // launched
    Nodes ended;                          // all of the queue's
    std::map<std::uint64_t, Node> rings;  // of the packets that are not launched yet
    std::vector<Dispatch> running;
  };
  struct Signal {
    std::int64_t value = 1;
    std::optional<std::int64_t> left;  // by the device
    Nodes completed;                   // since the host stored to it last
  };

  Checker& checker() { return checker_; }
  std::size_t pick(std::size_t below) { return static_cast<std::size_t>(random_() % below); }
  bool likely() { return pick(8) != 0; }
  FenceScope any_scope() { return static_cast<FenceScope>(pick(3)); }
  static std::uint64_t now() { return uptempo::vgpu::host_clock_ns(); }
  void say(const std::string& line) { text_ += line + '\n'; }

  // ---- the device

  // What comes ahead of a packet by its place in the queue.
  Nodes order(Queue& queue, const Checker::Packet& packet) {
    Nodes after;
    if (queue.last) after.push_back(*queue.last);
    const auto ring = queue.rings.find(packet.index);
    after.push_back(ring == queue.rings.end() || queue.several_producers ? oracle_.host_event()
                                                                         : ring->second);
    if (packet.barrier) after.insert(after.end(), queue.ended.begin(), queue.ended.end());
    return after;
  }
  Checker::Packet packet(Queue& queue) {
    Checker::Packet packet;
    packet.index = queue.next++;
    packet.barrier = queue.running.empty() && pick(2) != 0;
    packet.acquire = any_scope();
    packet.release = any_scope();
    return packet;
  }
  std::string describe(const Queue& queue, const Checker::Packet& packet) {
    constexpr const char* kScopes[] = {"none", "agent", "system"};
    return "q" + std::to_string(queue.actor) + "[" + std::to_string(packet.index) + "]" +
           (packet.barrier ? " barrier" : "") + " acquire " + kScopes[static_cast<int>(packet.acquire)] +
           " release " + kScopes[static_cast<int>(packet.release)];
  }

  void launch(Queue& queue) {
    if (queue.running.size() == 3) return;
    Dispatch dispatch;
    dispatch.packet = packet(queue);
    dispatch.name = "k" + std::to_string(queue.actor) + "." + std::to_string(dispatch.packet.index);
    dispatch.launch = oracle_.add(order(queue, dispatch.packet), width(dispatch.packet.acquire));
    queue.last = dispatch.launch;
    dispatch.running = checker().launch(queue.actor, dispatch.packet, dispatch.name);
    say("launch " + describe(queue, dispatch.packet));
    for (std::size_t count = 1 + pick(2); count != 0; --count) {
      const std::size_t cell = pick(4);
      const bool write = pick(2) != 0, synchronising = synchronising_ && pick(2) != 0;
      touch(dispatch, cell, write, synchronising);
    }
    if (pick(2) != 0) dispatch.signal = pick(kSignals);
    queue.running.push_back(std::move(dispatch));
  }

  // A synchronising write is an atomic: it reads as well.
  void touch(Dispatch& dispatch, std::size_t cell, bool write, bool synchronising) {
    const Path path = synchronising ? Path::synchronising : Path::vector;
    CellAccess& all = dispatch.accesses[cell];
    if (!write || synchronising) {
      dispatch.running.accesses->add_read(kCells[cell], kCellBytes, path, 0);
      all.read = all.read || !all.write;
    }
    if (write) dispatch.running.accesses->add_write(kCells[cell], kCellBytes, path, 0);
    all.write = all.write || write;
    all.synchronising = all.synchronising || synchronising;
    say(std::string(synchronising ? write ? "  atomic on " : "  loads past L1 "
                    : write       ? "  writes "
                                  : "  reads ") +
        std::to_string(cell));
  }

  void end(Queue& queue) {
    if (queue.running.empty()) return;
    const std::size_t which = pick(queue.running.size());
    Dispatch dispatch = std::move(queue.running[which]);
    queue.running.erase(queue.running.begin() + static_cast<std::ptrdiff_t>(which));
    say("end " + dispatch.name + (dispatch.signal ? " completes s" + std::to_string(*dispatch.signal) : ""));

    const Node stores = oracle_.add({dispatch.launch});
    const Node release = oracle_.add({stores}, Width::none, width(dispatch.packet.release));
    std::vector<FenceOracle::Access> accesses;
    for (const auto& [cell, access] : dispatch.accesses)
      accesses.push_back({std::to_string(cell), access.write, access.synchronising});
    const FenceOracle::Task task =
        oracle_.meet({dispatch.name, Agent::dispatch, dispatch.launch, stores}, accesses);
    for (const auto& [cell, access] : dispatch.accesses) {
      const bool found_reading =
          access.read && oracle_.read(std::to_string(cell), task, access.synchronising);
      if (access.write) oracle_.write(std::to_string(cell), task, found_reading, access.synchronising);
    }
    queue.ended.push_back(release);
    if (dispatch.signal) dispatch.packet.signal = complete(*dispatch.signal, release);
    checker().end(dispatch.running, dispatch.packet, Program::kind_of);
  }

  void barrier_packet(Queue& queue) {
    Checker::Packet packet = this->packet(queue);
    Nodes after = order(queue, packet);
    std::vector<Checker::SignalValue> satisfied;
    say("barrier-AND " + describe(queue, packet));
    for (std::size_t count = pick(6); count != 0; --count) {
      const std::size_t signal = pick(kSignals);
      if (signals_[signal].value != 0) continue;
      satisfied.push_back(wait_for(signal, after));
    }
    const Node acquire = oracle_.add(after, width(packet.acquire));
    const Node release = oracle_.add({acquire}, Width::none, width(packet.release));
    queue.last = release;
    queue.ended.push_back(release);
    if (pick(2) != 0) {
      const std::size_t signal = pick(kSignals);
      say("  completes s" + std::to_string(signal));
      packet.signal = complete(signal, release);
    }
    checker().complete(queue.actor, packet, satisfied);
  }

  Checker::SignalValue wait_for(std::size_t which, Nodes& after) {
    const Signal& signal = signals_[which];
    say("  waited for s" + std::to_string(which));
    after.insert(after.end(), signal.completed.begin(), signal.completed.end());
    if (signal.left != signal.value) after.push_back(oracle_.host_event());
    return {which + 1, signal.value};
  }
  Checker::SignalValue complete(std::size_t which, Node node) {
    Signal& signal = signals_[which];
    if (signal.left && *signal.left != signal.value) signal.completed.clear();
    signal.completed.push_back(node);
    oracle_.announce(node);
    const Checker::SignalValue before{which + 1, signal.value};
    signal.left = --signal.value;
    return before;
  }

  // ---- SDMA

  Node sdma_node(Nodes after) {
    if (last_sdma_) after.push_back(*last_sdma_);
    after.push_back(oracle_.host_event());  // published when it is carried out
    checker().doorbell(sdma_, offset_ + 32, now());
    last_sdma_ = oracle_.add(after);
    return *last_sdma_;
  }
  std::uint64_t advance() { return std::exchange(offset_, offset_ + 32); }

  void sdma_wait() {
    const std::size_t signal = pick(kSignals);
    if (signals_[signal].value != 0) return;
    say("sdma");
    Nodes after;
    const Checker::SignalValue value = wait_for(signal, after);
    sdma_node(after);
    checker().wait(sdma_, advance(), value);
  }
  void sdma_copy() {
    const std::size_t source = pick(4), destination = pick(4);
    if (source == destination) return;
    const bool fill = pick(3) == 0;
    const std::string name = "copy" + std::to_string(offset_);
    const Node node = sdma_node({});
    const std::string to = std::to_string(destination);
    std::vector<FenceOracle::Access> accesses{{to, true, false}};
    if (!fill) accesses.push_back({std::to_string(source), false, false});
    const FenceOracle::Task task = oracle_.meet({name, Agent::copy, node, node}, accesses);
    say("sdma " + name + (fill ? "" : " from " + std::to_string(source)) + " to " +
        std::to_string(destination));
    if (!fill) oracle_.read(std::to_string(source), task);
    oracle_.write(to, task);
    checker().copy(sdma_, advance(), name,
                   fill ? std::nullopt : std::optional(Checker::Range{kCells[source], kCellBytes}),
                   {kCells[destination], kCellBytes}, Program::kind_of);
  }
  void sdma_signal() {
    const std::size_t signal = pick(kSignals);
    say("sdma completes s" + std::to_string(signal));
    const Checker::SignalValue value = complete(signal, sdma_node({}));
    checker().signal(sdma_, advance(), value);
  }

  // ---- the host

  void ring(Queue& queue) {
    if (!likely() && queue.published > queue.next) {  // another producer's, late
      queue.several_producers = queue.several_producers || queue.published - 1 > queue.next;
      say("late ring q" + std::to_string(queue.actor) + " " + std::to_string(queue.next));
      checker().doorbell(queue.actor, queue.next, now());
      return;
    }
    const Node node = oracle_.host_event();
    queue.published = std::max(queue.published, queue.next);
    const std::uint64_t until = queue.published + 1 + pick(3);
    for (; queue.published < until; ++queue.published) queue.rings.emplace(queue.published, node);
    say("ring q" + std::to_string(queue.actor) + " " + std::to_string(until - 1));
    checker().doorbell(queue.actor, until - 1, now());
  }
  void store_signal(std::size_t which) {
    Signal& signal = signals_[which];
    // A value that is already there would not be seen to have been stored.
    const auto value = static_cast<std::int64_t>(pick(3));
    if (value == signal.value || value == signal.left) return;
    signal.value = value;
    say("host stores s" + std::to_string(which) + " = " + std::to_string(value));
  }
  void host_read(std::size_t cell) {
    const Node node = oracle_.host_event();
    say("host reads " + std::to_string(cell));
    const std::string name = std::to_string(cell);
    oracle_.read(name, oracle_.meet({"host" + std::to_string(host_events_++), Agent::host, node, node},
                                    {{name, false, false}}));
    checker().host_read(kCells[cell], now(), Program::kind_of);
  }
  void host_write(std::size_t cell) {
    const GpuAddress page = page_of(kCells[cell]);
    const auto opened = opened_.find(page);
    if (opened == opened_.end()) {
      say("host opens " + std::to_string(cell));
      opened_[page] = {"host" + std::to_string(host_events_++), oracle_.host_event()};
      checker().host_opened(page, now());
    } else {
      say("host wrote " + std::to_string(cell));
      const std::string name = std::to_string(cell);
      oracle_.write(
          name, oracle_.meet({opened->second.first, Agent::host, oracle_.host_event(), opened->second.second},
                             {{name, true, false}}));
      checker().host_wrote(page_of(kCells[cell]), page_bytes(kCells[cell], kCellBytes), now(),
                           Program::kind_of);
      opened_.erase(opened);
    }
  }
  void finish() {
    for (const std::size_t cell : {0, 1, 2}) oracle_.forget(std::to_string(cell));
    checker().finish();
  }

  static std::string name(const uptempo::vgpu::fences::Task& task) {
    return task.kind == uptempo::vgpu::fences::Task::Kind::host ? "host" + std::to_string(task.id.index)
                                                                : task.name;
  }
  void add(const Finding& finding) {
    constexpr const char* kConflicts[] = {"RAW", "WAR", "WAW"};
    found_.insert({std::string(class_name(finding.what)), kConflicts[static_cast<int>(finding.conflict)],
                   name(*finding.writer),
                   finding.what == Finding::Class::unreleased ? "" : name(*finding.reader)});
  }

  std::mt19937_64 random_;
  const bool synchronising_;
  Checker checker_{{"gfx90a", true}, [this](const Finding& finding) { add(finding); }};
  FenceOracle oracle_;
  Queue queues_[kQueues];
  Signal signals_[kSignals];
  ActorId sdma_ = 0;
  std::uint64_t offset_ = 0;
  std::optional<Node> last_sdma_;
  std::uint64_t host_events_ = 0;
  std::map<GpuAddress, std::pair<std::string, Node>> opened_;
  std::set<Verdict> found_;
  std::string text_;
};

std::string to_text(const std::set<Verdict>& verdicts) {
  std::string text;
  for (const auto& [what, conflict, writer, reader] : verdicts)
    text += what + ' ' + conflict + ' ' + writer + "->" + reader + '\n';
  return text;
}

// Of 10,000 programs: how many of each kind of verdict there are.
std::map<std::string, std::uint64_t> judge_programs(bool synchronising) {
  std::map<std::string, std::uint64_t> seen;
  for (const int steps : {6, 12, 25, 50}) {
    for (std::uint64_t seed = 0; seed < 2500; ++seed) {
      RandomProgram program(seed * 64 + static_cast<std::uint64_t>(steps), synchronising);
      program.run(steps);
      for (const Verdict& verdict : program.expected()) ++seen[std::get<0>(verdict) + std::get<1>(verdict)];
      if (program.expected().empty()) ++seen["silent"];
      seen["meetings"] += program.meetings();
      std::set<Verdict> found = program.found();
      for (const Verdict& verdict : program.perhaps()) {
        ++seen["perhaps"];
        if (program.expected().count(verdict) == 0) found.erase(verdict);
      }
      if (found == program.expected()) continue;
      INFO("seed " << seed << ", " << steps << " steps\n" << program.text());
      REQUIRE(to_text(found) == to_text(program.expected()));
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("What the checker finds in a random program is what the specification forbids, and all of it") {
  std::map<std::string, std::uint64_t> seen = judge_programs(false);
  // The programs are about something.
  for (const char* kind :
       {"unorderedRAW", "unorderedWAR", "unorderedWAW", "staleRAW", "staleWAW", "unreleasedRAW", "silent"}) {
    CAPTURE(kind, seen[kind]);
    CHECK(seen[kind] > 100);
  }
}

TEST_CASE("The same of programs that synchronise inside their kernels, but for those that meet there") {
  std::map<std::string, std::uint64_t> seen = judge_programs(true);
  for (const char* kind : {"unorderedRAW", "unorderedWAR", "unorderedWAW", "staleRAW", "staleWAW",
                           "unreleasedRAW", "silent", "meetings", "perhaps"}) {
    CAPTURE(kind, seen[kind]);
    CHECK(seen[kind] > 100);
  }
}
