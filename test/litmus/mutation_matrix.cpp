// mutation_matrix [options]: makes every single mistake in the fences of programs.hpp and compares
// three judges that share no code:
//   the rules      (rules.hpp) which pairs of steps lack order or a fence, and whether the target
//                  can show it
//   the checker    uptempo-vgpu --check fences,hsa,repeated,waits: must report such a pair, with
//                  the same verdict, and nothing else
//   the caches     uptempo-vgpu --incoherent SEED: some seed must give wrong results where they are
//                  possible, none where they are not
//
// Exit code: 0 if all three agree on every mutant and find nothing in the programs themselves; 1 if
// not; 2 usage.
//
// It starts itself under uptempo-vgpu: once per mutant with the checker, once per seed with all
// mutants.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "test/litmus/findings.hpp"
#include "test/litmus/programs.hpp"
#include "tools/litmus/corpus.hpp"
#include "tools/litmus/report.hpp"
#include "tools/support/command.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"
#include "tools/support/table.hpp"
#include "tools/vgpu/launch.hpp"

namespace {

using namespace uptempo;
using namespace uptempo::litmus;
using nlohmann::json;

// Its two queues access the same memory without order.
constexpr const char* kCalibration = "message-without-dependency/fine";

constexpr uint32_t kMoreSeeds = 256;

struct Options {
  std::vector<std::string> programs;
  uint32_t seeds = 16;
  uint32_t iterations = 4;
  uint32_t every = 1;
  uint32_t from = 1;
  std::string device = "gfx90a";
  CacheRules rules = CacheRules::gfx9;  // of the device
  std::string json_file;
  // Options of the child processes.
  int64_t check = -1;
  uint64_t run_all = 0;  // the seed
  int64_t only = -1;
};

// The chosen programs and their mutants. Number 0 determines the queues' numbers.
struct Case {
  Test test;
  std::string program;
  const Test* original = nullptr;  // null: the program itself
  Mutant mutant;
};

class Cases {
 public:
  // Keeps every `every`th mutant of each program, from mutant `from` on.
  explicit Cases(const Options& options) : programs_(programs()) {
    const std::vector<std::string>& names = options.programs;
    for (const std::string& name : names)
      if (std::ranges::none_of(programs_, [&](const Test& test) { return test.name == name; }))
        throw support::UsageError("--program: there is no program '" + name + "'");
    for (const Test& program : programs_) {
      if (!names.empty() && std::ranges::find(names, program.name) == names.end()) continue;
      all_.push_back({program, program.name, nullptr, {}});
      std::vector<Mutant> mutants = mutants_of(program);
      for (size_t number = options.from - 1; number < mutants.size(); number += options.every)
        all_.push_back({mutants[number].test, program.name, &program, std::move(mutants[number])});
    }
  }
  const std::vector<Case>& all() const { return all_; }

 private:
  std::vector<Test> programs_;
  std::vector<Case> all_;
};

const Test& calibration() {
  static const Test test = [] {
    for (const Test& candidate : corpus())
      if (candidate.name == kCalibration) return candidate;
    throw std::logic_error(std::string("the corpus has no test ") + kCalibration);
  }();
  return test;
}

// ---- under uptempo-vgpu

// Prints the packet indices of each run.
void check_one(const Test& test, uint32_t iterations) {
  const Runtime runtime;
  Runner runner(runtime.gpu());
  json out = json::array();
  for (uint32_t i = 0; i < iterations; ++i) {
    json indices = json::array();
    for (const Placement& placement : runner.run(test, i).placement)
      indices.push_back(placement.packet_index);
    out.push_back(std::move(indices));
  }
  std::cout << out.dump() << '\n';
}

// Prints the number of wrong runs of each case, or of case `only`. A program's mutants follow it
// and must give its result.
void run_all(const std::vector<Case>& cases, int64_t only, uint64_t seed, uint32_t iterations) {
  const Runtime runtime;
  Runner runner(runtime.gpu());
  std::vector<std::vector<uint32_t>> expected;
  json out = json::array();
  for (size_t number = 0; number < cases.size(); ++number) {
    const Case& one = cases[number];
    if (one.original == nullptr) expected = sequential_outcome(one.test);
    if (only >= 0 && number != static_cast<size_t>(only)) continue;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < iterations; ++i)
      wrong += runner.run(one.test, seed * iterations + i).outcome != expected ? 1 : 0;
    out.push_back(wrong);
  }
  std::cout << out.dump() << '\n';
}

// ---- the matrix

struct Row {
  std::string program, packet, mutation;
  Verdict verdict = Verdict::correct;
  bool found = false, found_possible = false;
  std::string pair;
  uint32_t seeds = 0, wrong_seeds = 0;
  std::vector<std::string> disagreements;
};

class Matrix {
 public:
  Matrix(const Options& options, const Cases& cases)
      : options_(options),
        cases_(cases),
        launcher_(vgpu::find_launcher()),
        self_(std::filesystem::read_symlink("/proc/self/exe").string()) {}

