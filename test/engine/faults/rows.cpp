#include "test/engine/faults/rows.hpp"

#include <utility>

namespace uptempo::faults {

std::vector<Row> device_rows() {
  std::vector<Row> rows;
  for (const char* const name :
       {"WAVE_ABORT", "WAVE_TRAP", "WAVE_MATH_ERROR", "WAVE_ILLEGAL_INSTRUCTION",
        "WAVE_MEMORY_VIOLATION", "WAVE_APERTURE_VIOLATION", "PACKET_DISPATCH_DIM_INVALID",
        "PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID", "PACKET_DISPATCH_CODE_INVALID",
        "PACKET_RESERVED", "PACKET_UNSUPPORTED", "PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID",
        "PACKET_DISPATCH_REGISTER_INVALID", "PACKET_VENDOR_UNSUPPORTED"}) {
    rows.push_back({.name = std::string("queue: ") + name,
                    .inject = std::string("packet type=dispatch error=") + name,
                    .is_short = rows.size() == 3});
  }
  // The driver stops all queues of the agent, and ROCr reports one fault until it is shut down.
  for (const char* const kind : {"not_present", "read_only", "poison"})
    rows.push_back({.name = std::string("memory fault: ") + kind,
                    .inject = std::string("packet type=dispatch fault=") + kind,
                    .other_continues = false,
                    .again_works = false,
                    .claimed = true,
                    .is_short = rows.size() == 14});
  rows.push_back(
      {.name = "packet: torn dispatch", .inject = "packet type=dispatch torn", .is_short = true});
  rows.push_back({.name = "packet: torn barrier",
                  .inject = "packet type=barrier torn",
                  .must_fail = false,
                  .reported = false});
  rows.push_back({.name = "packet: 50 ms late",
                  .inject = "packet type=dispatch late=50",
                  .must_fail = false,
                  .is_short = true});
  rows.push_back(
      {.name = "packets: each 2 ms late", .inject = "packet late=2 every=1", .must_fail = false});
  rows.push_back({.name = "interrupts: all lost",
                  .inject = "interrupt lost every=1",
                  .must_fail = false,
                  .is_short = true});
  rows.push_back({.name = "interrupts: half lost",
                  .inject = "interrupt lost chance=0.5 seed=7",
                  .must_fail = false});
  rows.push_back({.name = "interrupts: all doubled",
                  .inject = "interrupt doubled every=1",
                  .must_fail = false,
                  .is_short = true});
  for (const char* const kind : {"reset", "gone"}) {
    rows.push_back({.name = std::string("GPU: ") + kind,
                    .inject = std::string("packet type=dispatch ") + kind,
                    .other_continues = false,
                    .again_works = false,
                    .claimed = true,
                    .is_short = true});
    rows.push_back({.name = std::string("GPU: ") + kind + ", with a peer",
                    .inject = std::string("packet gpu=0 type=dispatch ") + kind,
                    .other_continues = false,
                    .again_works = false,
                    .late_peer_works = kind == std::string_view("reset"),
                    .claimed = true,
                    .launcher = {"--gpus", "2"},
                    .scenario = "peer"});
  }
  rows.push_back({.name = "events: exhausted",
                  .inject = "ioctl=CREATE_EVENT errno=ENOSPC nth=12 count=all",
                  .other_continues = false,  // its queue needs events, too
                  .again_works = false});
  rows.push_back(
      {.name = "events: exhausted after set-up",
       .inject = "ioctl=CREATE_EVENT errno=ENOSPC count=all nth=" + std::string(kAfterSetUp),
       .work_fails = false,
       .again_works = false,
       .is_short = true});
  rows.push_back({.name = "queues: exhausted",
                  .inject = "ioctl=CREATE_QUEUE errno=ENOMEM nth=3 count=all",
                  .other_continues = false,
                  .again_works = false,
                  .is_short = true});
  rows.push_back({.name = "memory: exhausted",
                  .inject = "ioctl=ALLOC_MEMORY_OF_GPU errno=ENOMEM nth=40 count=all",
                  .work_fails = false,
                  .other_continues = false,
                  .again_works = false,
                  .is_short = true});
  rows.push_back({.name = "mappings: exhausted",
                  .inject = "mmap errno=ENOMEM nth=8 count=all",
                  .other_continues = false,
                  .again_works = false});
  // The engine's own resources; nothing is injected.
  for (const auto& [name, scenario] : {std::pair{"a queue's kernargs", "kernargs"},
                                       {"a queue's publications", "publications"},
                                       {"a queue's timing signals", "timing signals"},
                                       {"a queue's ring", "ring"},
                                       {"the process's signals", "signals"},
                                       {"the GPU's memory", "device memory"}})
    rows.push_back({.name = std::string(name) + ": exhausted",
                    .inject = "",
                    .must_fail = false,
                    .is_short = true,
                    .scenario = scenario});
  rows.push_back({.name = "processes: fork",
                  .inject = "",
                  .must_fail = false,
                  .is_short = true,
                  .scenario = "fork"});
  rows.push_back({.name = "processes: SIGKILL of a neighbour",
                  .inject = "",
                  .must_fail = false,
                  .is_short = true,
                  .scenario = "neighbour"});
  return rows;
}

std::vector<Sweep> request_sweeps() {
  // ROCr repeats a refused allocation once, so ENOMEM is also tried from the Nth request on.
  const std::vector<std::string> all{"ENOMEM", "ENOMEM count=all", "EINTR", "EBUSY", "EPERM"};
  std::vector<Sweep> sweeps;
  for (const char* const request : {"GET_VERSION",
                                    "CREATE_QUEUE",
                                    "DESTROY_QUEUE",
                                    "SET_MEMORY_POLICY",
                                    "GET_CLOCK_COUNTERS",
                                    "UPDATE_QUEUE",
                                    "CREATE_EVENT",
                                    "DESTROY_EVENT",
                                    "SET_EVENT",
                                    "RESET_EVENT",
                                    "SET_SCRATCH_BACKING_VA",
                                    "GET_TILE_CONFIG",
                                    "SET_TRAP_HANDLER",
                                    "GET_PROCESS_APERTURES_NEW",
                                    "ACQUIRE_VM",
                                    "ALLOC_MEMORY_OF_GPU",
                                    "FREE_MEMORY_OF_GPU",
                                    "MAP_MEMORY_TO_GPU",
                                    "UNMAP_MEMORY_FROM_GPU",
                                    "SET_CU_MASK",
                                    "ALLOC_QUEUE_GWS",
                                    "SVM",
                                    "SET_XNACK_MODE",
                                    "AVAILABLE_MEMORY",
                                    "RUNTIME_ENABLE",
                                    "DBG_TRAP"})
    sweeps.push_back({.place = std::string("ioctl=") + request, .errors = all});
  sweeps.push_back({.place = "ioctl=WAIT_EVENTS", .errors = all, .timed = true});
  sweeps.push_back({.place = "mmap", .errors = {"ENOMEM", "EAGAIN"}});
  sweeps.push_back({.place = "open", .errors = {"EAGAIN", "ENOMEM", "EPERM"}});
  return sweeps;
}

}  // namespace uptempo::faults
