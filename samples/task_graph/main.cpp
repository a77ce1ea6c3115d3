// A graph of tasks in one queue: independent branches that join, with declared reads and writes and
// the fewest fences.
//
//   task_graph [--device D] [--rounds N] [--json FILE]
//
// Eight branches create a vector each and advance it twice. They join in pairs until one is left.
// No dependencies are given: FencePlan finds out from reads and writes where barrier bits and
// fences are needed, and explains why. For comparison the same tasks run without declarations (a
// barrier bit on each packet), and as most runtimes do (also system fences).
//
// Exit code: 0 all results are right, 1 they are not or the device failed, 2 wrong command line, 77
// no such device.
#include <fmt/format.h>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/table.hpp"

namespace {

using namespace uptempo;

constexpr uint32_t kBranches = 8, kAdvances = 2, kElements = 4096, kWorkgroup = 256;

struct Task {
  enum class Kind : uint8_t { make, advance, join } kind;
  uint32_t branch;     // the branch whose vector it writes; all but `make` also read it
  uint32_t other = 0;  // `join` only: the branch that it merges
};

// A valid sequential order. Branches alternate, so that neighbours are independent.
std::vector<Task> graph() {
  std::vector<Task> tasks;
  for (uint32_t branch = 0; branch < kBranches; ++branch)
    tasks.push_back({Task::Kind::make, branch});
  for (uint32_t i = 0; i < kAdvances; ++i)
    for (uint32_t branch = 0; branch < kBranches; ++branch)
      tasks.push_back({Task::Kind::advance, branch});
  for (uint32_t apart = 1; apart < kBranches; apart *= 2)
    for (uint32_t branch = 0; branch < kBranches; branch += 2 * apart)
      tasks.push_back({Task::Kind::join, branch, branch + apart});
  return tasks;
}

std::string name_of(const Task& task) {
  switch (task.kind) {
    case Task::Kind::make:
      return fmt::format("make {}", task.branch);
    case Task::Kind::advance:
      return fmt::format("advance {}", task.branch);
    case Task::Kind::join:
      break;
  }
  return fmt::format("join {} into {}", task.other, task.branch);
}

std::vector<uint32_t> on_the_host(const std::vector<Task>& tasks) {
  std::vector<std::vector<uint32_t>> vectors(kBranches, std::vector<uint32_t>(kElements));
  for (const Task& task : tasks) {
    std::vector<uint32_t>& own = vectors[task.branch];
    const std::vector<uint32_t>& other = vectors[task.other];
    for (uint32_t i = 0; i < kElements; ++i) {
      if (task.kind == Task::Kind::make) own[i] = task.branch + i;
      if (task.kind == Task::Kind::advance) own[i] = own[i] * 3 + task.branch;
      if (task.kind == Task::Kind::join)
        own[i] = own[i] * 7 + other[kElements - 1 - i] * 3 + other[i] * 5 + task.other;
    }
  }
  return vectors[0];
}

class GraphRunner {
 public:
  explicit GraphRunner(const Agent& gpu)
      : basics_(gpu, builtin_kernels::workgroups_of_256()),
        probes_(gpu, builtin_kernels::probes()) {
    for (uint32_t branch = 0; branch < kBranches; ++branch) vectors_.emplace_back(gpu, kElements);
  }

  // Declares the task's reads and writes to a plan or to a batch's dispatch.
  template <class Ref>
  void declare(Ref ref, const Task& task) {
    ref.writes(at(task.branch), kElements);
    if (task.kind != Task::Kind::make) ref.reads(at(task.branch), kElements);
    if (task.kind == Task::Kind::join) ref.reads(at(task.other), kElements);
  }
  CommandRef dispatch(BatchSubmitter& batch, const Task& task) {
    const Grid grid = Grid{kElements}.by(kWorkgroup);
    switch (task.kind) {
      case Task::Kind::make:
        return batch.dispatch(make_, grid, at(task.branch), task.branch, 1u);
      case Task::Kind::advance:
        return batch.dispatch(advance_, grid, at(task.branch), task.branch);
      case Task::Kind::join:
        break;
    }
    return batch.dispatch(join_, grid, at(task.branch), at(task.other), at(task.other), task.other);
  }
  const DeviceBuffer<uint32_t>& result() const { return vectors_[0]; }

 private:
  uint32_t* at(uint32_t branch) { return vectors_[branch].data(); }