  std::vector<Row> fill() {
    support::Progress progress;
    progress.show("queues");
    const Checked calibrated = check(-1, options_.iterations);
    std::ifstream report(calibrated.report);
    queues_ = queues_of_first_finding(report);

    std::vector<Row> rows;
    for (size_t number = 0; number < cases_.all().size(); ++number) {
      const Case& one = cases_.all()[number];
      progress.show(
          fmt::format("checker, {} of {}: {}", number + 1, cases_.all().size(), one.program));
      rows.push_back(judge(one, static_cast<int>(number)));
    }
    for (uint32_t seed = 1; seed <= options_.seeds; ++seed) {
      progress.show(fmt::format("seed {} of {}", seed, options_.seeds));
      const json wrong = run_self({"--incoherent", std::to_string(seed)}, options_.iterations,
                                  {"--run-all", std::to_string(seed)});
      for (size_t number = 0; number < rows.size(); ++number) count(rows[number], wrong.at(number));
    }
    for (size_t number = 0; number < rows.size(); ++number) {
      Row& row = rows[number];
      // If the host's timing decides, a few seeds may not be enough.
      for (uint32_t seed = options_.seeds + 1;
           row.verdict == Verdict::possible && row.wrong_seeds == 0 &&
           row.seeds < options_.seeds + kMoreSeeds;
           ++seed) {
        progress.show(fmt::format("seed {} for {}, {}", seed, row.packet, row.mutation));
        count(row, run_self({"--incoherent", std::to_string(seed)}, options_.iterations,
                            {"--run-all", std::to_string(seed), "--only", std::to_string(number)})
                       .at(0));
      }
      if (row.verdict == Verdict::possible && row.wrong_seeds == 0)
        row.disagreements.push_back(
            "no seed gave a wrong result, but the target makes one possible");
      if (row.verdict != Verdict::possible && row.wrong_seeds != 0)
        row.disagreements.push_back(
            "a seed gave wrong results, but the target's caches exclude them");
    }
    return rows;
  }

 private:
  struct Checked {
    std::string report;
    std::vector<Run> runs;
  };

  static void count(Row& row, const json& wrong) {
    ++row.seeds;
    if (wrong != 0) ++row.wrong_seeds;
  }

  json run_self(const std::vector<std::string>& launcher_options, uint32_t iterations,
                const std::vector<std::string>& arguments, std::string* err = nullptr) const {
    std::vector<std::string> command{launcher_, "--device", options_.device};
    command.insert(command.end(), launcher_options.begin(), launcher_options.end());
    command.insert(command.end(),
                   {"--", self_, "--iterations", std::to_string(iterations), "--every",
                    std::to_string(options_.every), "--from", std::to_string(options_.from)});
    for (const std::string& program : options_.programs)
      command.insert(command.end(), {"--program", program});
    command.insert(command.end(), arguments.begin(), arguments.end());
    const test::CommandResult result = test::run_command(command);
    if (err != nullptr) *err = result.err;
    const json out = json::parse(result.out, nullptr, false);
    if (result.exit_code != 0 || out.is_discarded())
      throw std::runtime_error(fmt::format("{} ended with {}: {}", fmt::join(command, " "),
                                           result.exit_code, result.err));
    return out;
  }

  Checked check(int number, uint32_t iterations) const {
    Checked checked{.report = directory_.file("report.jsonl"), .runs = {}};
    json placements;
    std::string err;
    // If a kernel took more than two seconds, the checker lost sight of the host. Such a run proves
    // nothing.
    const auto observed = [&err] { return err.find("were not observed") == std::string::npos; };
    for (int attempt = 0; attempt == 0 || (attempt < 10 && !observed()); ++attempt)
      placements = run_self({"--check", "fences,hsa,repeated,waits", "--report", checked.report},
                            iterations, {"--check", std::to_string(number + 1)}, &err);
    for (const json& indices : placements) {
      Run& run = checked.runs.emplace_back();
      for (const json& index : indices) run.placement.push_back({index.get<uint64_t>()});
    }
    return checked;
  }

  Row judge(const Case& one, int number) const {
    const std::vector<Hazard> hazards = hazards_of(one.test, options_.rules);
    Row row;
    row.program = one.program;
    row.verdict = verdict_of(hazards);
    const Checked checked = check(number, options_.iterations);
    std::ifstream report(checked.report);
    const std::vector<Found> all = read_findings(report, one.test, checked.runs, queues_);
    std::set<std::string> pairs, unexplained;
    for (const Found& found : all) {
      row.found = true;
      row.found_possible |= found.possible_on_target;
      bool explained = false;
      for (const Hazard& hazard : hazards) {
        if (!agrees(found, hazard)) continue;
        explained = true;
        pairs.insert(
            fmt::format("{}-{}{}", hazard.earlier, hazard.later, hazard.ordered ? "" : " race"));
      }
      if (!explained)
        unexplained.insert("the checker reports a pair that the rules do not: " + found.line);
    }
    if (!unexplained.empty()) {
      row.disagreements.push_back(*unexplained.begin());
      if (unexplained.size() > 1)
        row.disagreements.push_back(fmt::format("and {} more such pairs", unexplained.size() - 1));
    }
    if (pairs.size() > 2) {
      row.pair = fmt::format("{} and {} more", *pairs.begin(), pairs.size() - 1);
    } else {
      row.pair = fmt::format("{}", fmt::join(pairs, ", "));
    }

    if (one.original == nullptr) {
      row.packet = "-";
      row.mutation = "none";
      if (row.verdict != Verdict::correct)
        row.disagreements.push_back("the program itself is not correct by the rules");
    } else {
      row.packet =
          fmt::format("{} {}", one.mutant.step, name_of(one.original->steps[one.mutant.step]));
      row.mutation = one.mutant.mutation;
      if (row.verdict == Verdict::correct)
        row.pair = why_harmless(*one.original, one.mutant, options_.rules);
    }
    if (row.verdict != Verdict::correct && !row.found)
      row.disagreements.push_back("the checker found nothing");
    if (row.verdict == Verdict::possible && row.found && !row.found_possible)
      row.disagreements.push_back("the checker calls it harmless");
    return row;
  }

