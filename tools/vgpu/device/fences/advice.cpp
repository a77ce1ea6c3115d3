#include "device/fences/advice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "device/fences/cost.hpp"
#include "device/fences/judge.hpp"
#include "device/json_text.hpp"
#include "device/runtime_kernels.hpp"

namespace uptempo::vgpu::fences {
namespace {

// A finding without its reason, because a narrower fence may change which of several reasons is
// given.
struct Verdict {
  Finding::Class what;
  Finding::Conflict conflict;
  bool possible_on_target;
  TaskId writer, reader;
  GpuAddress address;
  uint64_t bytes;
  bool operator==(const Verdict&) const = default;
};

// One packet and its events in the run.
struct Sent {
  size_t launched_at = 0, completed_at = 0;  // events; equal for packets other than dispatches
  bool completed = false;
  PacketCost cost;
};

struct Site {
  uint32_t queue = 0;
  std::string kernel;
  Packet header;
  std::vector<const Sent*> packets;
  bool of_runtime = false;  // the program cannot change them
};

class Adviser {
 public:
  Adviser(Recording run, const DeviceDescription& device, uint64_t budget)
      : run_(std::move(run)), device_(device), budget_(budget) {
    find_sites();
  }

  Advices advise() {
    original_ = judge();
    Advices advices;
    for (const Trial& trial : trials()) narrow(trial, advices);
    std::stable_sort(advices.list.begin(), advices.list.end(),
                     [](const Advice& a, const Advice& b) { return a.saved_ns > b.saved_ns; });
    advices.incomplete = exhausted_;
    return advices;
  }

 private:
  struct Trial {
    const Site* site;
    Advice::Part part;
    FenceScope to;
    double saved_ns;
  };

  void find_sites() {
    const PacketCosts costs = estimate_costs(run_, device_);
    std::vector<uint32_t> ordinals{0};  // by actor
    std::map<std::pair<ActorId, uint64_t>, Sent*> sent;
    std::map<std::tuple<ActorId, std::string, bool, FenceScope, FenceScope>, Site*> sites;
    std::map<ActorId, uint64_t> operations;  // by copy engine, and of the host
    for (size_t at = 0; at < run_.events.size(); ++at) {
      const auto& what = run_.events[at].what;
      const auto add = [&](ActorId queue, const std::string& kernel, const Packet& packet,
                           bool runtimes) {
        Sent* const one = &sent_.emplace_back();
        one->launched_at = one->completed_at = at;
        const auto cost = costs.find({queue, packet.index});
        if (cost != costs.end()) one->cost = cost->second;
        Site*& site = sites[{queue, kernel, packet.barrier, packet.acquire, packet.release}];
        if (site == nullptr) {
          site = &sites_.emplace_back();
          *site = {ordinals[queue], kernel, packet, {}, runtimes};
        }
        site->packets.push_back(one);
        began_[{queue, packet.index}] = at;
        return one;
      };
      if (const auto* queue = std::get_if<events::AddQueue>(&what)) {
        ordinals.push_back(queue->ordinal);
      } else if (const auto* launch = std::get_if<events::Launch>(&what)) {
        sent[{launch->queue, launch->packet.index}] =
            add(launch->queue, launch->kernel, launch->packet,
                launch->origin.runtimes || is_kernel_of_hip(launch->kernel));
      } else if (const auto* end = std::get_if<events::End>(&what)) {
        Sent* const one = sent.at({end->queue, end->packet.index});
        one->completed_at = at;
        one->completed = true;
      } else if (const auto* complete = std::get_if<events::Complete>(&what)) {
        add(complete->queue, "barrier packet", complete->packet, false)->completed = true;
      } else if (const auto* copy = std::get_if<events::Copy>(&what)) {
        began_[{copy->queue, operations[copy->queue]++}] = at;
      } else if (std::holds_alternative<events::HostRead>(what) ||
                 std::holds_alternative<events::HostOpened>(what)) {
        began_[{kHost, operations[kHost]++}] = at;
      }
    }
  }

