// User-mode queues: CREATE_QUEUE, UPDATE_QUEUE, DESTROY_QUEUE, SET_CU_MASK, ALLOC_QUEUE_GWS.
//
// Each queue owns one slot of its GPU's doorbell page. Ids, which are also the slots, are unique in
// the process. The first queue of a GPU starts that GPU's command processor and threads, so a
// program that only queries a device has none.
//
// Thread safety: any thread. One mutex, held while destroy() waits for the device.
//
// Errors: those of kfd_chardev.c and kfd_process_queue_manager.c. Invalid properties or an unknown
// queue -EINVAL; update of an unknown queue -EFAULT; no doorbell or SDMA queue left -ENOMEM. PM4
// compute queues are not emulated: -EOPNOTSUPP, with a line in the log.
#pragma once

#include <linux/kfd_ioctl.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cp/command_processor.hpp"
#include "kfd/buffers.hpp"
#include "kfd/gpu.hpp"
#include "kfd/report/hang_reports.hpp"

namespace uptempo::vgpu::kfd {

// SDMA engines of a target and queues per engine (amdgpu_device_queue_manager and kfd_device.c of
// Linux).
struct SdmaLayout {
  uint32_t engines;
  uint32_t xgmi_engines;
  uint32_t queues_per_engine;
};
SdmaLayout sdma_layout(const DeviceDescription& description);

// CREATE_QUEUE of KFD 1.17, which appended the SDMA engine. Older headers lack both names.
inline constexpr uint32_t kSdmaByEngine = 4;  // KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID
struct CreateQueueTail {
  std::byte before[offsetof(kfd_ioctl_create_queue_args, ctl_stack_size) + sizeof(uint32_t)];
  uint32_t sdma_engine;
  uint32_t pad;
};
static_assert(sizeof(CreateQueueTail) == 96);

class Queues {
 public:
  Queues(std::vector<Gpu*> gpus, Buffers& buffers, SparseFile& kfd_file);
  ~Queues();

  // `args` is KFD's struct, in and out. ring_size 0 creates a suspended queue. `sdma_engine`
  // matters for queues of type kSdmaByEngine only: engines count from 0, XGMI engines last.
  int create(const Gpu& gpu, kfd_ioctl_create_queue_args& args, uint32_t sdma_engine = 0);
  int update(const kfd_ioctl_update_queue_args& args);
  int destroy(uint32_t queue_id);
  int set_cu_mask(uint32_t queue_id, uint64_t mask_address, uint32_t bits);
  // Stops all queues of a GPU for good, those of later creation too: a process's queues stay
  // evicted after a reset (kgd2kfd_pre_reset()).
  void stop(const Gpu& gpu);
  bool exists(uint32_t queue_id) const;
  uint64_t held() const;
  // Returns the device's ordinal (cp/queue.hpp) of the compute queue whose ring begins at that
  // address, or nullopt.
  std::optional<uint32_t> with_ring(uint64_t ring_address) const;
  // The same for the queue with this id, if it is a compute queue.
  std::optional<uint32_t> ordinal_of_compute(uint32_t queue_id) const;
  // Reports of all queues and waves. Takes no lock of this class.
  HangReports& hang_reports() noexcept { return hang_reports_; }

 private:
  struct Queue {
    uint32_t gpu_index = 0;
    QueueId device_queue = 0;
    uint64_t ring_address = 0;
    std::optional<uint32_t> sdma_slot;  // none: a compute queue
    bool xgmi = false;                  // counts its slots apart
  };
  static constexpr uint32_t kMaxQueues = kDoorbellPageBytes / sizeof(uint64_t);

  uint64_t* doorbell(const Gpu& gpu, uint32_t queue_id) const;
  CommandProcessor& processor(uint32_t gpu_index);
  // requires mutex_
  std::optional<uint32_t> free_sdma_slot(const Gpu& gpu, bool xgmi,
                                         std::optional<uint32_t> engine) const;

  const std::vector<Gpu*> gpus_;
  Buffers& buffers_;
  SparseFile& kfd_file_;

  mutable std::mutex mutex_;
  uint32_t stopped_gpus_ = 0;                                  // one bit per GPU
  std::vector<std::unique_ptr<CommandProcessor>> processors_;  // one per GPU, null before its use
  std::unordered_map<uint32_t, Queue> queues_;                 // the key is also the doorbell slot
  HangReports hang_reports_;                                   // last: it uses the processors
};

}  // namespace uptempo::vgpu::kfd
