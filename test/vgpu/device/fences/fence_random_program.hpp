// Programs that choose each step at random, on a device that only does what packets permit. Both
// the checker and the oracle observe them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fence_oracle.hpp"
#include "fence_program.hpp"

namespace uptempo::test {

struct RandomProgramOptions {
  // Half of the dispatches' accesses are atomics or loads that bypass L1.
  bool synchronising = false;
  // Dispatches run one of two kernels. All headers of a queue are equal, with wide fences.
  bool alike = false;
  size_t pages = 1;            // per kind of memory; most accesses touch all of them alike
  Journal* journal = nullptr;  // records the run
  // Changes the header of a packet. The program's steps do not depend on headers.
  std::function<void(ActorId queue, Checker::Packet&)> rewrite = {};
};

class RandomProgram {
 public:
  using Verdict = FenceOracle::Verdict;

  explicit RandomProgram(uint64_t seed, RandomProgramOptions options = {})
      : random_(seed), options_(std::move(options)) {
    for (size_t page = 0; page < options_.pages; ++page)
      oracle_.is_coherent(cell_name(4 * page + 2));
    uint32_t ordinal = 0;
    for (Queue& queue : queues_)
      queue.actor = checker().add_queue(Checker::QueueKind::compute, ++ordinal);
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
          for (const Cell cell : on_pages(pick(4))) host_read(cell);
          break;
        case 15:
          for (const Cell cell : on_pages(pick(4))) host_write(cell);
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
  size_t meetings() const { return oracle_.meetings(); }
  const std::string& text() const { return text_; }
  // In the order in which the checker reported them.
  const std::vector<Finding>& findings() const { return findings_; }
  Judge::Presumed presumed() const { return checker_.presumed(); }
  // Packets of compute queues, launched or not.
  size_t packets() const { return queues_[0].next + queues_[1].next; }

 private:
  using Width = FenceOracle::Width;
  using Agent = FenceOracle::Agent;
  using Node = FenceOracle::Node;
  using Nodes = FenceOracle::Nodes;

  // Each page set has four cells: two neighbouring bytes of coarse-grained memory, one of
  // fine-grained and one of device-local memory.
  using Cell = size_t;
  static GpuAddress address(Cell cell) {
    constexpr GpuAddress kCells[] = {kCoarse + 0x40, kCoarse + 0x41, kFine + 0x100, kLocal + 0x200};
    return kCells[cell % 4] + cell / 4 * kPageBytes;
  }
  static std::string cell_name(Cell cell) { return std::to_string(cell); }
  static constexpr uint32_t kCellBytes = 1;  // the size that a page fault of the host reports
  static constexpr uint64_t kSignals = 3;
  static constexpr size_t kQueues = 2;
  static constexpr Width width(FenceScope scope) { return static_cast<Width>(scope); }

  struct CellAccess {
    bool read = false;  // before its own write, if any
    bool write = false;
    bool synchronising = false;
  };
  struct Dispatch {
    std::string name;
    Checker::Packet packet;
    Running running;
    Node launch;
    std::map<Cell, CellAccess> accesses;
    std::optional<size_t> signal;
  };
  struct Queue {
    ActorId actor = 0;
    uint64_t next = 0, published = 0;
    bool several_producers = false;
    std::optional<Node> last;        // last launch
    Nodes ended;                     // all packets of the queue that have ended
    std::map<uint64_t, Node> rings;  // doorbells of packets that have not launched
    std::vector<Dispatch> running;
  };
  struct Signal {
    int64_t value = 1;
    std::optional<int64_t> left;  // last value stored by the device
    Nodes completed;              // since the host's last store to it
  };

  Checker& checker() { return checker_; }
  size_t pick(size_t below) { return static_cast<size_t>(random_() % below); }
  bool likely() { return pick(8) != 0; }
  FenceScope any_scope() { return static_cast<FenceScope>(pick(3)); }
  // Returns the cell on one page or on all pages.
  std::vector<Cell> on_pages(Cell cell) {
    if (options_.pages > 1 && pick(4) == 0) return {cell + 4 * pick(options_.pages)};
    std::vector<Cell> cells;
    for (size_t page = 0; page < options_.pages; ++page) cells.push_back(cell + 4 * page);
    return cells;
  }
  static uint64_t now() { return uptempo::vgpu::host_clock_ns(); }
  void write_line(const std::string& line) { text_ += line + '\n'; }

  // ---- the device

  // Returns the nodes before a packet, by its position in the queue.
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
    if (options_.alike) {
      packet.barrier = queue.running.empty();
      packet.acquire = packet.release = queue.actor == 1 ? FenceScope::agent : FenceScope::system;
    }
    if (options_.rewrite) options_.rewrite(queue.actor, packet);
    return packet;
  }
  std::string describe(const Queue& queue, const Checker::Packet& packet) {
    constexpr const char* kScopes[] = {"none", "agent", "system"};
    return "q" + std::to_string(queue.actor) + "[" + std::to_string(packet.index) + "]" +
           (packet.barrier ? " barrier" : "") + " acquire " +
           kScopes[static_cast<int>(packet.acquire)] + " release " +
           kScopes[static_cast<int>(packet.release)];
  }

