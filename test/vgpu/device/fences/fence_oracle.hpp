// FenceOracle: the findings that the HSA specification requires for a program of packets, copies
// and host accesses, computed by brute force.
//
// Every operation is a node of a graph, with an edge from each node that certainly comes before it.
// "Happens before" is reachability. A dispatch has three nodes (its launch with the acquire, the
// end of its stores, its release), a barrier packet two (acquire and release; HSA System
// Architecture 1.2, 2.9), everything else one. The oracle looks for a fence on all paths, in plain
// loops. It shares no representation with the checker, and is meant for programs of some dozens of
// nodes.
//
// In-kernel synchronisation: a task that touches a cell meets the cell's last writer and, if it
// writes, the readers since then (of readers that packets order, only the last). They do not meet
// if one of the two is a copy, if neither access synchronises, or if packets order the other task
// first. The oracle reports nothing about a pair that met. If the later task is a dispatch, it also
// reports nothing about this dispatch and the tasks before the other one. Later tasks do not
// inherit that order.
//
// Protocols with the host: a dispatch has them with an access to a coherent cell that synchronises,
// if the host has accessed that cell and packets do not order this first, or reads there what the
// dispatch has written. The oracle then reports no missing order of the host and the dispatch in
// coherent cells. The host is one thread, and each coherent cell has a page of its own.
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

  // Class, conflict, writer, reader (empty for unreleased data).
  using Verdict = std::tuple<std::string, std::string, std::string, std::string>;
  const std::set<Verdict>& verdicts() const { return verdicts_; }
  // Findings that are permitted but not required, because they depend on cache contents.
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

  // ---- the host: a sequence of events; each knows everything announced before it

  Node host_event() {
    Nodes after = announced_;
    if (host_) after.push_back(*host_);
    host_ = add(after);
    return *host_;
  }
  void announce(Node node) { announced_.push_back(node); }

  // ---- accesses, in the order in which they are reported

  struct Task {
    std::string name;
    Agent agent;
    Node begin;  // before its first access
    // After its last access. For host stores the first time at which they may have been made, so it
    // is before `begin`.
    Node end;
    struct Met {
      Node end;
      std::optional<Node> begin;  // includes everything before it
    };
    std::vector<Met> met = {};
  };
  struct Access {
    std::string cell;
    bool write = false;
    bool synchronising = false;  // an atomic, or a load that bypasses L1
  };
  // Returns the task with the tasks that it met. Call before read() and write(), with one combined
  // access per cell.
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
      const auto host = host_touched_.find(access.cell);
      if (task.agent == Agent::dispatch && access.synchronising && host != host_touched_.end() &&
          cells_[access.cell].coherent && !before(host->second, task.begin))
        with_host_.insert(task.name);
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
  // The host reads or begins to write the cell. Call after read().
  void host_accesses(const std::string& cell, Node node, bool reads) {
    host_touched_[cell] = node;
    const Cell& memory = cells_[cell];
    if (reads && memory.writer && memory.written_synchronising &&
        memory.writer->agent == Agent::dispatch && !before(memory.writer->end, node))
      with_host_.insert(memory.writer->name);
  }
  // Declares that L2 does not hold the cell's memory.
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
    // A task that both reads and overwrites another's data is reported once.
    if (memory.writer && memory.writer->name != task.name && !found_reading)
      judge_overwrite(memory, task);
    for (const Task& reader : memory.readers)
      if (reader.name != task.name && !before(reader.end, task.begin) && !presumed(reader, task) &&
          !perhaps_the_other_way(reader, task))
        found_unordered("WAR", memory, task, reader);
    memory.writer = task;
    memory.written_synchronising = synchronising;
    memory.readers.clear();
  }
  // Call when the program ends or forgets the cell. Reports announced data that the host may not
  // see.
  void forget(const std::string& cell) {
    const Cell& memory = cells_[cell];
    const std::optional<Task>& writer = memory.writer;
    if (memory.written_synchronising && memory.coherent) return;
    if (!writer || writer->agent != Agent::dispatch) return;
    bool announced = false, released = false;
    for (const Node announcement : announced_) {
      announced = announced || before_or_same(writer->end, announcement);
      released = released || (released_before_or_at(writer->end, announcement));
    }
    if (announced && !released) verdicts_.insert({"unreleased", "RAW", writer->name, ""});
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

  // Returns true if `earlier` is assumed to be ordered and visible by synchronisation inside
  // kernels.
  bool presumed(const Task& earlier, const Task& later) const {
    return std::any_of(later.met.begin(), later.met.end(), [&](const auto& met) {
      return earlier.end == met.end || (met.begin && before(earlier.end, *met.begin));
    });
  }

  // The host stored at some time between opening and closing the page. If some such time gives a
  // correct order, the oracle assumes it.
  bool perhaps_the_other_way(const Task& first, const Task& second) const {
    return second.agent == Agent::host &&
           (before(second.end, first.begin) || presumed(second, first));
  }
  // Returns true if there is a system release after `store` and not after `node`.
  bool released_before_or_at(Node store, Node node) const {
    for (Node release = 0; release < events_.size(); ++release)
      if (events_[release].release == Width::system && before(store, release) &&
          before_or_same(release, node))
        return true;
    return false;
  }

  // Between ordered accesses, fences count. But no L1 holds what synchronising accesses read, and
  // their writes are in L2, or in memory that L2 does not hold.
  bool judge_read(const Cell& cell, const Task& reader, bool synchronising) {
    const Task& writer = *cell.writer;
    if (presumed(writer, reader)) return false;
    if (!before(writer.end, reader.begin)) return found_unordered("RAW", cell, writer, reader);
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
      found_unordered("WAW", cell, earlier, later);
      return;
    }
    if (earlier.agent != Agent::dispatch || later.agent == Agent::dispatch) return;
    if (cell.written_synchronising && cell.coherent) return;
    if (!released_before_or_at(earlier.end, later.begin)) found("stale", "WAW", earlier, later);
  }
  bool found_unordered(const char* conflict, const Cell& cell, const Task& writer,
                       const Task& reader) {
    const auto has_protocol = [&](const Task& host, const Task& dispatch) {
      return host.agent == Agent::host && dispatch.agent == Agent::dispatch &&
             with_host_.count(dispatch.name) != 0;
    };
    if (cell.coherent && (has_protocol(writer, reader) || has_protocol(reader, writer)))
      return true;
    return found("unordered", conflict, writer, reader);
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
  std::map<std::string, Node> host_touched_;
  std::set<std::string> with_host_;  // dispatches
  size_t meetings_ = 0;
  std::set<Verdict> verdicts_, perhaps_;
};

}  // namespace uptempo::test
