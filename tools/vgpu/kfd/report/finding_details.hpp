// The program in a finding: source lines of kernels, calls of the host, allocations,
// and a remedy.
//
// Thread safety: any thread, but for attach(). of() may run in a Reader's section and takes no lock
// that a thread of the program may hold while it waits for the device.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/fences/report/finding_text.hpp"
#include "device/host/host_stacks.hpp"
#include "device/memory.hpp"
#include "device/memory_check/finding.hpp"
#include "device/races/report/race_text.hpp"
#include "kfd/report/allocations.hpp"
#include "kfd/report/dwarf_library.hpp"
#include "kfd/report/host_frames.hpp"
#include "kfd/report/source_lines.hpp"
#include "tools/support/python_calls.hpp"

namespace uptempo::vgpu::kfd {

class FindingDetailer {
 public:
  // Loads libdw if it is installed, and looks for Python.
  FindingDetailer() : frames_(library_) { support::find_python(); }

  // Call it before the first finding.
  void attach(const std::vector<AddressSpace*>& memory_of_gpus);

  // The calling thread has created the compute queue of that number. `read_index`: the address that
  // the driver was given, which is in the program's amd_queue_t.
  void created_queue(uint32_t number, GpuAddress read_index);
  // The calling thread is about to destroy it.
  void destroys_queue(uint32_t number);

  fences::FindingDetails of(const fences::Finding& finding);
  memory_check::Details of(const memory_check::Finding& finding);
  races::Details of(const races::Checked& dispatch, const races::Finding& finding);
  // A number of the calls that allocated the memory there; if they are not known, its first address.
  uint64_t allocation_place(GpuAddress address) const;
  // Whether these calls made an allocation for the program, not for HIP itself. `initialisations`:
  // where ROCr was initialised, by HIP or the program.
  bool is_by_program(HostStackId stack, std::span<const HostStackId> initialisations);
  // Those calls as a key; nothing: not for the program.
  std::optional<std::string> place_of(HostStackId stack,
                                      std::span<const HostStackId> initialisations);

  HostStacks stacks;
  Allocations allocations;

 private:
  fences::TaskDetails of(const fences::Task& task, GpuAddress address, bool writes);
  // For an instruction of a kernel; empty: not known.
  std::string line(uint32_t gpu, GpuAddress instruction);
  std::optional<fences::MemoryDetails> memory_at(GpuAddress address);
  std::optional<fences::MemoryDetails> memory_of(const fences::Finding& finding);

  struct CreatedQueue {
    HostStackId stack = 0;
    GpuAddress hsa_queue = 0;  // 0: not known
    std::optional<uint64_t> id = {};
    bool destroyed = false;
  };
  // ROCr sets the id when the driver has created the queue.
  static void look_for_id(CreatedQueue& queue);
  CreatedQueue creation_of(uint32_t queue);
  // `of_rocr`: the packet is one of ROCr's own.
  fences::QueueName name_of(uint32_t queue, const Publisher& published, bool of_rocr);
  std::optional<fences::Library> library_of(HostStackId stack);
  fences::Library library_of_process();
  fences::Libraries libraries_of(const fences::Finding& finding);

  std::mutex texts_mutex_;                             // guards the members from frames_ on
  std::mutex queues_mutex_;                            // taken last
  std::unordered_map<uint32_t, CreatedQueue> queues_;  // compute queues, by number
  const DwarfLibrary library_;
  HostFrames frames_;
  std::unique_ptr<SourceLines> lines_;  // null: not attached
  bool told_of_no_lines_ = false;
};

}  // namespace uptempo::vgpu::kfd
