// The packet trace: JSON lines, one object per packet or doorbell, in the order of completion or
// observation.
//
// Packets:   {"queue":1,"index":0,"type":"kernel_dispatch","barrier":true,"acquire":"system",
//             "release":"agent","completion_signal":false,"kernel":"bitonic_sort.kd",
//             "grid":[16384,1,1],"workgroup":[256,1,1],"kernarg":140737,"start_ns":1,"end_ns":2}
//            `type`: kernel_dispatch, barrier_and, barrier_or, vendor, agent_dispatch.
//            `queue` counts queues from 0 in order of creation, including ROCr's own. Fields that
//            a type does not have are absent.
// Doorbells: {"type":"doorbell","queue":1,"value":119,"ns":3}
// SDMA:      {"type":"sdma","engine":"copy_linear","sdma_engine":0,"queue":2,"offset":64,
//             "bytes":131072,"from":139637976727552,"to":139637976858624,"start_ns":4,"end_ns":5}
//            `engine`: the packet's name. `sdma_engine`: number of the engine, XGMI engines last.
//            `from` and `to`: addresses of the first bytes that copies and fills read and write.
// With several GPUs, each line has "gpu":0 after its queue: the number of the queue's GPU, from 0.
// With --delay each line holds its delays: packets
// "delays_ns":{"launch":0,"completion":1250,"interrupt":0}, doorbells and SDMA packets
// "delay_ns":0. A delayed doorbell is seen together with the one that replaces it in its slot.
//
// Thread safety: any thread.
// Cost: one branch when off. When on, the caller formats the line and appends it with one write(2)
// (about a microsecond), so the file holds every line however the process ends: exit(), _exit() or
// a signal.
// Files: lines are appended. The launcher empties the file before the program starts, and child
// processes of the program append to it. If a line cannot be written, for example because the disk
// is full, stderr says once that the file is incomplete; the program continues. No signal of such a
// write ends it. An open file has a shared lock (flock), so that no other launcher empties it. A
// pipe must have a reader within two seconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace uptempo::vgpu {

class Trace {
 public:
  // An empty `file` turns the trace off. "%p" in it becomes the process id. Throws
  // std::runtime_error, which names the file and the reason, when the file cannot be written.
  explicit Trace(const std::string& file);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  bool enabled() const noexcept { return impl_ != nullptr; }
  // The file, with the process id in place of "%p". Empty when off.
  const std::string& file() const noexcept;

  // True once a line could not be written.
  bool is_incomplete() const noexcept;

  // Appends one line. `json_object` must not contain a newline. Does nothing when off.
  void write(std::string_view json_object);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uptempo::vgpu
