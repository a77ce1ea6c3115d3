#include "fence_scope/judge.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "engine/runtime/runtime.hpp"
#include "fence_scope/bench.hpp"
#include "fence_scope/case_file.hpp"
#include "fence_scope/sequence_rules.hpp"
#include "test/support/command.hpp"
#include "vgpu/device_counts.h"
#include "vgpu/launch.hpp"

namespace uptempo::fence_scope {
namespace {

using nlohmann::json;

// FILE RUNS [REPORT]: the cases, how often each is run, and where the checker reports to.
constexpr const char* kProcessOption = "--judge-cases";

// ---- in a process under uptempo-vgpu

uptempo_vgpu_device_counts device_counts() {
  const auto ask = reinterpret_cast<uptempo_vgpu_device_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_device"));
  uptempo_vgpu_device_counts counts{};
  if (ask == nullptr || ask(&counts) != 0)
    throw std::runtime_error("this process does not run on the virtual GPU");
  return counts;
}

struct Lines {
  uint64_t l1_invalidated = 0, l2_invalidated = 0, l2_written_back = 0;

  void add(const uptempo_vgpu_device_counts& before, const uptempo_vgpu_device_counts& after) {
    l1_invalidated += after.vector_l1_lines_invalidated - before.vector_l1_lines_invalidated +
                      after.scalar_l1_lines_invalidated - before.scalar_l1_lines_invalidated;
    l2_invalidated += after.l2_lines_invalidated - before.l2_lines_invalidated;
    l2_written_back += after.l2_lines_written_back - before.l2_lines_written_back;
  }
};

// "copy_words.kd, packet 3"
std::string side_in_words(const json& side) {
  if (side.contains("kernel"))
    return fmt::format("{} (queue {}, packet {})", side.at("kernel").get<std::string>(),
                       side.at("queue").get<uint64_t>(), side.at("index").get<uint64_t>());
  return side.at("engine") == "host" ? "the host" : "a copy engine";
}

// What the checker has reported since the last time.
class Findings {
 public:
  explicit Findings(std::string file) : file_(std::move(file)) {}

  void take(json& to) {
    std::ifstream in(file_);
    in.seekg(read_);
    for (std::string line; std::getline(in, line);) {
      if (in.eof()) break;  // not whole yet
      read_ += static_cast<std::streamoff>(line.size()) + 1;
      const json finding = json::parse(line);
      const bool unordered = finding.at("class") == "unordered";
      uint64_t& count = to[unordered ? "unordered" : "stale"].get_ref<uint64_t&>();
      ++count;
      if (finding.at("target") == "possible") to["possible"] = true;
      std::string& first = to["first"].get_ref<std::string&>();
      if (first.empty())
        first = fmt::format("{}, {} and {}: {}", finding.at("conflict").get<std::string>(),
                            side_in_words(finding.at("writer")), side_in_words(finding.at("reader")),
                            finding.at("reason").get<std::string>());
    }
  }