  // Returns the estimated saving of the narrowing.
  static double saving(const Sent& packet, Advice::Part part, FenceScope from, FenceScope to) {
    switch (part) {
      case Advice::Part::barrier:
        return packet.cost.barrier_ns;
      case Advice::Part::release:
        return (from == FenceScope::system ? packet.cost.release_system_ns : 0) +
               (to == FenceScope::none ? packet.cost.release_agent_ns : 0);
      case Advice::Part::acquire:
        break;
    }
    return (from == FenceScope::system ? packet.cost.acquire_system_ns : 0) +
           (to == FenceScope::none ? packet.cost.acquire_agent_ns : 0);
  }
  static FenceScope scope(const Packet& header, Advice::Part part) {
    return part == Advice::Part::acquire ? header.acquire : header.release;
  }

  std::vector<Trial> trials() const {
    std::vector<Trial> result;
    const auto add = [&](const Site& site, Advice::Part part, FenceScope to) {
      double saved_ns = 0;
      for (const Sent* packet : site.packets)
        saved_ns += saving(*packet, part, scope(site.header, part), to);
      result.push_back({&site, part, to, saved_ns});
    };
    for (const Site& site : sites_) {
      if (site.of_runtime) continue;
      if (site.header.barrier) add(site, Advice::Part::barrier, FenceScope::none);
      for (const Advice::Part part : {Advice::Part::acquire, Advice::Part::release}) {
        if (scope(site.header, part) != FenceScope::none) add(site, part, FenceScope::none);
        if (scope(site.header, part) == FenceScope::system) add(site, part, FenceScope::agent);
      }
    }
    std::stable_sort(result.begin(), result.end(), [](const Trial& a, const Trial& b) {
      return std::tuple(-a.saved_ns, a.part) < std::tuple(-b.saved_ns, b.part);
    });
    return result;
  }

  // Returns the packet in an event. A dispatch has two events, other packets one.
  static Packet& packet_of(Event& event) {
    if (auto* launch = std::get_if<events::Launch>(&event.what)) return launch->packet;
    if (auto* end = std::get_if<events::End>(&event.what)) return end->packet;
    return std::get<events::Complete>(event.what).packet;
  }
  bool is_wider(const Sent& packet, Advice::Part part, FenceScope than) {
    const Packet& header = packet_of(run_.events[packet.completed_at]);
    return part == Advice::Part::barrier ? header.barrier : scope(header, part) > than;
  }
  void set(const Sent& packet, Advice::Part part, bool barrier, FenceScope to) {
    for (const size_t at : {packet.launched_at, packet.completed_at}) {
      Packet& header = packet_of(run_.events[at]);
      switch (part) {
        case Advice::Part::barrier:
          header.barrier = barrier;
          break;
        case Advice::Part::acquire:
          header.acquire = to;
          break;
        case Advice::Part::release:
          header.release = to;
          break;
      }
    }
  }

  // Narrows all packets of the trial. Then widens packets to which a changed verdict points, until
  // no verdict is changed.
  void narrow(const Trial& trial, Advices& advices) {
    const FenceScope from = scope(trial.site->header, trial.part);
    std::vector<const Sent*> narrowed;
    for (const Sent* packet : trial.site->packets)
      // A dispatch without an end event was still running when the program ended.
      if (packet->completed && is_wider(*packet, trial.part, trial.to)) narrowed.push_back(packet);
    for (const Sent* packet : narrowed) set(*packet, trial.part, false, trial.to);
    for (int round = 0; !narrowed.empty(); ++round) {
      const std::vector<Change> changes = round < kRounds ? changed() : std::vector<Change>{};
      if (changes.empty() && round < kRounds && !exhausted_) break;
      const auto is_widened =
          [&, culprits = find_culprits(changes, narrowed, trial.part)](const Sent* packet) {
            if (!culprits.empty() && culprits.count(packet) == 0) return false;
            set(*packet, trial.part, true, from);
            return true;
          };
      std::erase_if(narrowed, is_widened);
    }
    if (narrowed.empty()) return;
    Advice advice{trial.part,         trial.to, trial.site->queue,          trial.site->kernel,
                  trial.site->header, {},       trial.site->packets.size(), 0};
    for (const Sent* packet : narrowed) {
      advice.packets.push_back(packet_of(run_.events[packet->completed_at]).index);
      advice.saved_ns += saving(*packet, trial.part, from, trial.to);
    }
    advices.list.push_back(std::move(advice));
  }

