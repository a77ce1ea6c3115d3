// The packets that a profiler double saw, as text for the test that started the program.
//
// The file that UPTEMPO_PROFILER_REPORT names gets these lines, in any order, when the tool is
// unloaded or the process ends:
//   tool NAME
//   queue NUMBER DISPATCHES OTHERS              NUMBER: of the virtual GPU (query.h); -1: not known,
//                                               as for the producers' ring of an intercepted queue
//   dispatch KERNARG GRID_X GRID_Y GRID_Z       one for each kernel dispatch packet, addresses in hex
//   problem TEXT                                the producer broke a rule
// A later session of the process appends to the file.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <dlfcn.h>
#include <hsa/hsa.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <uptempo/vgpu/query.h>

namespace uptempo::test {

// The packets that a tool has seen so far. A program that runs under a tool asks for it:
//   dlsym(RTLD_DEFAULT or the tool's handle, "uptempo_profiler_counts")
struct ProfilerCounts {
  uint64_t queues, dispatches, others, problems;
};
using ProfilerCountsFunction = void (*)(ProfilerCounts* counts);

class ProfilerReport {
 public:
  explicit ProfilerReport(const char* tool) : tool_(tool) {}
  ProfilerReport(const ProfilerReport&) = delete;
  ProfilerReport& operator=(const ProfilerReport&) = delete;

  void add_queue(const hsa_queue_t* queue) {
    const std::lock_guard lock(mutex_);
    places_[queue] = queues_.size();
    queues_.push_back({number_of(queue), 0, 0});
  }
  // A packet on its way to the device.
  void add_packet(const hsa_queue_t* queue, const void* packet) {
    const auto& dispatch = *static_cast<const hsa_kernel_dispatch_packet_t*>(packet);
    const std::lock_guard lock(mutex_);
    Queue& entry = queues_[places_.at(queue)];
    if ((dispatch.header & 0xff) != HSA_PACKET_TYPE_KERNEL_DISPATCH) {
      ++entry.others;
      return;
    }
    ++entry.dispatches;
    dispatches_.push_back({reinterpret_cast<uint64_t>(dispatch.kernarg_address),
                           dispatch.grid_size_x, dispatch.grid_size_y, dispatch.grid_size_z});
  }
  void add_problem(const std::string& text) {
    const std::lock_guard lock(mutex_);
    problems_.push_back(text);
  }

  ProfilerCounts counts() {
    const std::lock_guard lock(mutex_);
    ProfilerCounts sum{
        .queues = queues_.size(), .dispatches = 0, .others = 0, .problems = problems_.size()};
    for (const Queue& queue : queues_) {
      sum.dispatches += queue.dispatches;
      sum.others += queue.others;
    }
    return sum;
  }

  // Appends everything to the file, once.
  void write() {
    const std::lock_guard lock(mutex_);
    const char* const name = std::getenv("UPTEMPO_PROFILER_REPORT");
    if (written_ || name == nullptr) return;
    written_ = true;
    std::FILE* const file = std::fopen(name, "a");
    if (file == nullptr) std::abort();
    std::fprintf(file, "tool %s\n", tool_);
    for (const Queue& each : queues_)
      std::fprintf(file, "queue %d %llu %llu\n", each.number, wide(each.dispatches),
                   wide(each.others));
    for (const Dispatch& each : dispatches_)
      std::fprintf(file, "dispatch %llx %u %u %u\n", wide(each.kernarg), each.x, each.y, each.z);
    for (const std::string& text : problems_) std::fprintf(file, "problem %s\n", text.c_str());
    std::fclose(file);
  }

 private:
  struct Queue {
    int number;
    uint64_t dispatches, others;
  };
  struct Dispatch {
    uint64_t kernarg;
    uint32_t x, y, z;
  };
  static int number_of(const hsa_queue_t* queue) {
    const auto ask =
        reinterpret_cast<uptempo_vgpu_queue_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_queue"));
    uint32_t number = 0;
    return ask != nullptr && ask(queue->base_address, &number) == 0 ? static_cast<int>(number) : -1;
  }
  static unsigned long long wide(uint64_t number) { return number; }

  const char* const tool_;
  std::mutex mutex_;
  std::map<const hsa_queue_t*, size_t> places_;
  std::vector<Queue> queues_;
  std::vector<Dispatch> dispatches_;
  std::vector<std::string> problems_;
  bool written_ = false;
};

}  // namespace uptempo::test
