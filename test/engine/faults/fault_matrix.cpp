// fault_matrix: what the engine makes of every fault that the virtual GPU can inject, except those
// that change only values or times (untimed, stale, hdp, copy), which no program can report.
//
// Each run is a process of its own under the launcher (subject.hpp). A row passes if the fault was
// hit and named by an Error, or had no effect on results; if everything unfinished failed; if no
// other packet had kernargs or signals of failed work while its queue existed; if other queues and
// agents went on; if tear-down ended and left nothing in the engine and the driver; and if a second
// Runtime worked, or its Error says why it cannot.
//
// ROCr leaves objects in the driver also without a fault. If a run leaves more, the same fault is
// injected into a program without the engine, and the row passes if ROCr leaves as much there.
//
// Requests are failed as SQLite's tests fail allocations: the first, then the second, and so on,
// until a run does not come so far. A request that no run makes is named as such, if a program
// without the engine does not make it either.
//
// Where the process dies or hangs, the same fault is injected into a program without the engine
// (--control). If ROCr dies in the same way there, the row shows that and passes.
#include <dlfcn.h>
#include <fmt/format.h>
#include <hsa/hsa.h>
#include <unistd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/uptempo.hpp>
#include "test/engine/faults/rows.hpp"
#include "test/engine/faults/run.hpp"
#include "test/engine/faults/subject.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/program.hpp"
#include "tools/support/table.hpp"

namespace uptempo::faults {
namespace {

struct Verdict {
  std::string row, fault;
  size_t runs = 0, errors = 0, rocr_ends = 0;
  std::string end{};    // "ok", "SIGABRT (ROCr)", ...
  std::string error{};  // the first Error
  std::string unfinished{}, kept{}, other{}, peer{}, again{};
  // In the driver after the last round, beyond the objects that a run without a fault leaves.
  std::string left{};
  std::vector<std::string> problems{};  // empty: passed
};

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

// The objects that a round leaves behind (subject.hpp).
struct Holdings {
  using Driver = std::array<uint64_t, 5>;
  static constexpr size_t kEvents = 1;

  Holdings(const Outcome& outcome, unsigned round) {
    const std::vector<uint64_t> of_library = outcome.numbers("library", round),
                                of_driver = outcome.numbers("held", round);
    if (of_library.size() != library.size() || of_driver.size() != driver.size()) return;
    known = true;
    std::ranges::copy(of_library, library.begin());
    std::ranges::copy(of_driver, driver.begin());
    const std::vector<uint64_t> spare = outcome.numbers("spare", round);
    if (!spare.empty()) events_in_use = driver[kEvents] - spare.front();
  }

  // By how much each number exceeds the other's.
  Driver beyond(const Holdings& other) const {
    Driver more{};
    for (size_t i = 0; i < more.size(); ++i)
      more[i] = driver[i] > other.driver[i] ? driver[i] - other.driver[i] : 0;
    // Events that ROCr keeps without use tell how many were in use at once.
    const bool are_comparable = events_in_use && other.events_in_use;
    more[kEvents] = are_comparable && *events_in_use > *other.events_in_use
                        ? *events_in_use - *other.events_in_use
                        : 0;
    return more;
  }

  static std::string text(const Driver& more) {
    static constexpr const char* kNames[] = {"queues", "events", "buffers", "VRAM bytes",
                                             "host bytes"};
    std::string text;
    for (size_t i = 0; i < more.size(); ++i)
      if (more[i] != 0)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", more[i], kNames[i]);
    return text.empty() ? "nothing" : text;
  }

  bool known = false;
  std::array<uint64_t, 3> library{};
  Driver driver{};
  std::optional<uint64_t> events_in_use{};
};

class Matrix {
  static constexpr uint64_t kMostControls = 60;