  // A verdict that has appeared or disappeared. Its tasks began with these events.
  struct Change {
    size_t first, second;
  };

  // Returns the packets to widen: for each change its most likely cause. Leaves a change to the
  // next round if a packet that is widened anyway may have caused it. Empty if no cause is known.
  static std::set<const Sent*> find_culprits(const std::vector<Change>& changes,
                                             const std::vector<const Sent*>& narrowed,
                                             Advice::Part part) {
    std::map<size_t, const Sent*> places;  // by the event at which the packet takes effect
    const bool releases = part == Advice::Part::release;
    for (const Sent* packet : narrowed) places[packet->launched_at] = packet;
    std::set<const Sent*> culprits;
    std::set<size_t> widened;
    for (const auto& [first, second] : changes) {
      // A release covers its own packet's writes; an acquire and a barrier bit cover earlier work.
      auto begin = releases ? places.lower_bound(first) : places.upper_bound(first);
      const auto end = places.upper_bound(second);
      const auto known = releases ? widened.lower_bound(first) : widened.upper_bound(first);
      if (known != widened.end() && *known <= second) continue;
      if (begin == end) continue;
      const auto culprit = releases ? begin : std::prev(end);
      culprits.insert(culprit->second);
      widened.insert(culprit->first);
    }
    return culprits;
  }

  struct After {
    size_t verdicts;  // so far
    Judge::Presumed presumed;
  };
  struct Judgement {
    std::vector<Verdict> verdicts;
    std::vector<After> after;  // by event
  };

  Judgement judge() {
    Judgement result;
    Judge judge({std::string(device_.target), true}, [&](const Finding& finding) {
      result.verdicts.push_back({finding.what, finding.conflict, finding.possible_on_target,
                                 finding.writer->id, finding.reader->id, finding.address,
                                 finding.bytes});
    });
    for (const Event& event : run_.events) {
      const uint64_t steps = 1 + event.pages.size();
      exhausted_ = exhausted_ || steps > budget_;
      if (exhausted_) break;
      budget_ -= steps;
      judge.process(event);
      result.after.push_back({result.verdicts.size(), judge.presumed()});
    }
    return result;
  }

  std::vector<Change> changed() {
    const Judgement now = judge();
    std::vector<Change> changes;
    if (exhausted_) return changes;
    After was{0, {}}, is{0, {}};
    for (size_t at = 0; at < run_.events.size(); ++at) {
      const auto part = [](const Judgement& all, const After& before, const After& after) {
        return std::span(all.verdicts).subspan(before.verdicts, after.verdicts - before.verdicts);
      };
      const auto old_ones = part(original_, was, original_.after[at]);
      const auto new_ones = part(now, is, now.after[at]);
      const auto add_missing = [&](std::span<const Verdict> these, std::span<const Verdict> among) {
        for (const Verdict& verdict : these)
          if (std::find(among.begin(), among.end(), verdict) == among.end())
            changes.push_back(change(verdict, at));
      };
      add_missing(new_ones, old_ones);
      // A finding that disappears is a change, too: the two accesses may no longer be
      // distinguished, or no signal may announce the write to the host.
      add_missing(old_ones, new_ones);
      const auto presumed = [](const After& before, const After& after) {
        return std::pair(after.presumed.meetings - before.presumed.meetings,
                         after.presumed.bytes - before.presumed.bytes);
      };
      if (presumed(was, original_.after[at]) != presumed(is, now.after[at]))
        changes.push_back({0, began(at)});
      was = original_.after[at];
      is = now.after[at];
    }
    return changes;
  }

