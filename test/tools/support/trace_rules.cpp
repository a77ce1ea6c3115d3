#include "test/tools/support/trace_rules.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace uptempo::test {
namespace {

using nlohmann::ordered_json;

// Whole nanoseconds, because fractions of microseconds do not add up.
int64_t ns(const ordered_json& us) { return std::llround(us.get<double>() * 1000); }

struct Slice {
  int64_t begin, end;
};

class Checker {
 public:
  explicit Checker(const ordered_json& trace) {
    if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array()) {
      complain("no object with an array of traceEvents", trace);
      return;
    }
    if (trace.contains("displayTimeUnit") && trace["displayTimeUnit"] != "ns" &&
        trace["displayTimeUnit"] != "ms")
      complain("displayTimeUnit is neither ns nor ms", trace["displayTimeUnit"]);
    for (const ordered_json& event : trace["traceEvents"]) look_at(event);
    check_slices();
    check_pairs(async_, "async");
    check_pairs(flows_, "flow");
    check_flows();
    check_names();
  }

  std::vector<std::string> broken;

 private:
  void complain(const std::string& text, const ordered_json& about) {
    broken.push_back(text + ": " + about.dump());
  }

  void look_at(const ordered_json& event) {
    for (const char* field : {"ph", "name"})
      if (!event.contains(field) || !event[field].is_string())
        return complain("no text " + std::string(field), event);
    for (const char* field : {"pid", "tid"})
      if (!event.contains(field) || !event[field].is_number_unsigned())
        return complain("no number " + std::string(field), event);
    const auto ph = event["ph"].get<std::string>();
    if (ph == "M") return look_at_metadata(event);
    if (!event.contains("ts") || !event["ts"].is_number() || event["ts"].get<double>() < 0)
      return complain("no time", event);
    processes_.insert(event["pid"].get<uint64_t>());
    if (ph == "X") {
      if (!event.contains("dur") || !event["dur"].is_number() || event["dur"].get<double>() < 0)
        return complain("no duration", event);
      slices_[thread_of(event)].push_back({ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])});
    } else if (ph == "b" || ph == "e" || ph == "s" || ph == "f") {
      if (!event.contains("cat") || !event["cat"].is_string() || !event.contains("id"))
        return complain("no category and id", event);
      const std::string id = event["cat"].get<std::string>() + '/' + event["id"].dump();
      const bool is_async = ph == "b" || ph == "e";
      // The name is part of a flow's identity, and both ends of an async slice have it.
      auto& [begins, ends] = (is_async ? async_ : flows_)[id];
      (ph == "b" || ph == "s" ? begins : ends).push_back(event);
    } else if (ph == "i") {
      if (!event.contains("s") || (event["s"] != "t" && event["s"] != "p" && event["s"] != "g"))
        complain("an instant without scope", event);
    } else if (ph == "C") {
      if (!event.contains("args") || !event["args"].is_object() || event["args"].empty())
        return complain("a counter without series", event);
      for (const auto& [series, value] : event["args"].items())
        if (!value.is_number()) complain("a counter's value is no number", event);
    } else {
      complain("a phase that --trace does not use", event);
    }
  }

  void look_at_metadata(const ordered_json& event) {
    const auto name = event["name"].get<std::string>();
    if (name != "process_name" && name != "thread_name")
      return complain("metadata of another kind", event);
    if (!event.contains("args") || !event["args"].contains("name") ||
        !event["args"]["name"].is_string())
      return complain("metadata without a name", event);
    const auto pid = event["pid"].get<uint64_t>();
    if (name == "process_name" ? ++named_processes_[pid] > 1
                               : ++named_threads_[thread_of(event)] > 1)
      complain("named twice", event);
  }

  using Thread = std::pair<uint64_t, uint64_t>;
  static Thread thread_of(const ordered_json& event) {
    return {event["pid"].get<uint64_t>(), event["tid"].get<uint64_t>()};
  }

  void check_slices() {
    for (auto& [thread, slices] : slices_) {
      // The longer of two slices that begin together is the outer one.
      std::ranges::sort(slices, {},
                        [](const Slice& slice) { return std::pair(slice.begin, -slice.end); });
      std::vector<int64_t> ends;
      for (const Slice& slice : slices) {
        while (!ends.empty() && ends.back() <= slice.begin) ends.pop_back();
        if (!ends.empty() && slice.end > ends.back())
          complain("slices of a thread overlap without nesting", thread.second);
        ends.push_back(slice.end);
      }
    }
  }

  using Pairs =
      std::map<std::string, std::pair<std::vector<ordered_json>, std::vector<ordered_json>>>;

  void check_pairs(const Pairs& pairs, const std::string& what) {
    for (const auto& [id, pair] : pairs) {
      const auto& [begins, ends] = pair;
      if (begins.size() != 1 || ends.size() != 1) {
        complain(what + " events are no pair", id);
        continue;
      }
      if (begins[0]["name"] != ends[0]["name"]) complain(what + " events of two names", id);
      if (ns(begins[0]["ts"]) > ns(ends[0]["ts"])) complain(what + " ends before it begins", id);
      if (what == "async" && begins[0]["pid"] != ends[0]["pid"])
        complain("async events of two processes", id);
    }
  }

  void check_flows() {
    for (const auto& [id, pair] : flows_) {
      for (const std::vector<ordered_json>& side : {pair.first, pair.second})
        for (const ordered_json& event : side) {
          const int64_t at = ns(event["ts"]);
          const auto slices = slices_.find(thread_of(event));
          if (slices == slices_.end() ||
              std::ranges::none_of(slices->second, [&](const Slice& slice) {
                return slice.begin <= at && (at < slice.end || slice.begin == slice.end);
              }))
            complain("a flow lies in no slice", event);
          if (event["ph"] == "f" && (!event.contains("bp") || event["bp"] != "e"))
            complain("a flow binds to the next slice", event);
        }
    }
  }

  void check_names() {
    for (const uint64_t process : processes_)
      if (!named_processes_.contains(process)) complain("a process without name", process);
    std::map<uint64_t, uint64_t> process_of;
    for (const auto& [thread, slices] : slices_) {
      if (!named_threads_.contains(thread)) complain("a thread without name", thread.second);
      if (process_of.emplace(thread.second, thread.first).first->second != thread.first)
        complain("a thread of two processes", thread.second);
    }
  }

  std::map<Thread, std::vector<Slice>> slices_;
  Pairs async_, flows_;
  std::set<uint64_t> processes_;
  std::map<uint64_t, int> named_processes_;
  std::map<Thread, int> named_threads_;
};

}  // namespace

std::vector<std::string> broken_trace_rules(const ordered_json& trace) {
  return Checker(trace).broken;
}

}  // namespace uptempo::test
