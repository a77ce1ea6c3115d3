#include "kfd/report/finding_details.hpp"

#include <hsa/amd_hsa_queue.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "device/fences/report/remedy.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

// Several instructions may have accessed memory around the address, as their ranges have gaps.
constexpr size_t kMostLines = 3;

bool holds(const fences::Task& task, GpuAddress address) {
  return address >= task.origin.kernargs &&
         address - task.origin.kernargs < task.origin.kernarg_bytes;
}

}  // namespace

void FindingDetailer::attach(const std::vector<AddressSpace*>& memory_of_gpus) {
  lines_ = std::make_unique<SourceLines>(memory_of_gpus, &library_);
  lines_->open_now();
}

void FindingDetailer::created_queue(uint32_t number, GpuAddress read_index) {
  static_assert(offsetof(amd_queue_t, hsa_queue) == 0);
  support::find_python();  // it may be newer than the device
  const CreatedQueue created{.stack = stacks.capture(),
                             .hsa_queue = read_index - offsetof(amd_queue_t, read_dispatch_id)};
  const std::lock_guard lock(queues_mutex_);
  queues_[number] = created;
}

void FindingDetailer::destroys_queue(uint32_t number) {
  const std::lock_guard lock(queues_mutex_);
  const auto found = queues_.find(number);
  if (found == queues_.end()) return;
  look_for_id(found->second);
  found->second.destroyed = true;
}

void FindingDetailer::look_for_id(CreatedQueue& queue) {
  constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t id = kNone;
  if (!queue.id && !queue.destroyed &&
      copy_from_program(&id, queue.hsa_queue + offsetof(hsa_queue_t, id), sizeof id) && id != kNone)
    queue.id = id;
}

FindingDetailer::CreatedQueue FindingDetailer::creation_of(uint32_t queue) {
  const std::lock_guard lock(queues_mutex_);
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return {};
  look_for_id(found->second);
  return found->second;
}

fences::QueueName FindingDetailer::name_of(uint32_t queue, const Publisher& published,
                                           bool of_rocr) {
  if (published.stream != HipStream::unknown) return {.stream = published.stream};
  // The program does not know the queues of ROCr and HIP.
  if (of_rocr) return {};
  if (frames_.is_hip()) {
    const std::vector<HostFrames::RuntimeCall> calls =
        frames_.runtime_calls(stacks.frames(published.stack));
    if (published.stack == 0 || std::ranges::any_of(calls, &HostFrames::RuntimeCall::hip))
      return {};
  }
  const CreatedQueue created = creation_of(queue);
  return {.hsa_queue = created.hsa_queue, .hsa_queue_id = created.id};
}

std::string FindingDetailer::line(uint32_t gpu, GpuAddress instruction) {
  if (lines_ == nullptr) return {};
  std::string found = lines_->line(gpu, instruction);
  if (found.empty() && lines_->has_none() && !std::exchange(told_of_no_lines_, true))
    report("findings have " + lines_->missing());
  return found;
}

fences::TaskDetails FindingDetailer::of(const fences::Task& task, GpuAddress address, bool writes) {
  fences::TaskDetails details;
  if (task.kind == fences::Task::Kind::host && task.site != 0)
    details.site = frames_.place(task.site);
  details.published_by = frames_.frames(stacks.frames(task.origin.published.stack));
  if (task.kind == fences::Task::Kind::dispatch)
    details.queue_created_by = frames_.frames(stacks.frames(creation_of(task.queue).stack));
  if (task.kind != fences::Task::Kind::host)
    details.queue_name = name_of(task.queue, task.origin.published, task.origin.runtimes);
  if (task.instructions == nullptr) return details;
  for (const fences::InstructionRange& range : *task.instructions) {
    if (address < range.begin || address >= range.end || !(writes ? range.writes : range.reads))
      continue;
    std::string found = line(task.agent, range.instruction);
    if (found.empty() || std::ranges::find(details.lines, found) != details.lines.end()) continue;
    details.lines.push_back(std::move(found));
    if (details.lines.size() == kMostLines) break;
  }
  return details;
}

uint64_t FindingDetailer::allocation_place(GpuAddress address) const {
  const auto found = allocations.find(address);
  if (!found) return 0;
  // Device addresses are larger than every id of a stack.
  return found->allocated != 0 ? found->allocated : found->begin;
}

std::optional<fences::MemoryDetails> FindingDetailer::memory_at(GpuAddress address) {
  const auto found = allocations.find(address);
  if (!found) return std::nullopt;
  return fences::MemoryDetails{.kind = kind_in_words(*found),
                               .begin = found->begin,
                               .bytes = found->bytes,
                               .allocated_by = frames_.frames(stacks.frames(found->allocated))};
}

std::optional<fences::MemoryDetails> FindingDetailer::memory_of(const fences::Finding& finding) {
  auto memory = memory_at(finding.address);
  if (!memory) return std::nullopt;
  for (const fences::Task* const task : {finding.writer.get(), finding.reader.get()})
    if (holds(*task, finding.address)) {
      memory->kind += " (the kernargs of " + fences::readable_kernel(task->name) + ')';
      break;
    }
  return memory;
}

std::optional<fences::Library> FindingDetailer::library_of(HostStackId stack) {
  return frames_.library(stacks.frames(stack));
}

