#include "kfd/queues.hpp"

#include <linux/kfd_ioctl.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "device/bar/lazy_bar.hpp"
#include "device/host/host_pages.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

int check_properties(uint64_t ring_size, uint32_t percentage, uint32_t priority) {
  const uint32_t share = percentage & 0xff;  // bits 8..15: the engine's pipe, since KFD 1.14
  if (share > KFD_MAX_QUEUE_PERCENTAGE || priority > KFD_MAX_QUEUE_PRIORITY) return -EINVAL;
  if ((ring_size & (ring_size - 1)) != 0) return -EINVAL;
  if (ring_size != 0 && ring_size < KFD_MIN_QUEUE_RING_SIZE) return -EINVAL;
  return 0;
}

}  // namespace

SdmaLayout sdma_layout(const DeviceDescription& description) {
  switch (description.gfx_target_version) {
    case 90000:
      return {.engines = 2, .xgmi_engines = 0, .queues_per_engine = 2};
    case 90006:
      return {.engines = 2, .xgmi_engines = 0, .queues_per_engine = 8};
    case 90008:
      return {.engines = 2, .xgmi_engines = 6, .queues_per_engine = 8};
    case 90402:
      return {.engines = 2, .xgmi_engines = 14, .queues_per_engine = 8};
    default:
      return {.engines = 2, .xgmi_engines = 3, .queues_per_engine = 8};
  }
}

Queues::Queues(std::vector<Gpu*> gpus, Buffers& buffers, SparseFile& kfd_file)
    : gpus_(std::move(gpus)),
      buffers_(buffers),
      kfd_file_(kfd_file),
      processors_(gpus_.size()),
      hang_reports_(gpus_) {}

Queues::~Queues() {
  for (const Gpu* gpu : gpus_) buffers_.set_command_processor(*gpu, nullptr);
}

uint64_t* Queues::doorbell(const Gpu& gpu, uint32_t queue_id) const {
  return reinterpret_cast<uint64_t*>(kfd_file_.at(doorbell_file_offset(gpu.index))) + queue_id;
}

CommandProcessor& Queues::processor(uint32_t gpu_index) {
  std::unique_ptr<CommandProcessor>& processor = processors_[gpu_index];
  if (processor == nullptr) {
    processor = std::make_unique<CommandProcessor>(gpus_[gpu_index]->device);
    buffers_.set_command_processor(*gpus_[gpu_index], processor.get());
    if ((stopped_gpus_ >> gpu_index & 1) != 0) processor->stop_queues();
    hang_reports_.add(*gpus_[gpu_index], *processor);
  }
  return *processor;
}

int Queues::create(const Gpu& gpu, kfd_ioctl_create_queue_args& args, uint32_t sdma_engine) {
  const SdmaLayout engines = sdma_layout(gpu.description());
  if (const int error =
          check_properties(args.ring_size, args.queue_percentage, args.queue_priority);
      error != 0)
    return error;
  if (args.ring_base_address == 0 && args.ring_size != 0) return -EFAULT;
  if (args.read_pointer_address == 0 || args.write_pointer_address == 0) return -EFAULT;
  const bool by_engine = args.queue_type == kSdmaByEngine;
  if (by_engine && sdma_engine >= engines.engines + engines.xgmi_engines) return -EINVAL;
  const bool xgmi = args.queue_type == KFD_IOC_QUEUE_TYPE_SDMA_XGMI ||
                    (by_engine && sdma_engine >= engines.engines);
  const bool sdma = args.queue_type == KFD_IOC_QUEUE_TYPE_SDMA || xgmi || by_engine;
  if (!sdma && args.queue_type != KFD_IOC_QUEUE_TYPE_COMPUTE_AQL) {
    note("CREATE_QUEUE: queues of type " + std::to_string(args.queue_type) +
         " are not emulated; use AQL or SDMA queues");
    return -EOPNOTSUPP;
  }

  const std::lock_guard lock(mutex_);
  std::optional<uint32_t> sdma_slot;
  if (sdma) {
    sdma_slot = free_sdma_slot(gpu, xgmi, by_engine ? std::optional(sdma_engine) : std::nullopt);
    if (!sdma_slot) {
      note(std::string("CREATE_QUEUE: all") + (xgmi ? " XGMI" : "") + " SDMA queues" +
           (by_engine ? " of engine " + std::to_string(sdma_engine) : "") + " are in use");
      return -ENOMEM;
    }
  }
  uint32_t id = 0;
  while (id < kMaxQueues && queues_.contains(id)) ++id;
  if (id == kMaxQueues) {
    note("CREATE_QUEUE: all " + std::to_string(kMaxQueues) +
         " doorbells of this process are in use");
    return -ENOMEM;
  }

  try {
    processor(gpu.index);
  } catch (const std::system_error& error) {
    note(std::string("CREATE_QUEUE: ") + error.what());
    return -ENOMEM;
  }
  if (gpu.lazy_bar != nullptr)
    for (const uint64_t address :
         {args.ring_base_address, args.read_pointer_address, args.write_pointer_address})
      gpu.lazy_bar->pass_through(reinterpret_cast<const std::byte*>(address));
  if (gpu.device.host_pages != nullptr) {
    // Stop watching these pages. The host stores each packet here and kernels of earlier packets
    // read theirs (blockDim of HIP), so every launch would cost a fault. The queue reports the same
    // events anyway.
    const auto unwatch = [&](uint64_t address, uint64_t bytes) {
      gpu.device.host_pages->unwatch(reinterpret_cast<const std::byte*>(address), bytes);
    };
    unwatch(args.ring_base_address, args.ring_size);
    unwatch(args.read_pointer_address, sizeof(uint64_t));
    unwatch(args.write_pointer_address, sizeof(uint64_t));
  }
  Queue queue{.gpu_index = gpu.index,
              .device_queue = 0,
              .ring_address = args.ring_base_address,
              .sdma_slot = sdma_slot,
              .xgmi = xgmi};
  // The device reads the slot from now on. release: orders the store before the queue's
  // publication.
  std::atomic_ref(*doorbell(gpu, id)).store(sdma ? 0 : ~uint64_t{0}, std::memory_order_release);
  if (sdma) {
    queue.device_queue = processor(gpu.index).create_sdma_queue(
        {.ring = args.ring_base_address,
         .ring_bytes = args.ring_size,
         .read_pointer = args.read_pointer_address,
         .write_pointer = args.write_pointer_address,
         .doorbell = doorbell(gpu, id),
         .engine = xgmi ? engines.engines + *sdma_slot % engines.xgmi_engines
                        : *sdma_slot % engines.engines});
  } else {
    queue.device_queue = processor(gpu.index).create_compute_queue(
        {.ring = args.ring_base_address,
         .ring_bytes = args.ring_size,
         .read_index = args.read_pointer_address,
         .write_index = args.write_pointer_address,
         .doorbell = doorbell(gpu, id),
         .percentage = args.queue_percentage & 0xff,
         .priority = args.queue_priority,
         .context_save_area = args.ctx_save_restore_address});
  }
  queues_.emplace(id, queue);
  args.queue_id = id;
  args.doorbell_offset = doorbell_file_offset(gpu.index) + id * sizeof(uint64_t);
  return 0;
}