 public:
  // Keeps every `every`th row whose name contains `only`, from row `from` on.
  Matrix(std::string launcher, std::string only, uint32_t every, uint32_t from)
      : launcher_(std::move(launcher)), only_(std::move(only)), every_(every), next_(from) {
    clean_ = run(launcher_, {.program = "--subject"});
    if (clean_.exit_code != 0 || clean_.has("error") || clean_.has("wrong"))
      throw support::Unavailable("the work fails without any fault: " + clean_.end() + " " +
                                 clean_.last("error") + " " + clean_.err);
  }

  void add(const Row& row) {
    if (!is_chosen(row.name)) return;
    Command command{.program = "--subject",
                    .launcher = row.launcher,
                    .inject = with_event_after_set_up(row.inject),
                    .scenario = row.scenario};
    Verdict verdict{.row = row.name, .fault = command.inject, .runs = 1};
    if (row.scenario == "neighbour")
      command.launcher = {"--join", "fault-matrix-" + std::to_string(getpid())};
    const Outcome clean = without_fault(command);
    if (!row.reported) command.patience = std::chrono::seconds(2);
    const Outcome outcome = run(launcher_, command);
    note(outcome, verdict);
    if (outcome.died()) {
      died(outcome, !row.claimed && controls(command, kMostControls).ends.contains(outcome.end()),
           "", verdict);
      if (outcome.has("round") && row.other_continues && verdict.other != "done")
        verdict.problems.push_back("another queue of the agent does not work before that");
    } else {
      judge(row, outcome, verdict);
      judge_holdings(command, clean, outcome, kMostControls, verdict);
    }
    verdicts_.push_back(verdict);
  }

  // Checks the matrix itself: a signal that each round leaks is seen although ROCr, which stays
  // initialised, keeps the events of all signals that were destroyed.
  void add_leak() {
    static constexpr const char* kName = "control: a leaked signal";
    if (!clean_.numbers("spare", 1).empty() || !is_chosen(kName)) return;
    Verdict verdict{.row = kName, .fault = "", .runs = 1};
    const Outcome outcome = run(launcher_, {.program = "--subject", .scenario = "leak"});
    note(outcome, verdict);
    judge_in_general(outcome, verdict);
    const Holdings::Driver more =
        Holdings(outcome, kLastRound).beyond(Holdings(clean_, kLastRound));
    verdict.left = Holdings::text(more);
    if (more != Holdings::Driver{0, kLastRound, 0, 0, 0})
      verdict.problems.push_back(
          fmt::format("{} leaked signals leave {}", kLastRound, verdict.left));
    verdicts_.push_back(verdict);
  }

  // Fails each event of a place in turn, at most `limit` of them.
  void add(const Sweep& sweep, uint64_t limit) {
    for (const std::string& error : sweep.errors) {
      const std::string fault = sweep.place + " errno=" + error;
      if (!is_chosen(fault)) continue;
      Verdict verdict{.row = fault, .fault = fault + " nth=1.."};
      for (uint64_t nth = 1; nth <= limit; ++nth) {
        progress_.show(fmt::format("{} nth={}", fault, nth));
        const std::string rule = fmt::format("{} nth={}", fault, nth);
        const Command command{
            .program = "--subject", .inject = rule, .patience = std::chrono::seconds(20)};
        const Outcome outcome = run(launcher_, command);
        if (!outcome.died() && !outcome.was_injected()) {
          if (nth == 1) never_made(rule, outcome, verdict);
          break;
        }
        ++verdict.runs;
        if (outcome.died()) {
          died(outcome, controls(command, limit).ends.contains(outcome.end()),
               fmt::format("nth={}: ", nth), verdict);
          // Further hangs would show the same, and each takes the whole limit.
          if (outcome.hung) break;
          continue;
        }
        if (outcome.has("error")) {
          ++verdict.errors;
          if (verdict.error.empty()) verdict.error = outcome.last("error");
        }
        const size_t before = verdict.problems.size();
        judge_in_general(outcome, verdict);
        judge_holdings(command, clean_, outcome, limit, verdict);
        if (verdict.problems.size() > before)
          verdict.problems[before] = fmt::format("nth={}: {}", nth, verdict.problems[before]);
      }
      if (verdict.end.empty()) verdict.end = "ok";
      verdicts_.push_back(verdict);
    }
  }

