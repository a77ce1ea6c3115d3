// The objects behind one process's descriptors, and the effect of each KFD request on them.
//
// Thread safety: any thread may call kfd().
//
// Errors: error numbers and the order of checks are those of kfd_chardev.c, including its
// inconsistencies. A request that is not emulated returns the error of a kernel without the feature
// and is reported in the log. May throw std::bad_alloc.
#pragma once

#include <linux/kfd_ioctl.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/host/host_pages.hpp"
#include "device/inject/injector.hpp"
#include "kfd/buffers.hpp"
#include "kfd/driver_profile.hpp"
#include "kfd/drm_objects.hpp"
#include "kfd/events.hpp"
#include "kfd/gpu.hpp"
#include "kfd/machine/backing.hpp"
#include "kfd/machine/machine.hpp"
#include "kfd/queues.hpp"
#include "kfd/report/check_report.hpp"
#include "kfd/report/fault_lines.hpp"

namespace uptempo::vgpu::kfd {

struct RuntimeEnableArgs;
struct ExportDmabufArgs;
struct IpcExportArgs;
struct IpcImportArgs;

class Requests {
 public:
  explicit Requests(const Options& from);

  // Executes request `number` on `args`, a block large enough for every request's arguments.
  // Returns 0 or a negative errno.
  int kfd(uint32_t number, void* args);

  // Resets a GPU for all processes of the machine. Returns when its queues of this process have
  // stopped. Returns false if the machine has no such GPU or its file was removed.
  bool reset_gpu(uint32_t gpu_index);

  // The GPU disappears from this process: its queues stop, hardware exceptions are set, and
  // requests that name it return -ENODEV, as after drm_dev_unplug() of Linux. Memory can still be
  // unmapped from it and freed.
  void remove_gpu(uint32_t gpu_index);
  // relaxed: a flag on its own; requests that run at that moment may still find the GPU
  bool is_gone(uint32_t gpu_index) const noexcept {
    return (gone_gpus_.load(std::memory_order_relaxed) >> gpu_index & 1) != 0;
  }

  Options options;
  const std::unique_ptr<Injector> injector;  // null without --inject
  const DriverProfile profile;
  Trace trace;
  SparseFile kfd_file;
  Events events;
  CheckReport check_report;
  std::unique_ptr<HostPages> host_pages;  // null unless fences are checked
  GpuGroup group;
  const std::unique_ptr<Machine> machine;
  const std::vector<std::unique_ptr<Gpu>> gpus;  // in the order of their nodes; not empty
  FaultLines fault_lines;                        // before the queues, whose threads use it
  Buffers buffers;
  DrmObjects drm_objects;
  Queues queues;

 private:
  std::atomic<bool> reports_exceptions_{false};  // RUNTIME_ENABLE was issued
  std::atomic<uint32_t> gone_gpus_{0};           // a bit for each GPU
  std::mutex resets_mutex_;
  std::vector<uint32_t> resets_seen_;  // of each GPU

  std::vector<std::unique_ptr<Gpu>> make_gpus();
  std::vector<Gpu*> all_gpus() const;
  std::vector<AddressSpace*> memory_of_gpus() const;
  struct Named {
    Gpu* gpu;   // null: no GPU has that identifier
    int error;  // 0, -EINVAL without a GPU, -ENODEV if it is gone
  };
  Named gpu_named(uint32_t id) const noexcept;
  int answer_for(uint32_t gpu_id) const noexcept { return gpu_named(gpu_id).error; }

  int create_event(kfd_ioctl_create_event_args& args);
  int allocate_memory(kfd_ioctl_alloc_memory_of_gpu_args& args);
  int free_memory(uint64_t handle);
  int wait_events(kfd_ioctl_wait_events_args& args);
  int apertures(kfd_ioctl_get_process_apertures_new_args& args);
  int tile_config(kfd_ioctl_get_tile_config_args& args);
  int map_or_unmap(kfd_ioctl_map_memory_to_gpu_args& args, bool map);
  int available_memory(kfd_ioctl_get_available_memory_args& args);
  // requests_sharing.cpp
  int ipc_export(IpcExportArgs& args);
  int ipc_import(IpcImportArgs& args);
  int export_dmabuf(ExportDmabufArgs& args);
  int import_dmabuf(kfd_ioctl_import_dmabuf_args& args);
  int dmabuf_info(kfd_ioctl_get_dmabuf_info_args& args);
  void lose_gpu(uint32_t gpu_index, bool gone);
  void watch_resets();
  void take_resets();
  int xnack(kfd_ioctl_set_xnack_mode_args& args);
  int runtime_enable(const RuntimeEnableArgs& args);
  // Logs the refusal of a request that the profile lacks. Returns -EINVAL, as kfd_ioctl() does for
  // an unknown number.
  int lacks(const char* request, const char* since) const;
};

}  // namespace uptempo::vgpu::kfd