  void launch(Queue& queue) {
    if (queue.running.size() == 3) return;
    Dispatch dispatch;
    dispatch.packet = packet(queue);
    dispatch.name = "k" + std::to_string(queue.actor) + "." + std::to_string(dispatch.packet.index);
    dispatch.launch = oracle_.add(order(queue, dispatch.packet), width(dispatch.packet.acquire));
    queue.last = dispatch.launch;
    const std::string kernel =
        options_.alike ? "k" + std::to_string(dispatch.packet.index % 2) : dispatch.name;
    dispatch.running = checker().launch(queue.actor, dispatch.packet, kernel);
    write_line("launch " + describe(queue, dispatch.packet));
    for (size_t count = 1 + pick(2); count != 0; --count) {
      const std::vector<Cell> cells = on_pages(pick(4));
      const bool write = pick(2) != 0, synchronising = options_.synchronising && pick(2) != 0;
      for (const Cell cell : cells) touch(dispatch, cell, write, synchronising);
    }
    if (pick(2) != 0) dispatch.signal = pick(kSignals);
    queue.running.push_back(std::move(dispatch));
  }

  // A synchronising write is an atomic, so it also reads.
  void touch(Dispatch& dispatch, Cell cell, bool write, bool synchronising) {
    const Path path = synchronising ? Path::synchronising : Path::vector;
    CellAccess& all = dispatch.accesses[cell];
    if (!write || synchronising) {
      dispatch.running.accesses->add_read(address(cell), kCellBytes, path, 0);
      all.read = all.read || !all.write;
    }
    if (write) dispatch.running.accesses->add_write(address(cell), kCellBytes, path, 0);
    all.write = all.write || write;
    all.synchronising = all.synchronising || synchronising;
    write_line(std::string(synchronising ? write ? "  atomic on " : "  loads past L1 "
                           : write       ? "  writes "
                                         : "  reads ") +
               cell_name(cell));
  }

  void end(Queue& queue) {
    if (queue.running.empty()) return;
    const size_t which = pick(queue.running.size());
    Dispatch dispatch = std::move(queue.running[which]);
    queue.running.erase(queue.running.begin() + static_cast<ptrdiff_t>(which));
    write_line("end " + dispatch.name +
               (dispatch.signal ? " completes s" + std::to_string(*dispatch.signal) : ""));

    const Node stores = oracle_.add({dispatch.launch});
    const Node release = oracle_.add({stores}, Width::none, width(dispatch.packet.release));
    std::vector<FenceOracle::Access> accesses;
    for (const auto& [cell, access] : dispatch.accesses)
      accesses.push_back({cell_name(cell), access.write, access.synchronising});
    const FenceOracle::Task task =
        oracle_.meet({dispatch.name, Agent::dispatch, dispatch.launch, stores}, accesses);
    for (const auto& [cell, access] : dispatch.accesses) {
      const bool found_reading =
          access.read && oracle_.read(cell_name(cell), task, access.synchronising);
      if (access.write) oracle_.write(cell_name(cell), task, found_reading, access.synchronising);
    }
    queue.ended.push_back(release);
    if (dispatch.signal) dispatch.packet.signal = complete(*dispatch.signal, release);
    checker().end(dispatch.running, dispatch.packet, Program::kind_of);
  }

