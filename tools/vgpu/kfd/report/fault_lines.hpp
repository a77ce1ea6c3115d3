// Source lines of instructions that faulted, for the messages of queue errors and memory faults.
//
// Thread safety: line() from any thread. Cost: as SourceLines, which are made for the first fault.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/memory.hpp"
#include "kfd/report/source_lines.hpp"

namespace uptempo::vgpu::kfd {

class FaultLines {
 public:
  // `memory_of_gpus` lives longer than this object.
  explicit FaultLines(std::vector<AddressSpace*> memory_of_gpus)
      : memory_of_gpus_(std::move(memory_of_gpus)) {}

  // Returns "sort.hip:12", or an empty text. Not inside a Reader's section.
  std::string line(uint32_t gpu, GpuAddress pc) {
    const std::lock_guard lock(mutex_);
    if (lines_ == nullptr) lines_ = std::make_unique<SourceLines>(memory_of_gpus_);
    return lines_->line(gpu, pc);
  }

 private:
  const std::vector<AddressSpace*> memory_of_gpus_;
  std::mutex mutex_;
  std::unique_ptr<SourceLines> lines_;
};

}  // namespace uptempo::vgpu::kfd