  const std::vector<Verdict>& verdicts() {
    progress_.clear();
    return verdicts_;
  }

 private:
  bool is_chosen(const std::string& row) {
    if (row.find(only_) == std::string::npos) return false;
    if (--next_ != 0) return false;
    next_ = every_;
    progress_.show(row);
    return true;
  }

  // Puts the number of the first event that the work asks for after its set-up, which depends on
  // ROCr.
  std::string with_event_after_set_up(std::string rule) const {
    if (const size_t at = rule.find(kAfterSetUp); at != std::string::npos)
      rule.replace(at, kAfterSetUp.size(), std::to_string(clean_.numbers("events", 1).at(0) + 1));
    return rule;
  }

  static void note(const Outcome& outcome, Verdict& verdict) {
    verdict.end = outcome.end();
    verdict.error = outcome.first("error", false);
    verdict.errors = verdict.error.empty() ? 0 : 1;
    if (verdict.error.empty()) verdict.error = outcome.first("refusal", false);
    verdict.unfinished = outcome.first("unfinished", false);
    verdict.kept = outcome.first("kept", false);
    verdict.other = outcome.first("other", false);
    verdict.peer = outcome.first("peer", false);
    verdict.again = outcome.first("unfinished", true);
    if (const std::string error = outcome.first("error", true);
        !error.empty() && !outcome.has("continues"))
      verdict.again = error;
  }

  static void died(const Outcome& outcome, bool as_rocr, const std::string& where,
                   Verdict& verdict) {
    if (as_rocr) {
      ++verdict.rocr_ends;
      verdict.end = outcome.end() + " (ROCr)";
      return;
    }
    verdict.end = outcome.end();
    verdict.problems.push_back(fmt::format("{}{} at '{}', but not without the engine: {}", where,
                                           outcome.end(), outcome.last("at"), outcome.err));
  }

  // A program without the engine beneath the same fault. It makes other requests, so a rule about
  // the Nth one is tried with each N.
  struct Controls {
    std::set<std::string> ends{};
    std::vector<Holdings::Driver> left{};  // more than without a fault
  };
  const Controls& controls(const Command& command, uint64_t limit) {
    const std::string& rule = command.inject;
    const size_t nth = rule.find("nth=");
    const size_t digits = nth + 4;
    const auto with = [&](uint64_t event) {
      std::string text = rule;
      if (nth != std::string::npos)
        text.replace(digits, text.find_first_not_of("0123456789", digits) - digits,
                     std::to_string(event));
      return text;
    };
    const auto [found, is_new] = controls_.try_emplace(key_of(command) + with(0));
    if (!is_new) return found->second;
    Command control{.program = "--control", .launcher = command.launcher};
    const Outcome clean = run(launcher_, control);
    for (uint64_t event = 1; event <= (nth == std::string::npos ? 1 : limit); ++event) {
      control.inject = with(event);
      const Outcome outcome = run(launcher_, control);
      found->second.ends.insert(outcome.end());
      for (const unsigned round : {1u, 2u})
        if (const Holdings left(outcome, round); left.known)
          found->second.left.push_back(left.beyond(Holdings(clean, round)));
      if (outcome.hung || outcome.err.find("never applied") != std::string::npos) break;
    }
    return found->second;
  }

  static std::string key_of(const Command& command) {
    std::string key;
    for (const std::string& option : command.launcher) key += option + ' ';
    return key;
  }