  const Options& options_;
  const Cases& cases_;
  const std::string launcher_, self_;
  const test::TemporaryDirectory directory_;
  QueueNumbers queues_{};
};

std::string table(const std::vector<Row>& rows) {
  using support::Align;
  support::Table table({{"program", Align::left},
                        {"step", Align::left},
                        {"mutation", Align::left},
                        {"hsa", Align::left},
                        {"target", Align::left},
                        {"seeds\nwrong"},
                        {"pair found, or why none", Align::left}});
  for (const Row& row : rows)
    table.add_row({row.program, row.packet, row.mutation, row.found ? "found" : "-",
                   row.found_possible ? "possible"
                   : row.found        ? "harmless"
                                      : "-",
                   fmt::format("{}/{}", row.wrong_seeds, row.seeds), row.pair});
  return table.text();
}

support::ExitCode run_matrix(const Options& options, const Cases& cases) {
  const std::vector<Row> rows = Matrix(options, cases).fill();
  size_t agreed = 0, possible = 0, harmless = 0, by_rules = 0, originals = 0;
  std::string disagreements;
  json out = json::array();
  for (const Row& row : rows) {
    for (const std::string& reason : row.disagreements)
      disagreements +=
          fmt::format("DISAGREE  {}, {}, {}: {}\n", row.program, row.packet, row.mutation, reason);
    if (row.disagreements.empty()) ++agreed;
    if (row.mutation == "none") {
      ++originals;
    } else {
      ++(row.verdict == Verdict::possible   ? possible
         : row.verdict == Verdict::harmless ? harmless
                                            : by_rules);
    }
    out.push_back({{"program", row.program},
                   {"step", row.packet},
                   {"mutation", row.mutation},
                   {"rules", name_of(row.verdict)},
                   {"found", row.found},
                   {"target_possible", row.found_possible},
                   {"seeds", row.seeds},
                   {"wrong_seeds", row.wrong_seeds},
                   {"pair", row.pair},
                   {"disagreements", row.disagreements}});
  }
  support::print_report(
      options.json_file,
      fmt::format("{}\n{} programs, {} mutants: {} found and shown by a seed,\n"
                  "{} found and harmless on the target, {} harmless by the rules. {} of {} rows "
                  "agree, over {} seeds.\n{}",
                  table(rows), originals, rows.size() - originals, possible, harmless, by_rules,
                  agreed, rows.size(), options.seeds, disagreements));
  if (!options.json_file.empty()) support::write_output(options.json_file, out.dump(2) + '\n');
  return agreed == rows.size() ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "mutation_matrix",
      "Makes every single mistake in the fences of correct programs; checks that it is found and "
      "shows.");
  Options options;
  app.option("--program NAME", options.programs, "Only this program; may be given more than once");
  app.option("--seeds N", options.seeds, "Seeds of the incoherent mode (16)").range(1u, 100000u);
  app.option("--iterations N", options.iterations, "Runs of each mutant in a process (4)")
      .range(1u, 100000u);
  app.option("--every N", options.every, "Only every Nth mutant of a program (1)")
      .range(1u, 100000u);
  app.option("--from N", options.from, "The first of these mutants (1)").range(1u, 100000u);
  app.option("--device TARGET", options.device, "The virtual device (gfx90a)");
  support::add_json_option(app, options.json_file);
  app.option("--check", options.check, "").hidden();
  app.option("--run-all", options.run_all, "").hidden();
  app.option("--only", options.only, "").hidden();
  return support::run_program(app, argc, argv, [&] {
    const auto rules = cache_rules_of(options.device);
    if (!rules)
      throw support::UsageError("--device: no rules for the caches of '" + options.device + "'");
    options.rules = *rules;
    const Cases cases(options);
    if (options.check >= 0) {
      const auto number = static_cast<size_t>(options.check);
      check_one(number == 0 ? calibration() : cases.all().at(number - 1).test, options.iterations);
    } else if (options.run_all != 0) {
      run_all(cases.all(), options.only, options.run_all, options.iterations);
    } else {
      return run_matrix(options, cases);
    }
    return support::exit_ok;
  });
}