 private:
  const std::string file_;
  std::streamoff read_ = 0;
};

std::vector<uint8_t> read_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Prints an object for each case.
void run_cases(const std::string& file, uint32_t runs, const std::string& report) {
  const Cases cases = from_bytes(read_file(file));
  const Runtime runtime;
  Findings findings(report);
  json out = json::array();
  for (size_t number = 0; number < cases.cases.size(); ++number) out.push_back(nullptr);
  for (size_t number = 0; number < cases.sequences.size(); ++number) {
    Bench bench(runtime.gpu(), cases.sequences[number]);
    json nobody = {{"unordered", uint64_t{0}}, {"stale", uint64_t{0}}, {"possible", false}, {"first", ""}};
    if (!report.empty())
      findings.take(nobody);  // the reference run's: there are none, as it waits for each step
    for (size_t i = 0; i < cases.cases.size(); ++i) {
      if (cases.cases[i].sequence != number) continue;
      json one = {{"unordered", uint64_t{0}}, {"stale", uint64_t{0}}, {"possible", false}, {"first", ""}};
      uptempo_vgpu_device_counts before{};
      Lines lines;
      bench.watch([&] { before = device_counts(); }, [&] { lines.add(before, device_counts()); });
      uint32_t wrong = 0;
      for (uint32_t run = 0; run < runs; ++run)
        wrong += bench.run(cases.cases[i].headers, run % 2 == 0 ? Release::gated : Release::ungated).correct
                     ? 0
                     : 1;
      if (!report.empty()) findings.take(one);
      one["wrong"] = wrong;
      one["l1"] = lines.l1_invalidated / runs;
      one["l2"] = lines.l2_invalidated / runs;
      one["back"] = lines.l2_written_back / runs;
      out[i] = std::move(one);
    }
  }
  std::cout << out.dump() << '\n';
}

// ---- in the program that asks

// The launcher's options come from here alone, whatever this process was started with; the device stays.
std::vector<std::string> clean_environment() {
  std::vector<std::string> command{"/usr/bin/env"};
  for (const char* name :
       {"LD_PRELOAD", "UPTEMPO_VGPU_CHECK", "UPTEMPO_VGPU_DELAY", "UPTEMPO_VGPU_DETERMINISTIC",
        "UPTEMPO_VGPU_EARLY_READ_INDEX", "UPTEMPO_VGPU_INCOHERENT", "UPTEMPO_VGPU_NULL_KERNELS",
        "UPTEMPO_VGPU_REPORT", "UPTEMPO_VGPU_SEED", "UPTEMPO_VGPU_TRACE", "UPTEMPO_VGPU_WORKERS"})
    command.insert(command.end(), {"-u", name});
  return command;
}

json run_self(const std::vector<std::string>& launcher_options, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = clean_environment();
  command.push_back(vgpu::find_launcher());
  command.insert(command.end(), launcher_options.begin(), launcher_options.end());
  command.insert(command.end(),
                 {"--", std::filesystem::read_symlink("/proc/self/exe").string(), kProcessOption});
  command.insert(command.end(), arguments.begin(), arguments.end());
  const test::CommandResult result = test::run_command(command);
  json out = json::parse(result.out, nullptr, false);
  if (result.exit_code != 0 || out.is_discarded())
    throw std::runtime_error(
        fmt::format("uptempo-vgpu {} with the cases of this experiment ended with {}: {}",
                    fmt::join(launcher_options, " "), result.exit_code, result.err));
  return out;
}

}  // namespace

Judgement judge(const Sequence& sequence, const Headers& headers, const Evidence& evidence) {
  const std::vector<Hazard> hazards = hazards_of(sequence, headers);
  const Hazard* const worst = worst_of(hazards);
  Judgement judgement{.verdict = Verdict::correct, .wrong_runs = evidence.wrong_runs, .runs = evidence.runs};
  const bool found = evidence.found_unordered + evidence.found_stale > 0;
  if (worst != nullptr) {
    judgement.verdict = !worst->ordered                                      ? Verdict::unordered
                        : evidence.wrong_runs > 0 || evidence.found_possible ? Verdict::stale
                                                                             : Verdict::unknown;
    judgement.writer = worst->earlier;
    judgement.reader = worst->later;
    if (!worst->earlier_writes) std::swap(judgement.writer, judgement.reader);
    judgement.reason = in_words(*worst, sequence, headers);
  } else if (found) {
    judgement.verdict = evidence.found_unordered > 0                         ? Verdict::unordered
                        : evidence.wrong_runs > 0 || evidence.found_possible ? Verdict::stale
                                                                             : Verdict::unknown;
    judgement.reason =
        "accesses that are not declared, found by the fence checker: " + evidence.first_finding;
  } else if (evidence.wrong_runs > 0) {
    judgement.verdict = Verdict::unknown;
    judgement.reason = "the rules promise right results, and some were wrong";
  }
  return judgement;
}

std::vector<Evidence> gather_evidence(std::span<const Case> cases, const JudgeOptions& options) {
  const auto tell = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  const test::TemporaryDirectory directory;
  const std::string file = directory.file("cases"), report = directory.file("report.jsonl"),
                    runs = std::to_string(options.runs);
  {
    const std::vector<uint8_t> bytes = to_bytes(cases);
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + file);
  }
  std::vector<Evidence> all(cases.size());
  tell("fence checker");
  const json checked = run_self({"--check", "fences,hsa", "--report", report}, {file, runs, report});
  for (size_t i = 0; i < all.size(); ++i) {
    const json& one = checked.at(i);
    all[i].found_unordered = one.at("unordered").get<uint64_t>();
    all[i].found_stale = one.at("stale").get<uint64_t>();
    all[i].found_possible = one.at("possible").get<bool>();
    all[i].first_finding = one.at("first").get<std::string>();
  }
  for (uint32_t seed = 1; seed <= options.seeds; ++seed) {
    tell(fmt::format("seed {} of {}", seed, options.seeds));
    const json outcomes = run_self({"--incoherent", std::to_string(seed)}, {file, runs});
    for (size_t i = 0; i < all.size(); ++i) {
      const json& one = outcomes.at(i);
      all[i].runs += options.runs;
      all[i].wrong_runs += one.at("wrong").get<uint32_t>();
      if (seed != 1) continue;
      all[i].l1_lines_invalidated = one.at("l1").get<uint64_t>();
      all[i].l2_lines_invalidated = one.at("l2").get<uint64_t>();
      all[i].l2_lines_written_back = one.at("back").get<uint64_t>();
    }
  }
  return all;
}

std::optional<int> run_judge_process(int argc, char** argv) {
  if (argc < 4 || std::string_view(argv[1]) != kProcessOption) return std::nullopt;
  try {
    run_cases(argv[2], static_cast<uint32_t>(std::stoul(argv[3])), argc > 4 ? argv[4] : "");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

}  // namespace uptempo::fence_scope