  // The outcome of the same command without its fault. The scenarios of one machine leave the same.
  Outcome without_fault(Command command) {
    command.inject.clear();
    if (command.scenario != "peer") command.scenario = "work";
    const std::string key = key_of(command) + command.scenario;
    const auto found = clean_runs_.find(key);
    return found != clean_runs_.end()
               ? found->second
               : clean_runs_.emplace(key, run(launcher_, command)).first->second;
  }

  // A sweep whose request the subject does not make.
  void never_made(const std::string& rule, const Outcome& outcome, Verdict& verdict) const {
    const Outcome control = run(launcher_, {.program = "--control", .inject = rule});
    if (outcome.was_matched() || control.was_matched() || control.was_injected()) {
      verdict.end = "never hit";
      verdict.problems.push_back("the fault was never hit");
    } else {
      verdict.end = "ROCr never asks";
    }
  }

  // Each round leaves nothing in the engine, and in the driver no more than without a fault, unless
  // ROCr alone leaves as much beneath the same one.
  void judge_holdings(const Command& command, const Outcome& clean, const Outcome& outcome,
                      uint64_t limit, Verdict& verdict) {
    for (const unsigned round : {1u, 2u}) {
      const Holdings left(outcome, round), usual(clean, round);
      if (!left.known) continue;  // a run that did not end is judged elsewhere
      if (left.library[0] != 0 || left.library[1] != 0)
        verdict.problems.push_back(fmt::format("round {} leaves {} Runtimes and {} signals", round,
                                               left.library[0], left.library[1]));
      // A queue that lost work leaves its timeline behind (engine/DESIGN.md).
      if (left.library[2] > usual.library[2] && !outcome.has("error") && !outcome.has("stuck"))
        verdict.problems.push_back(
            fmt::format("round {} leaves {} timelines without a failure", round, left.library[2]));
      const Holdings::Driver more = left.beyond(usual);
      if (more == Holdings::Driver{}) continue;
      const std::vector<Holdings::Driver>& by_rocr = controls(command, limit).left;
      const bool is_rocr = std::ranges::any_of(by_rocr, [&](const Holdings::Driver& each) {
        return std::ranges::equal(more, each, std::ranges::less_equal{});
      });
      verdict.left = Holdings::text(more) + (is_rocr ? " (ROCr)" : "");
      if (!is_rocr)
        verdict.problems.push_back(
            fmt::format("round {} leaves in the driver: {}, and ROCr alone leaves less", round,
                        Holdings::text(more)));
    }
  }

  void judge_in_general(const Outcome& outcome, Verdict& verdict) const {
    const auto problem = [&](const std::string& text) { verdict.problems.push_back(text); };
    if (outcome.exit_code != 0 || !outcome.has("ended"))
      problem(fmt::format("{} at '{}': {}", outcome.end(), outcome.last("at"), outcome.err));
    if (outcome.has("wrong")) problem("wrong result: " + outcome.last("wrong"));
    if (outcome.has("foreign")) problem("not an Error: " + outcome.last("foreign"));
    if (outcome.has("reused")) problem("reused: " + outcome.last("reused"));
    if (outcome.has("stuck")) problem("never ended: " + outcome.last("stuck"));
    if (outcome.has("error") && outcome.last("error").starts_with("HSA_STATUS_SUCCESS"))
      problem("an Error with the status of success");
    if (outcome.last("child") == "failed") problem("the other process failed");
  }

