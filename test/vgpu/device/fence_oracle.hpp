// What the HSA specification says of a program of packets, copies and host accesses, by brute force.
//
// Everything that happens is a node of a graph, with an edge from each node that it is certain to come after; "happens before" is reachability.
// A dispatch has three nodes (its launch with the acquire, the end of its stores, its release), a barrier packet two (acquire, release;
// HSA System Architecture 1.2, 2.9), everything else one. A fence is looked for on all paths, in plain loops. Shares no idea of
// representation with the checker that it judges, and is meant for programs of some dozens of nodes.
//
// In-kernel synchronisation. A task that touches a cell meets who wrote it last and, if it writes, who has read it since (of those whom packets put in
// order, the last), unless one of the two is a copy, neither access synchronises, or packets have put the other one ahead of it. Nothing is said
// about the two; nor, if the later one is a dispatch, about it and what the other one came after. What comes after it does not know of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace uptempo::test {

class FenceOracle {
 public:
  using Node = size_t;
  using Nodes = std::vector<Node>;
  enum class Width { none, agent, system };
  enum class Agent { dispatch, copy, host };

  // class, conflict, writer, reader (of unreleased data: nobody)
  using Verdict = std::tuple<std::string, std::string, std::string, std::string>;
  const std::set<Verdict>& verdicts() const { return verdicts_; }
  // What may be found and need not be, because it depends on what a cache held.
  const std::set<Verdict>& perhaps() const { return perhaps_; }
  size_t meetings() const { return meetings_; }

  // ---- the graph

  Node add(const Nodes& after, Width acquire = Width::none, Width release = Width::none) {
    Event event{std::vector<bool>(events_.size(), false), acquire, release};
    for (const Node node : after) {
      event.past[node] = true;
      for (Node older = 0; older < events_[node].past.size(); ++older)
        if (events_[node].past[older]) event.past[older] = true;
    }
    events_.push_back(std::move(event));
    return events_.size() - 1;
  }
  bool before(Node a, Node b) const { return a < events_[b].past.size() && events_[b].past[a]; }
  bool before_or_same(Node a, Node b) const { return a == b || before(a, b); }

  // ---- the host: one line of events, each of which knows what has been announced by then

  Node host_event() {
    Nodes after = announced_;
    if (host_) after.push_back(*host_);
    host_ = add(after);
    return *host_;
  }
  void announce(Node node) { announced_.push_back(node); }

  // ---- accesses, in the order in which they are known to have been made

  struct Task {
    std::string name;
    Agent agent;
    Node begin;  // before its first access
    Node
        end;  // its accesses are done; of host stores the first moment at which they may have been, so it lies ahead of begin
    struct Met {
      Node end;
      std::optional<Node> begin;  // with all that is before it
    };
    std::vector<Met> met = {};
  };
  struct Access {
    std::string cell;
    bool write = false;
    bool synchronising = false;  // an atomic, or a load that bypasses L1
  };
  // The task with what it met. Ahead of read() and write(), with all accesses to each cell in one.
  Task meet(Task task, const std::vector<Access>& accesses) {
    for (const Access& access : accesses)
      for (const auto& [other, before_it] : touched_[access.cell]) {
        if (task.agent == Agent::copy || other.name == task.name || before(other.end, task.begin))
          continue;
        if (!(access.write || before_it.write) ||
            !(access.synchronising || before_it.synchronising))
          continue;
        if (task.agent == Agent::host) {
          task.met.push_back({other.end, std::nullopt});
        } else {
          task.met.push_back({other.end, other.begin});
          if (other.agent == Agent::dispatch)
            task.met.insert(task.met.end(), other.met.begin(), other.met.end());
        }
        ++meetings_;
      }
    for (const Access& access : accesses) {
      auto& touched = touched_[access.cell];
      std::erase_if(touched, [&](const auto& other) {
        return access.write || (!other.second.write && before(other.first.end, task.begin));
      });
      if (task.agent != Agent::copy) touched.emplace_back(task, access);
    }
    return task;
  }
  // A cell of memory that L2 does not hold.
  void is_coherent(const std::string& cell) { cells_[cell].coherent = true; }

