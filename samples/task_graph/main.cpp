// A graph of tasks in one queue: independent branches that join, with declared reads and writes and
// the fewest fences.
//
// Eight branches create a vector each and advance it twice. They join in pairs until one is left.
// No dependencies are given: FencePlan finds out from reads and writes where barrier bits and
// fences are needed, and explains why. For comparison the same tasks run without declarations (a
// barrier bit on each packet), and as most runtimes do (also system fences).
#include <dlfcn.h>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

using namespace uptempo;

namespace {

constexpr uint32_t kBranches = 8, kAdvances = 2, kElements = 4096, kWorkgroup = 256, kRounds = 5;

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
      return "make " + std::to_string(task.branch);
    case Task::Kind::advance:
      return "advance " + std::to_string(task.branch);
    case Task::Kind::join:
      break;
  }
  return "join " + std::to_string(task.other) + " into " + std::to_string(task.branch);
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

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + kRounds / 2);
  return values[kRounds / 2];
}

}  // namespace

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  const std::vector<Task> tasks = graph();
  GraphRunner runner(gpu);

  FencePlan plan(gpu);
  for (const Task& task : tasks) runner.declare(plan.dispatch(), task);
  std::printf("%s: %zu tasks: %u branches of %u, joined in pairs\n\n", gpu.name().c_str(),
              tasks.size(), kBranches, kAdvances + 1);
  for (size_t i = 0; i < tasks.size(); ++i)
    std::printf("packet %zu, %s: %s\n", i, name_of(tasks[i]).c_str(),
                explain(plan.packets()[i], i).c_str());

  Queue queue(gpu);
  Copier copier(gpu);
  PinnedBuffer<uint32_t> host(gpu, kElements);
  const std::vector<uint32_t> expected = on_the_host(tasks);
  std::array<Way, 3> ways{Way{"planned", FencePolicy::by_need, true},
                          Way{"barrier everywhere", FencePolicy::by_need, false},
                          Way{"system everywhere", FencePolicy::system_everywhere, false}};
  for (uint32_t round = 0; round < kRounds; ++round)
    for (Way& way : ways) run_once(way, queue, runner, tasks, copier, host, expected);

  const bool is_virtual = dlsym(RTLD_DEFAULT, "uptempo_vgpu_device") != nullptr;
  std::printf(
      "\n                     system   barrier     agent  %s\n"
      "                     fences      bits    fences   median, us\n"
      "-----------------------------------------------------------\n",
      is_virtual ? "virtual GPU" : "     device");
  for (const Way& way : ways)
    std::printf("%-18s %8lu  %8lu  %8lu  %11.1f\n", way.name, way.cost.system_fences,
                way.cost.barrier_bits, way.cost.agent_fences, median(way.device_us));
  if (is_virtual) std::printf("On hardware fences cost time; on the virtual GPU hardly any.\n");

  const bool as_planned = ways[0].cost == plan.cost();
  const bool right = std::ranges::all_of(ways, &Way::right);
  std::puts(!right       ? "WRONG RESULTS."
            : as_planned ? "Verified: every result equals the host's."
                         : "THE BATCH'S FENCES DIFFER FROM THE PLAN.");
  return right && as_planned ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "task_graph: %s\n", error.what());
  return 1;
}