// Slot i belongs to engine i modulo the number of engines of its kind. Without an engine, the first
// free slot is used, so engines take turns.
std::optional<uint32_t> Queues::free_sdma_slot(const Gpu& gpu, bool xgmi,
                                               std::optional<uint32_t> engine) const {
  const SdmaLayout sdma = sdma_layout(gpu.description());
  const uint32_t engines = xgmi ? sdma.xgmi_engines : sdma.engines;
  const uint32_t first = engine ? *engine - (xgmi ? sdma.engines : 0) : 0;
  for (uint32_t slot = first; slot < engines * sdma.queues_per_engine;
       slot += engine ? engines : 1) {
    const auto is_in_it = [&](const auto& entry) {
      return entry.second.gpu_index == gpu.index && entry.second.sdma_slot == slot &&
             entry.second.xgmi == xgmi;
    };
    if (std::ranges::none_of(queues_, is_in_it)) return slot;
  }
  return std::nullopt;
}

int Queues::update(const kfd_ioctl_update_queue_args& args) {
  if (const int error =
          check_properties(args.ring_size, args.queue_percentage, args.queue_priority);
      error != 0)
    return error;
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(args.queue_id);
  if (found == queues_.end()) return -EFAULT;
  if (processor(found->second.gpu_index)
          .update_queue(found->second.device_queue, args.ring_base_address, args.ring_size,
                        args.queue_percentage & 0xff, args.queue_priority))
    return 0;
  note("UPDATE_QUEUE: a queue's ring cannot be moved or resized");
  return -EINVAL;
}

int Queues::destroy(uint32_t queue_id) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(queue_id);
  if (found == queues_.end()) return -EINVAL;
  processor(found->second.gpu_index).destroy_queue(found->second.device_queue);
  queues_.erase(found);
  return 0;
}

int Queues::set_cu_mask(uint32_t queue_id, uint64_t mask_address, uint32_t bits) {
  constexpr uint32_t kMaxBits = 1024;  // bits beyond are ignored (kfd_chardev.c)
  if (bits == 0 || bits % 32 != 0) return -EINVAL;
  std::array<uint32_t, kMaxBits / 32> mask{};
  const size_t words = std::min(bits, kMaxBits) / 32;
  if (!copy_from_program(mask.data(), mask_address, words * sizeof mask[0])) return -EFAULT;
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(queue_id);
  if (found == queues_.end()) return -EFAULT;
  processor(found->second.gpu_index)
      .set_cu_mask(found->second.device_queue, std::span(mask).first(words));
  return 0;
}

void Queues::stop(const Gpu& gpu) {
  const std::lock_guard lock(mutex_);
  stopped_gpus_ |= 1u << gpu.index;
  if (processors_[gpu.index] != nullptr) processors_[gpu.index]->stop_queues();
}

bool Queues::exists(uint32_t queue_id) const {
  const std::lock_guard lock(mutex_);
  return queues_.contains(queue_id);
}

uint64_t Queues::held() const {
  const std::lock_guard lock(mutex_);
  return queues_.size();
}

std::optional<uint32_t> Queues::with_ring(uint64_t ring_address) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(queues_, [&](const auto& each) {
    return !each.second.sdma_slot && each.second.ring_address == ring_address;
  });
  if (found == queues_.end()) return std::nullopt;
  return ordinal_of(found->second.device_queue);
}

std::optional<uint32_t> Queues::ordinal_of_compute(uint32_t queue_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(queue_id);
  if (found == queues_.end() || found->second.sdma_slot) return std::nullopt;
  return ordinal_of(found->second.device_queue);
}

}  // namespace uptempo::vgpu::kfd