  bool read(const std::string& cell, const Task& task, bool synchronising = false) {
    Cell& memory = cells_[cell];
    bool found_one = false;
    if (memory.writer && memory.writer->name != task.name)
      found_one = judge_read(memory, task, synchronising);
    std::erase_if(memory.readers, [&](const Task& other) {
      return other.name == task.name || before(other.end, task.begin);
    });
    memory.readers.push_back(task);
    return found_one;
  }
  void write(const std::string& cell, const Task& task, bool found_reading = false,
             bool synchronising = false) {
    Cell& memory = cells_[cell];
    // Who reads and overwrites what another wrote is found once.
    if (memory.writer && memory.writer->name != task.name && !found_reading)
      judge_overwrite(memory, task);
    for (const Task& reader : memory.readers)
      if (reader.name != task.name && !before(reader.end, task.begin) && !presumed(reader, task) &&
          !perhaps_the_other_way(reader, task))
        found("unordered", "WAR", task, reader);
    memory.writer = task;
    memory.written_synchronising = synchronising;
    memory.readers.clear();
  }
  // The program ends, or forgets the cell: the host was told of data that it may not be able to see.
  void forget(const std::string& cell) {
    const Cell& memory = cells_[cell];
    const std::optional<Task>& writer = memory.writer;
    if (memory.written_synchronising && memory.coherent) return;
    if (!writer || writer->agent != Agent::dispatch) return;
    bool told = false, released = false;
    for (const Node announcement : announced_) {
      told = told || before_or_same(writer->end, announcement);
      released = released || (released_before_or_at(writer->end, announcement));
    }
    if (told && !released) verdicts_.insert({"unreleased", "RAW", writer->name, ""});
  }

 private:
  struct Event {
    std::vector<bool> past;
    Width acquire, release;
  };
  struct Cell {
    std::optional<Task> writer;
    std::vector<Task> readers;
    bool written_synchronising = false;
    bool coherent = false;
  };

  // Taken to be ordered, and visible, by what happened inside kernels.
  bool presumed(const Task& earlier, const Task& later) const {
    return std::any_of(later.met.begin(), later.met.end(), [&](const auto& met) {
      return earlier.end == met.end || (met.begin && before(earlier.end, *met.begin));
    });
  }

  // The host's stores lie somewhere between opening and closing a page: what may have been in order is.
  bool perhaps_the_other_way(const Task& first, const Task& second) const {
    return second.agent == Agent::host &&
           (before(second.end, first.begin) || presumed(second, first));
  }
  // A release of system scope after `store` and not after `node`.
  bool released_before_or_at(Node store, Node node) const {
    for (Node release = 0; release < events_.size(); ++release)
      if (events_[release].release == Width::system && before(store, release) &&
          before_or_same(release, node))
        return true;
    return false;
  }

  // In order, fences count; but no L1 has what synchronising accesses read, and what they write is in L2, or in memory that L2 does not hold.
  bool judge_read(const Cell& cell, const Task& reader, bool synchronising) {
    const Task& writer = *cell.writer;
    if (presumed(writer, reader)) return false;
    if (!before(writer.end, reader.begin)) return found("unordered", "RAW", writer, reader);
    if (synchronising && (writer.agent == Agent::dispatch || cell.coherent)) return false;
    if (writer.agent != Agent::dispatch) {
      if (reader.agent != Agent::dispatch) return false;
      for (Node acquire = 0; acquire < events_.size(); ++acquire)
        if (events_[acquire].acquire == Width::system && before(writer.end, acquire) &&
            before_or_same(acquire, reader.begin))
          return false;
      if (synchronising) {
        perhaps_.insert({"stale", "RAW", writer.name, reader.name});
        return false;
      }
    } else if (reader.agent != Agent::dispatch) {
      if (cell.written_synchronising && cell.coherent) return false;
      if (released_before_or_at(writer.end, reader.begin)) return false;
    } else {
      for (Node release = 0; release < events_.size(); ++release) {
        if (events_[release].release == Width::none || !before(writer.end, release)) continue;
        for (Node acquire = 0; acquire < events_.size(); ++acquire)
          if (events_[acquire].acquire != Width::none && before(release, acquire) &&
              before_or_same(acquire, reader.begin))
            return false;
      }
    }
    return found("stale", "RAW", writer, reader);
  }
  void judge_overwrite(const Cell& cell, const Task& later) {
    const Task& earlier = *cell.writer;
    if (presumed(earlier, later) || perhaps_the_other_way(earlier, later)) return;
    if (!before(earlier.end, later.begin)) {
      found("unordered", "WAW", earlier, later);
      return;
    }
    if (earlier.agent != Agent::dispatch || later.agent == Agent::dispatch) return;
    if (cell.written_synchronising && cell.coherent) return;
    if (!released_before_or_at(earlier.end, later.begin)) found("stale", "WAW", earlier, later);
  }
  bool found(const char* what, const char* conflict, const Task& writer, const Task& reader) {
    verdicts_.insert({what, conflict, writer.name, reader.name});
    return true;
  }

  std::vector<Event> events_;
  std::optional<Node> host_;
  Nodes announced_;
  std::map<std::string, Cell> cells_;
  std::map<std::string, std::vector<std::pair<Task, Access>>> touched_;
  size_t meetings_ = 0;
  std::set<Verdict> verdicts_, perhaps_;
};

}  // namespace uptempo::test