  const Program basics_, probes_;
  const Kernel<uint32_t*, uint32_t, uint32_t> make_ =
      basics_.kernel<uint32_t*, uint32_t, uint32_t>("iota");
  const Kernel<uint32_t*, uint32_t> advance_ =
      basics_.kernel<uint32_t*, uint32_t>("chain_increment");
  const Kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t> join_ =
      probes_.kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t>("combine");
  std::vector<DeviceBuffer<uint32_t>> vectors_;
};

struct Way {
  const char* name;
  FencePolicy policy;
  bool declares;
  FenceCost cost{};
  std::vector<double> device_us{};
  bool right = true;
};

// From the first task's begin to the last one's end.
double device_us(const Completion& completion) {
  const std::vector<PacketTime> times = completion.times();
  return static_cast<double>(times.back().end_ns - times.front().start_ns) / 1000;
}

void run_once(Way& way, Queue& queue, GraphRunner& runner, const std::vector<Task>& tasks,
              Copier& copier, PinnedBuffer<uint32_t>& host, const std::vector<uint32_t>& expected) {
  BatchSubmitter batch(queue, {.timing = Timing::batch, .fences = way.policy});
  for (const Task& task : tasks) {
    const CommandRef ref = runner.dispatch(batch, task);
    if (way.declares) runner.declare(ref, task);
  }
  const Completion completion = batch.submit();
  completion.wait();
  way.cost = cost_of(batch.plan());
  way.device_us.push_back(device_us(completion));
  copier.copy(host, runner.result());
  way.right = way.right && std::ranges::equal(host.span(), expected);
}

std::string table_of(const std::vector<Way>& ways, const char* time_name) {
  using support::Align;
  support::Table table({{"", Align::left},
                        {"system\nfences"},
                        {"barrier\nbits"},
                        {"agent\nfences"},
                        {fmt::format("{}\nmedian, us", time_name)}});
  for (const Way& way : ways)
    table.add_row({way.name, fmt::format("{}", way.cost.system_fences),
                   fmt::format("{}", way.cost.barrier_bits),
                   fmt::format("{}", way.cost.agent_fences),
                   fmt::format("{:.1f}", support::median_interval(way.device_us).median)});
  return table.text();
}

// for example "against system everywhere: 60 system fences, 25 barrier bits; for 35 agent fences"
std::string saved_against(const Way& other, const FenceCost& plan) {
  std::string less, more;
  const auto compare = [&](uint64_t before, uint64_t now, const char* what) {
    std::string& text = now < before ? less : more;
    if (now != before)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                          now < before ? before - now : now - before, what);
  };
  compare(other.cost.system_fences, plan.system_fences, "system fences");
  compare(other.cost.barrier_bits, plan.barrier_bits, "barrier bits");
  compare(other.cost.agent_fences, plan.agent_fences, "agent fences");
  return fmt::format("  against {}: {}{}{}\n", other.name, less, more.empty() ? "" : "; for ",
                     more);
}

nlohmann::ordered_json json_of(const Way& way) {
  return {{"name", way.name},
          {"system_fences", way.cost.system_fences},
          {"barrier_bits", way.cost.barrier_bits},
          {"agent_fences", way.cost.agent_fences},
          {"device_us", support::median_interval(way.device_us).median}};
}

support::ExitCode run(const std::string& choice, uint32_t rounds, const std::string& json_file,
                      int argc, char** argv) {
  support::Device device = support::open_device(choice, argc, argv);
  support::print_report(json_file, device.line());
  const std::vector<Task> tasks = graph();
  GraphRunner runner(device.gpu);

  FencePlan plan(device.gpu);
  for (const Task& task : tasks) runner.declare(plan.dispatch(), task);
  support::print_report(json_file, fmt::format("{} tasks: {} branches of {}, joined in pairs\n\n",
                                               tasks.size(), kBranches, kAdvances + 1));
  for (size_t i = 0; i < tasks.size(); ++i)
    support::print_report(json_file, fmt::format("packet {}, {}: {}\n", i, name_of(tasks[i]),
                                                 explain(plan.packets()[i], i)));

  Queue queue(device.gpu);
  Copier copier(device.gpu);
  PinnedBuffer<uint32_t> host(device.gpu, kElements);
  const std::vector<uint32_t> expected = on_the_host(tasks);
  std::vector<Way> ways{{"planned", FencePolicy::by_need, true},
                        {"barrier everywhere", FencePolicy::by_need, false},
                        {"system everywhere", FencePolicy::system_everywhere, false}};
  for (uint32_t round = 0; round < rounds; ++round)
    for (Way& way : ways) run_once(way, queue, runner, tasks, copier, host, expected);

  const bool as_planned = ways[0].cost == plan.cost();
  const bool right =
      as_planned && std::ranges::all_of(ways, [](const Way& way) { return way.right; });
  support::print_report(
      json_file,
      fmt::format("\n{}\nSaved by the plan\n{}{}{}\n", table_of(ways, device.time_name()),
                  saved_against(ways[1], plan.cost()), saved_against(ways[2], plan.cost()),
                  device.is_virtual
                      ? "On hardware these cost time; on the virtual GPU hardly any.\n"
                      : ""));
  support::print_report(json_file, right        ? "Verified: every result equals the host's.\n"
                                   : as_planned ? "WRONG RESULTS.\n"
                                                : "THE BATCH'S FENCES DIFFER FROM THE PLAN.\n");
  if (!json_file.empty()) {
    nlohmann::ordered_json json{{"device", device.name()},
                                {"virtual_gpu", device.is_virtual},
                                {"verified", right},
                                {"rounds", rounds}};
    for (size_t i = 0; i < tasks.size(); ++i)
      json["tasks"].push_back(
          {{"name", name_of(tasks[i])}, {"fences", explain(plan.packets()[i], i)}});
    for (const Way& way : ways) json["ways"].push_back(json_of(way));
    support::write_json(json_file, json);
  }
  return right ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "task_graph",
      "Runs a graph of tasks in one queue with the fewest fences, and prints the savings.");
  std::string device = "auto", json_file;
  uint32_t rounds = 9;
  support::add_device_option(app, device);
  app.option("--rounds", rounds, "Runs of each way; times are medians")
      .range(1u, 10000u)
      .show_default();
  support::add_json_option(app, json_file);
  return support::run_program(app, argc, argv,
                              [&] { return run(device, rounds, json_file, argc, argv); });
}