  void barrier_packet(Queue& queue) {
    Checker::Packet packet = this->packet(queue);
    Nodes after = order(queue, packet);
    std::vector<Checker::SignalValue> satisfied;
    write_line("barrier-AND " + describe(queue, packet));
    for (size_t count = pick(6); count != 0; --count) {
      const size_t signal = pick(kSignals);
      if (signals_[signal].value != 0) continue;
      satisfied.push_back(wait_for(signal, after));
    }
    const Node acquire = oracle_.add(after, width(packet.acquire));
    const Node release = oracle_.add({acquire}, Width::none, width(packet.release));
    queue.last = release;
    queue.ended.push_back(release);
    if (pick(2) != 0) {
      const size_t signal = pick(kSignals);
      write_line("  completes s" + std::to_string(signal));
      packet.signal = complete(signal, release);
    }
    checker().complete(queue.actor, packet, satisfied);
  }

  Checker::SignalValue wait_for(size_t which, Nodes& after) {
    const Signal& signal = signals_[which];
    write_line("  waited for s" + std::to_string(which));
    after.insert(after.end(), signal.completed.begin(), signal.completed.end());
    if (signal.left != signal.value) after.push_back(oracle_.host_event());
    return {which + 1, signal.value};
  }
  Checker::SignalValue complete(size_t which, Node node) {
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
    after.push_back(oracle_.host_event());  // published when it executes
    checker().doorbell(sdma_, offset_ + 32, now());
    last_sdma_ = oracle_.add(after);
    return *last_sdma_;
  }
  uint64_t advance() { return std::exchange(offset_, offset_ + 32); }

  void sdma_wait() {
    const size_t signal = pick(kSignals);
    if (signals_[signal].value != 0) return;
    write_line("sdma");
    Nodes after;
    const Checker::SignalValue value = wait_for(signal, after);
    sdma_node(after);
    checker().wait(sdma_, advance(), value);
  }
  void sdma_copy() {
    const Cell source = on_pages(pick(4)).front(), destination = on_pages(pick(4)).front();
    if (source == destination) return;
    const bool fill = pick(3) == 0;
    const std::string name = "copy" + std::to_string(offset_);
    const Node node = sdma_node({});
    const std::string to = cell_name(destination);
    std::vector<FenceOracle::Access> accesses{{to, true, false}};
    if (!fill) accesses.push_back({cell_name(source), false, false});
    const FenceOracle::Task task = oracle_.meet({name, Agent::copy, node, node}, accesses);
    write_line("sdma " + name + (fill ? "" : " from " + cell_name(source)) + " to " +
               cell_name(destination));
    if (!fill) oracle_.read(cell_name(source), task);
    oracle_.write(to, task);
    checker().copy(sdma_, advance(), name,
                   fill ? std::nullopt : std::optional(Checker::Range{address(source), kCellBytes}),
                   {address(destination), kCellBytes}, Program::kind_of);
  }
  void sdma_signal() {
    const size_t signal = pick(kSignals);
    write_line("sdma completes s" + std::to_string(signal));
    const Checker::SignalValue value = complete(signal, sdma_node({}));
    checker().signal(sdma_, advance(), value);
  }

  // ---- the host