  // Returns the events with which the two tasks began, in order. Host and finish events are judged
  // at once.
  Change change(const Verdict& verdict, size_t at) const {
    const auto place = [&](const TaskId& task) {
      const auto found = began_.find({task.actor, task.index});
      return found == began_.end() ? at : std::min(found->second, at);
    };
    const size_t writer = place(verdict.writer), reader = place(verdict.reader);
    return {std::min(writer, reader), std::max(writer, reader)};
  }
  // Returns the launch of the packet that the event ends; otherwise the event itself.
  size_t began(size_t at) const {
    const auto* end = std::get_if<events::End>(&run_.events[at].what);
    return end == nullptr ? at : began_.at({end->queue, end->packet.index});
  }

  static constexpr int kRounds = 64;

  Recording run_;
  const DeviceDescription& device_;
  uint64_t budget_;
  bool exhausted_ = false;
  std::deque<Sent> sent_;
  std::deque<Site> sites_;

  std::map<std::pair<ActorId, uint64_t>, size_t> began_;  // events with which tasks began
  Judgement original_;                                    // of the original run
};

std::string_view part_name(Advice::Part part) {
  constexpr std::array<std::string_view, 3> names{"barrier", "acquire", "release"};
  return names[static_cast<size_t>(part)];
}

// "the barrier bit", "the acquire of system scope".
std::string described(const Advice& advice) {
  if (advice.part == Advice::Part::barrier) return "the barrier bit";
  const bool acquires = advice.part == Advice::Part::acquire;
  return std::string(acquires ? "the acquire" : "the release") + " of " +
         std::string(scope_name(acquires ? advice.header.acquire : advice.header.release)) +
         " scope";
}

// "3, 4, 7"
std::string listed(const std::vector<uint64_t>& packets, size_t limit) {
  std::string text;
  for (size_t at = 0; at < std::min(packets.size(), limit); ++at)
    text += (at == 0 ? "" : ", ") + std::to_string(packets[at]);
  return text + (packets.size() > limit ? ", ..." : "");
}

}  // namespace

std::string to_json(const Advice& advice, const DeviceDescription& device) {
  const auto name = [](FenceScope scope) { return '"' + std::string(scope_name(scope)) + '"'; };
  const Packet& header = advice.header;
  std::string line =
      R"({"advice":")" + std::string(part_name(advice.part)) + R"(","queue":)" +
      std::to_string(advice.queue) + R"(,"kernel":)" + json_quoted(advice.kernel) +
      R"(,"header":{"barrier":)" + (header.barrier ? "true" : "false") + R"(,"acquire":)" +
      name(header.acquire) + R"(,"release":)" + name(header.release) + R"(},"to":)" +
      (advice.part == Advice::Part::barrier ? R"("clear")" : name(advice.to)) + R"(,"packets":[)";
  for (size_t at = 0; at < std::min(advice.packets.size(), kListedPackets); ++at)
    line.append(at == 0 ? "" : ",").append(std::to_string(advice.packets[at]));
  return line + R"(],"count":)" + std::to_string(advice.packets.size()) + R"(,"of":)" +
         std::to_string(advice.of) + R"(,"saved_ns":)" +
         std::to_string(std::llround(advice.saved_ns)) + R"(,"basis":"estimate","device":)" +
         json_quoted(device.target) + '}';
}

std::string to_sentence(const Advice& advice, const DeviceDescription& device) {
  const std::string to = advice.part == Advice::Part::barrier
                             ? "could be clear"
                             : "could be " + std::string(scope_name(advice.to));
  const std::string lost = advice.part == Advice::Part::barrier ? " ns of overlap on " : " ns on ";
  return "advice: " + described(advice) + " of " + advice.kernel + " (queue " +
         std::to_string(advice.queue) + ", packets " + listed(advice.packets, 8) + ": " +
         std::to_string(advice.packets.size()) + " of " + std::to_string(advice.of) + ") " + to +
         " without changing a verdict of this run; it costs an estimated " +
         std::to_string(std::llround(advice.saved_ns)) + lost + std::string(device.marketing_name);
}

Advices advise(Recording run, const DeviceDescription& device, uint64_t budget) {
  return Adviser(std::move(run), device, budget).advise();
}

}  // namespace uptempo::vgpu::fences