fences::Library FindingDetailer::library_of_process() {
  return frames_.is_hip() ? fences::Library::hip : fences::Library::hsa;
}

fences::Libraries FindingDetailer::libraries_of(const fences::Finding& finding) {
  const auto writer = library_of(finding.writer->origin.published.stack);
  const auto reader = library_of(finding.reader->origin.published.stack);
  // Where only one is known, the other one is most likely the same.
  const fences::Library other = writer ? *writer : reader.value_or(library_of_process());
  return {.writer = other, .reader = reader.value_or(other)};
}

fences::FindingDetails FindingDetailer::of(const fences::Finding& finding) {
  const std::lock_guard lock(texts_mutex_);
  const bool both_write = finding.conflict == fences::Finding::Conflict::write_after_write;
  return {.writer = of(*finding.writer, finding.address, true),
          .reader = of(*finding.reader, finding.address, both_write),
          .memory = memory_of(finding),
          .remedy = fences::remedy(finding, libraries_of(finding))};
}

memory_check::Details FindingDetailer::of(const memory_check::Finding& finding) {
  const std::lock_guard lock(texts_mutex_);
  const auto calls = [this](HostStackId stack) { return frames_.frames(stacks.frames(stack)); };
  memory_check::Details details;
  if (finding.packet) {
    details.published_by = calls(finding.packet->published.stack);
    details.queue_name =
        name_of(finding.packet->queue, finding.packet->published, finding.packet->of_rocr);
    if (finding.instruction != 0) details.line = line(finding.packet->gpu, finding.instruction);
  }
  if (finding.buffer) {
    const memory_check::Buffer& buffer = *finding.buffer;
    details.kind = kind_in_words({.flags = buffer.flags});
    details.allocated_by = calls(buffer.allocated);
    details.freed_by = calls(buffer.freed);
  }
  details.freed_again_by = calls(finding.freed_again);
  const HostStackId caller = finding.packet   ? finding.packet->published.stack
                             : finding.buffer ? finding.buffer->allocated
                                              : 0;
  details.library = library_of(caller).value_or(library_of_process());
  return details;
}

std::optional<std::string> FindingDetailer::place_of(HostStackId stack,
                                                     std::span<const HostStackId> initialisations) {
  if (!is_by_program(stack, initialisations)) return std::nullopt;
  const std::lock_guard lock(texts_mutex_);
  // Compilers make several calls of one in a loop.
  std::string place;
  for (const fences::HostFrame& frame : frames_.frames(stacks.frames(stack)))
    place += frame.function + '|' +
             (frame.source.empty() && frame.function.empty() ? std::to_string(frame.offset)
                                                             : frame.source) +
             '|';
  return place;
}

bool FindingDetailer::is_by_program(HostStackId stack,
                                    std::span<const HostStackId> initialisations) {
  const std::lock_guard lock(texts_mutex_);
  const std::vector<HostFrames::RuntimeCall> calls = frames_.runtime_calls(stacks.frames(stack));
  if (calls.empty()) return true;
  // HIP has functions that allocate for the program. Everything else that it allocates is its own.
  // Memory of its pools (hipMallocAsync) stays allocated when the program has freed it.
  const std::string& function = calls.front().function;
  constexpr std::array<std::string_view, 5> kPrefixes{"hipMalloc", "hipHostMalloc", "hipHostAlloc",
                                                      "hipMemAlloc", "hipExtMalloc"};
  if (calls.front().hip &&
      (std::ranges::none_of(kPrefixes, [&](auto prefix) { return function.starts_with(prefix); }) ||
       function.find("Async") != std::string::npos || function.find("Pool") != std::string::npos))
    return false;
  // HIP initialises itself in the program's first call. The two stacks part inside the second of
  // its functions at the earliest, where an allocation for the program has left the first.
  return std::ranges::none_of(initialisations, [&](HostStackId one) {
    const std::vector<HostFrames::RuntimeCall> init = frames_.runtime_calls(stacks.frames(one));
    return calls.size() >= 2 && init.size() >= 2 && calls[0].address == init[0].address &&
           calls[1].address == init[1].address;
  });
}

races::Details FindingDetailer::of(const races::Checked& dispatch, const races::Finding& finding) {
  const std::lock_guard lock(texts_mutex_);
  const auto line_of = [&](const races::Finding::Side& side) {
    std::string found = line(dispatch.gpu, side.instruction);
    if (found.ends_with(":0")) found.clear();  // DWARF: code without a line
    return found;
  };
  const std::string writer_line = line_of(finding.writer), other_line = line_of(finding.other);
  auto language = races::language_of(writer_line);
  if (!language) language = races::language_of(other_line);
  // C++ mangles the names of kernels, OpenCL C does not.
  if (!language && dispatch.kernel.starts_with("_Z")) language = races::Language::hip;
  if (!language)
    language =
        library_of(dispatch.published.stack).value_or(library_of_process()) == fences::Library::hip
            ? races::Language::hip
            : races::Language::opencl;
  return {.writer_line = writer_line,
          .other_line = other_line,
          .published_by = frames_.frames(stacks.frames(dispatch.published.stack)),
          .queue_name = name_of(dispatch.queue, dispatch.published, false),
          .memory = finding.lds ? std::nullopt : memory_at(finding.address),
          .language = *language};
}

}  // namespace uptempo::vgpu::kfd
