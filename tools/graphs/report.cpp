#include "tools/graphs/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <string_view>

#include <uptempo/aql/whole_file.hpp>
#include "tools/graphs/call_times.hpp"
#include "tools/graphs/lookups.hpp"
#include "tools/graphs/settings.hpp"

namespace uptempo::graphs {
namespace {

constexpr const char* kName = "uptempo-graphs";

std::string counted(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what,
                     count == 1                 ? ""
                     : what.ends_with("launch") ? "es"
                                                : "s");
}

std::string amount(const Tally& tally) {
  return fmt::format("{}, {} and {}", counted(tally.graphs, "graph"),
                     counted(tally.launches, "launch"), counted(tally.nodes, "node"));
}

nlohmann::ordered_json counts(const Tally& tally) {
  return {{"graphs", tally.graphs.load()},
          {"launches", tally.launches.load()},
          {"nodes", tally.nodes.load()}};
}

// Whether this process is the one that the launcher became, and not a child of it.
bool is_launched_process() {
  const char* const process = std::getenv(kProcessVariable);
  return process != nullptr && process == std::to_string(::getpid());
}

void write_json(const std::string& text, bool launched) {
  const char* const given = std::getenv(kJsonVariable);
  if (given == nullptr) return;
  // Children have files of their own.
  const std::string file = launched ? std::string(given) : fmt::format("{}.{}", given, ::getpid());
  const std::string reason = aql::write_whole_file(file, text, aql::InPlace::written);
  // The exit status is the program's.
  if (!reason.empty())
    aql::write_all(STDERR_FILENO, fmt::format("{}: cannot write '{}': {}\n", kName, file, reason));
}

// The linker calls it when the process ends, after the program's own functions of atexit().
__attribute__((destructor)) void write_report() {
  try {
    for (const std::string& each : looked_up()) Report::instance().unreachable(each);
    const std::string text = Report::instance().text();
    const bool launched = is_launched_process();
    if (text.empty() && !launched) return;  // a child without graphs
    aql::write_all(STDERR_FILENO, text.empty()
                                      ? fmt::format("{}: the program launched no HIP graph "
                                                    "that this library saw\n",
                                                    kName)
                                      : text);
    write_json(Report::instance().json(), launched);
  } catch (const std::exception& error) {
    aql::write_all(STDERR_FILENO, fmt::format("{}: no report: {}\n", kName, error.what()));
  }
}

}  // namespace

Report& Report::instance() {
  alignas(Report) static std::byte storage[sizeof(Report)];
  static Report* const report = ::new (storage) Report;
  return *report;
}

Tally& Report::left(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  // Reasons may name nodes, so a long program could have very many.
  constexpr size_t kMost = 100;
  return left_.size() < kMost || left_.contains(reason) ? left_[reason] : left_["other reasons"];
}

void Report::unreachable(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(unreachable_, sentence) == unreachable_.end())
    unreachable_.push_back(sentence);
}

std::string Report::text() {
  const std::lock_guard lock(mutex_);
  std::string text;
  if (taken_.graphs != 0 || !left_.empty())
    text += fmt::format("{}: Uptempo took over {}, with {}.\n", kName, amount(taken_),
                        counted(updates_, "update"));
  for (const auto& [reason, tally] : left_)
    text += fmt::format("{}: HIP kept {}: {}.\n", kName, amount(tally), reason);
  for (const std::string& each : CallTimes::instance().sentences())
    text += fmt::format("{}: {}.\n", kName, each);
  for (const std::string& each : unreachable_) text += fmt::format("{}: {}.\n", kName, each);
  return text;
}

std::string Report::json() {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json left = nlohmann::ordered_json::array();
  for (const auto& [reason, tally] : left_) {
    nlohmann::ordered_json each = counts(tally);
    each["reason"] = reason;
    left.push_back(std::move(each));
  }
  nlohmann::ordered_json taken = counts(taken_);
  taken["updates"] = updates_.load();
  nlohmann::ordered_json document = {
      {"taken", taken}, {"left", left}, {"unreachable", unreachable_}};
  if (CallTimes::wanted()) document["times"] = CallTimes::instance().json();
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace uptempo::graphs
