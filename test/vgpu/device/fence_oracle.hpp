// What the HSA specification says of a program of packets, copies and host accesses, by brute force.
//
// Everything that happens is a node of a graph, with an edge from each node that it is certain to come after; "happens before" is reachability.
// A dispatch has three nodes (its launch with the acquire, the end of its stores, its release), a barrier packet two (acquire, release;
// HSA System Architecture 1.2, 2.9), everything else one. A fence is looked for on all paths, in plain loops. Shares no idea of
// representation with the checker that it judges, and is meant for programs of some dozens of nodes.
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
  using Node = std::size_t;
  using Nodes = std::vector<Node>;
  enum class Width { none, agent, system };
  enum class Agent { dispatch, copy, host };

  // class, conflict, writer, reader (of unreleased data: nobody)
  using Verdict = std::tuple<std::string, std::string, std::string, std::string>;
  const std::set<Verdict>& verdicts() const { return verdicts_; }

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
  };
  bool read(const std::string& cell, const Task& task) {
    Cell& memory = cells_[cell];
    bool found_one = false;
    if (memory.writer && memory.writer->name != task.name) found_one = judge_read(*memory.writer, task);
    std::erase_if(memory.readers, [&](const Task& other) {
      return other.name == task.name || before(other.end, task.begin);
    });
    memory.readers.push_back(task);
    return found_one;
  }
  void write(const std::string& cell, const Task& task, bool found_reading = false) {
    Cell& memory = cells_[cell];
    // Who reads and overwrites what another wrote is found once.
    if (memory.writer && memory.writer->name != task.name && !found_reading)
      judge_overwrite(*memory.writer, task);
    for (const Task& reader : memory.readers)
      if (reader.name != task.name && !before(reader.end, task.begin) && !perhaps_the_other_way(reader, task))
        found("unordered", "WAR", task, reader);
    memory.writer = task;
    memory.readers.clear();
  }
  // The program ends, or forgets the cell: the host was told of data that it may not be able to see.
  void forget(const std::string& cell) {
    const std::optional<Task>& writer = cells_[cell].writer;
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
  };

  // The host's stores lie somewhere between opening and closing a page: what may have been in order is.
  bool perhaps_the_other_way(const Task& first, const Task& second) const {
    return second.agent == Agent::host && before(second.end, first.begin);
  }
  // A release of system scope after `store` and not after `node`.
  bool released_before_or_at(Node store, Node node) const {
    for (Node release = 0; release < events_.size(); ++release)
      if (events_[release].release == Width::system && before(store, release) &&
          before_or_same(release, node))
        return true;
    return false;
  }

  bool judge_read(const Task& writer, const Task& reader) {
    if (!before(writer.end, reader.begin)) return found("unordered", "RAW", writer, reader);
    if (writer.agent != Agent::dispatch) {
      if (reader.agent != Agent::dispatch) return false;
      for (Node acquire = 0; acquire < events_.size(); ++acquire)
        if (events_[acquire].acquire == Width::system && before(writer.end, acquire) &&
            before_or_same(acquire, reader.begin))
          return false;
    } else if (reader.agent != Agent::dispatch) {
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
  void judge_overwrite(const Task& earlier, const Task& later) {
    if (perhaps_the_other_way(earlier, later)) return;
    if (!before(earlier.end, later.begin)) {
      found("unordered", "WAW", earlier, later);
      return;
    }
    if (earlier.agent != Agent::dispatch || later.agent == Agent::dispatch) return;
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
  std::set<Verdict> verdicts_;
};

}  // namespace uptempo::test