  void judge(const Row& row, const Outcome& outcome, Verdict& verdict) const {
    const auto problem = [&](const std::string& text) { verdict.problems.push_back(text); };
    Outcome judged = outcome;
    if (!row.reported)
      std::erase_if(judged.facts, [](const auto& fact) { return fact.first == "stuck"; });
    judge_in_general(judged, verdict);
    if (!row.inject.empty() && !outcome.was_injected()) problem("the fault was never hit");
    if (row.must_fail) {
      if (verdict.error.empty()) problem("no Error");
      if (row.work_fails && verdict.unfinished == "done") problem("unfinished work counts as done");
      // One of each for both batches, which were unfinished at the fault.
      if (row.inject.starts_with("packet") && verdict.kept != "2 blocks, 2 signals")
        problem("not all that the failed work used was kept and looked at: " + verdict.kept);
    } else if (is_shortage(row.scenario)) {
      if (verdict.error.empty()) problem("no Error");
      if (verdict.unfinished != "done") problem("the shortage loses work");
      for (const bool again : {false, true})
        if (outcome.first("continues", again) != "done")
          problem("the queue does not continue after the shortage");
    } else if (row.scenario == "fork") {
      if (verdict.error.empty()) problem("the child's use of the engine has no Error");
    } else if (row.reported && !verdict.error.empty()) {
      problem("an Error without need: " + verdict.error);
    }
    if (row.other_continues && row.reported && verdict.other != "done")
      problem("another queue of the agent does not work");
    if ((row.scenario == "fork" || row.scenario == "neighbour") &&
        (outcome.first("child", false) != "done" || outcome.first("child", true) != "done"))
      problem("the other process failed");
    if (row.scenario == "peer" && verdict.peer != "done") problem("another agent does not work");
    // ROCr maps code and host memory to all agents, which the driver refuses for one that is gone.
    if (row.scenario == "peer" && outcome.first("late peer", false) != "done") {
      const std::string error = outcome.first("late error", false);
      const bool names_loss = !row.reported || error.find("loss of a GPU") != std::string::npos;
      if (row.late_peer_works || error.empty() || !names_loss)
        problem("another agent does not work later: " + error);
    }
    if (row.again_works && row.reported && verdict.again != "done")
      problem("a second Runtime does not work: " + verdict.again);
  }

