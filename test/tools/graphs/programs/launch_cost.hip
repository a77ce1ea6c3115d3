// Measures the CPU time of hipGraphLaunch in the calling thread, for chains of small kernels. Run it
// alone and under `uptempo-graphs --at-least 1` to see from how many nodes on a take-over pays.
#include <ctime>

#include <algorithm>

#include "program.hpp"

namespace {

double cpu_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

// Interruptions only add time, so the lower quartile is nearer to the cost than the median.
double lower_quartile(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 4];
}

// The cost of each of `launches` launches without a wait between them.
double cost(hipGraphExec_t executable, hipStream_t stream, int launches, int rounds) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const double start = cpu_microseconds();
    for (int i = 0; i < launches; ++i) CHECK_HIP(hipGraphLaunch(executable, stream));
    times.push_back((cpu_microseconds() - start) / launches);
    CHECK_HIP(hipStreamSynchronize(stream));
  }
  return lower_quartile(times);
}

}  // namespace

int main() {
  const Words words;
  const hipStream_t stream = new_stream();
  std::printf("nodes  idle stream  busy stream  (microseconds of CPU time per launch)\n");
  for (const uint32_t nodes : {1, 2, 4, 8, 16, 32, 48, 64, 128, 256}) {
    hipGraph_t graph = nullptr;
    CHECK_HIP(hipGraphCreate(&graph, 0));
    std::vector<hipGraphNode_t> last;
    for (uint32_t i = 0; i < nodes; ++i) last = {add_step(graph, last, words.device, 3, i)};
    const hipGraphExec_t executable = instantiate(graph);
    cost(executable, stream, 1, 20);
    std::printf("%5u  %11.1f  %11.1f\n", nodes, cost(executable, stream, 1, 100),
                cost(executable, stream, 10, 20));
    CHECK_HIP(hipGraphExecDestroy(executable));
    CHECK_HIP(hipGraphDestroy(graph));
  }
  CHECK_HIP(hipStreamDestroy(stream));
}