  void ring(Queue& queue) {
    if (!likely() && queue.published > queue.next) {  // a late doorbell of another producer
      queue.several_producers = queue.several_producers || queue.published - 1 > queue.next;
      write_line("late ring q" + std::to_string(queue.actor) + " " + std::to_string(queue.next));
      checker().doorbell(queue.actor, queue.next, now());
      return;
    }
    const Node node = oracle_.host_event();
    queue.published = std::max(queue.published, queue.next);
    const uint64_t until = queue.published + 1 + pick(3);
    for (; queue.published < until; ++queue.published) queue.rings.emplace(queue.published, node);
    write_line("ring q" + std::to_string(queue.actor) + " " + std::to_string(until - 1));
    checker().doorbell(queue.actor, until - 1, now());
  }
  void store_signal(size_t which) {
    Signal& signal = signals_[which];
    // A store of the present value could not be detected.
    const auto value = static_cast<int64_t>(pick(3));
    if (value == signal.value || value == signal.left) return;
    signal.value = value;
    write_line("host stores s" + std::to_string(which) + " = " + std::to_string(value));
  }
  void host_read(Cell cell) {
    const Node node = oracle_.host_event();
    write_line("host reads " + cell_name(cell));
    const std::string name = cell_name(cell);
    oracle_.read(name,
                 oracle_.meet({"host" + std::to_string(host_events_++), Agent::host, node, node},
                              {{name, false, false}}));
    oracle_.host_accesses(name, node, true);
    checker().host_read(address(cell), now(), Program::kind_of);
  }
  void host_write(Cell cell) {
    const GpuAddress page = page_of(address(cell));
    const auto opened = opened_.find(page);
    if (opened == opened_.end()) {
      write_line("host opens " + cell_name(cell));
      const Node node = oracle_.host_event();
      opened_[page] = {"host" + std::to_string(host_events_++), node};
      oracle_.host_accesses(cell_name(cell), node, false);
      checker().host_opened(page, now());
    } else {
      write_line("host wrote " + cell_name(cell));
      const std::string name = cell_name(cell);
      oracle_.write(name, oracle_.meet({opened->second.first, Agent::host, oracle_.host_event(),
                                        opened->second.second},
                                       {{name, true, false}}));
      checker().host_wrote(page_of(address(cell)), page_bytes(address(cell), kCellBytes), now(),
                           Program::kind_of);
      opened_.erase(opened);
    }
  }
  void finish() {
    for (Cell cell = 0; cell < 4 * options_.pages; ++cell)
      if (cell % 4 != 3)
        oracle_.forget(cell_name(cell));  // the host need not see device-local memory
    checker().finish();
  }

  static std::string name(const uptempo::vgpu::fences::Task& task) {
    switch (task.kind) {
      case uptempo::vgpu::fences::Task::Kind::host:
        return "host" + std::to_string(task.id.index);
      case uptempo::vgpu::fences::Task::Kind::copy:
        return task.name;
      case uptempo::vgpu::fences::Task::Kind::dispatch:
        break;
    }
    return "k" + std::to_string(task.id.actor) + "." + std::to_string(task.id.index);
  }
  void add(const Finding& finding) {
    constexpr const char* kConflicts[] = {"RAW", "WAR", "WAW"};
    findings_.push_back(finding);
    found_.insert({std::string(class_name(finding.what)),
                   kConflicts[static_cast<int>(finding.conflict)], name(*finding.writer),
                   finding.what == Finding::Class::unreleased ? "" : name(*finding.reader)});
  }

  std::mt19937_64 random_;
  const RandomProgramOptions options_;
  Checker checker_{
      {"gfx90a", true}, [this](const Finding& finding) { add(finding); }, options_.journal};
  FenceOracle oracle_;
  Queue queues_[kQueues];
  Signal signals_[kSignals];
  ActorId sdma_ = 0;
  uint64_t offset_ = 0;
  std::optional<Node> last_sdma_;
  uint64_t host_events_ = 0;
  std::map<GpuAddress, std::pair<std::string, Node>> opened_;
  std::set<Verdict> found_;
  std::vector<Finding> findings_;
  std::string text_;
};

}  // namespace uptempo::test