  const std::string launcher_, only_;
  const uint32_t every_;
  uint32_t next_;  // the row after so many rows is the next chosen one
  Outcome clean_;
  std::map<std::string, Outcome> clean_runs_;  // by launcher and scenario
  std::map<std::string, Controls> controls_;   // by launcher and fault
  std::vector<Verdict> verdicts_;
  support::Progress progress_;
};

std::string versions() {
  Dl_info info{};
  std::string library = "?";
  if (dladdr(reinterpret_cast<void*>(&hsa_init), &info) != 0)
    library = std::filesystem::canonical(info.dli_fname).filename().string();
  return "ROCr " + library + ", KFD 1.18 of the virtual GPU, uptempo " + support::version();
}

// The end of a long text is rarely what names it.
std::string cut(const std::string& text, size_t length) {
  return text.size() <= length ? text : text.substr(0, length - 3) + "...";
}

std::string table_of(const std::vector<Verdict>& verdicts) {
  using support::Align;
  support::Table table({{"fault", Align::left},
                        {"runs"},
                        {"Errors"},
                        {"end", Align::left},
                        {"unfinished", Align::left},
                        {"kept for the\nfailed queue", Align::left},
                        {"other\nqueue", Align::left},
                        {"peer", Align::left},
                        {"second\nRuntime", Align::left},
                        {"left in the\ndriver", Align::left},
                        {"verdict", Align::left},
                        {"first Error", Align::left}});
  for (const Verdict& each : verdicts)
    table.add_row({each.row, std::to_string(each.runs), std::to_string(each.errors), each.end,
                   each.unfinished, each.kept, each.other, each.peer, cut(each.again, 20),
                   each.left, each.problems.empty() ? "ok" : "FAILED", cut(each.error, 90)});
  return table.text();
}

nlohmann::json json_of(const Verdict& verdict) {
  return {{"row", verdict.row},
          {"fault", verdict.fault},
          {"runs", verdict.runs},
          {"errors", verdict.errors},
          {"ended_by_rocr", verdict.rocr_ends},
          {"end", verdict.end},
          {"error", verdict.error},
          {"unfinished", verdict.unfinished},
          {"kept", verdict.kept},
          {"left_in_driver", verdict.left},
          {"other_queue", verdict.other},
          {"peer", verdict.peer},
          {"second_runtime", verdict.again},
          {"problems", verdict.problems}};
}

// Kernels that never end, until the process is killed.
int run_neighbour() {
  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  const Program probes{gpu, builtin_kernels::probes()};
  const auto gate = probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  const PinnedBuffer<uint32_t> words{gpu, 64};
  words.data()[0] = 0;
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(gate, Grid{1}, words.data(), UINT32_MAX, words.data() + 32);
  batch.submit();
  if (write(STDOUT_FILENO, "r", 1) != 1) return 1;
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace
}  // namespace uptempo::faults

int main(int argc, char** argv) {
  using namespace uptempo;
  using namespace uptempo::faults;
  support::CommandLine app("fault_matrix",
                           "Shows what the engine makes of every fault of uptempo-vgpu --inject "
                           "that fails or delays work: one row a fault.");
  Plan plan;
  bool subject = false, control = false, neighbour = false, is_short = false;
  std::string json, launcher = UPTEMPO_VGPU_LAUNCHER, only;
  uint32_t every = 1, from = 1;
  uint64_t limit = 400;
  uint64_t patience = 60;
  support::add_json_option(app, json);
  app.flag("--short", is_short, "A few representative rows, in some seconds");
  app.option("--only TEXT", only, "Only rows whose name contains this");
  app.option("--every N", every, "Only every Nth of these rows (1)").range(1u, 100000u);
  app.option("--from N", from, "The first of these rows (1)").range(1u, 100000u);
  app.option("--limit", limit, "Fail at most so many requests of one kind").show_default();
  app.option("--launcher FILE", launcher, "The command uptempo-vgpu");
  app.flag("--subject", subject, "The work beneath a fault").hidden();
  app.flag("--control", control, "The same without the engine").hidden();
  app.flag("--neighbour", neighbour, "Another process of the machine").hidden();
  app.option("--scenario", plan.scenario, "Of the work").hidden();
  app.option("--patience", patience, "Of each wait, in seconds").hidden();
  return support::run_program(app, argc, argv, [&] {
    plan.patience = std::chrono::seconds(patience);
    if (subject) return static_cast<support::ExitCode>(run_subject(plan));
    if (control) return static_cast<support::ExitCode>(run_control(plan));
    if (neighbour) return static_cast<support::ExitCode>(run_neighbour());
    Matrix matrix(launcher, only, every, from);
    matrix.add_leak();
    for (const Row& row : device_rows())
      if (!is_short || row.is_short) matrix.add(row);
    if (is_short) {
      matrix.add({.place = "ioctl=CREATE_QUEUE", .errors = {"ENOMEM"}}, 3);
      matrix.add({.place = "ioctl=CREATE_EVENT", .errors = {"EINTR"}}, 3);
    } else {
      for (const Sweep& sweep : request_sweeps())
        matrix.add(sweep, sweep.timed ? std::min<uint64_t>(limit, 5) : limit);
    }
    const std::vector<Verdict>& verdicts = matrix.verdicts();
    if (verdicts.empty())
      throw support::UsageError("--only, --from: they choose no row of the matrix");
    nlohmann::json rows = nlohmann::json::array();
    std::string report = versions() + "\n" + table_of(verdicts);
    bool failed = false;
    for (const Verdict& verdict : verdicts) {
      rows.push_back(json_of(verdict));
      if (verdict.problems.empty()) continue;
      failed = true;
      report += fmt::format("FAILED {}: {}\n", verdict.row, join(verdict.problems));
    }
    if (!json.empty())
      support::write_output(
          json, nlohmann::json{{"versions", versions()}, {"rows", rows}}.dump(2) + "\n");
    support::print_report(json, report);
    return failed ? support::exit_measured_failure : support::exit_ok;
  });
}
