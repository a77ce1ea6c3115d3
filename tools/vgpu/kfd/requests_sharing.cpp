// Exported and imported buffers, and resets of GPUs: the things that processes of a machine share.
// Rules are those of kfd_ipc.c (AMD's out-of-tree driver), kfd_chardev.c and kgd2kfd_pre_reset()
// (kfd_device.c).
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <cerrno>
#include <string>
#include <system_error>
#include <thread>

#include "cp/device_thread.hpp"
#include "kfd/dmabuf.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/requests.hpp"
#include "kfd/sharing_args.hpp"

namespace uptempo::vgpu::kfd {

int Requests::ipc_export(IpcExportArgs& args) {
  const auto [gpu, error] = gpu_named(args.gpu_id);
  if (error != 0) return error;
  Machine::Shared extent;
  return buffers.share(args.handle, *gpu, args.flags, args.name, extent);
}

int Requests::ipc_import(IpcImportArgs& args) {
  const auto [gpu, gpu_error] = gpu_named(args.gpu_id);
  if (gpu_error != 0) return gpu_error;
  Machine::Shared extent;
  const int error = buffers.import(args.name, *gpu, args.gpu_address, args.handle, extent);
  if (error != 0) return error;
  args.mmap_offset = extent.offset;
  args.flags = extent.kind.tag;
  return 0;
}

int Requests::export_dmabuf(ExportDmabufArgs& args) {
  const auto [gpu, gpu_error] = gpu_named(static_cast<uint32_t>(args.handle >> 32));
  if (gpu_error != 0) return gpu_error;
  ShareHandle name{};
  Machine::Shared extent;
  if (const int error = buffers.share(args.handle, *gpu, 0, name, extent); error != 0) return error;
  const int descriptor = make_dmabuf(name, extent.size_bytes, (args.flags & O_CLOEXEC) != 0);
  if (descriptor < 0) return descriptor;
  args.descriptor = static_cast<uint32_t>(descriptor);
  return 0;
}

int Requests::import_dmabuf(kfd_ioctl_import_dmabuf_args& args) {
  const auto [gpu, gpu_error] = gpu_named(args.gpu_id);
  if (gpu_error != 0) return gpu_error;
  ShareHandle name{};
  if (const int error = read_dmabuf(static_cast<int>(args.dmabuf_fd), name); error != 0)
    return error;
  uint64_t handle = 0;
  Machine::Shared extent;
  const int error = buffers.import(name, *gpu, args.va_addr, handle, extent);
  args.handle = handle;
  return error;
}

int Requests::dmabuf_info(kfd_ioctl_get_dmabuf_info_args& args) {
  ShareHandle name{};
  if (const int error = read_dmabuf(static_cast<int>(args.dmabuf_fd), name); error != 0)
    return error;
  const auto extent = machine->find(name);
  if (!extent) {
    note("GET_DMABUF_INFO: the buffer was freed, or is another machine's");
    return -EINVAL;
  }
  args.size = extent->size_bytes;
  args.gpu_id = gpus[extent->gpu]->id;
  args.flags = extent->kind.flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT |
                                     KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
  args.metadata_size = 0;  // graphics drivers attach metadata; compute buffers have none
  return 0;
}

// A thread for the process's life, as the object is never destroyed.
void Requests::watch_resets() {
  // Read first: a reset in between is then taken twice, not missed.
  const uint32_t now = machine->all_resets();
  for (const auto& gpu : gpus) resets_seen_.push_back(machine->resets(gpu->index));
  if (!machine->is_shared()) return;
  std::thread watcher = start_device_thread("vgpu-resets", [this, seen = now]() mutable {
    for (;;) {
      seen = machine->wait_for_reset(seen);
      take_resets();
    }
  });
  if (!watcher.joinable())
    throw std::system_error(EAGAIN, std::generic_category(),
                            "the thread that waits for GPU resets cannot be started");
  watcher.detach();
}

// Applies the resets that this process has not seen yet.
void Requests::take_resets() {
  const std::lock_guard lock(resets_mutex_);
  for (const auto& gpu : gpus) {
    const uint32_t count = machine->resets(gpu->index);
    if (count == resets_seen_[gpu->index]) continue;
    resets_seen_[gpu->index] = count;
    report((gpus.size() < 2 ? std::string("GPU") : "GPU " + std::to_string(gpu->index)) +
           " was reset: this process's queues on it have stopped for good");
    queues.stop(*gpu);
    events.gpu_reset(gpu->id);
  }
}

void Requests::remove_gpu(uint32_t gpu_index) {
  const Gpu& gpu = *gpus[gpu_index];
  report((gpus.size() < 2 ? std::string("the GPU") : "GPU " + std::to_string(gpu_index)) +
         " is gone: its queues have stopped for good");
  // relaxed: requests that run now may still find it
  gone_gpus_.fetch_or(1u << gpu_index, std::memory_order_relaxed);
  queues.stop(gpu);
  events.gpu_reset(gpu.id);
}

// On a thread of its own, because a device thread calls it, and the queues stop on that thread.
void Requests::lose_gpu(uint32_t gpu_index, bool gone) {
  std::thread thread = start_device_thread("vgpu-loses-gpu", [this, gpu_index, gone] {
    if (gone)
      remove_gpu(gpu_index);
    else
      reset_gpu(gpu_index);
  });
  if (!thread.joinable())
    return report("no thread can be started, so a GPU is not lost as --inject asks");
  thread.detach();
}

bool Requests::reset_gpu(uint32_t gpu_index) {
  if (gpu_index >= gpus.size() || !machine->reset(gpu_index)) return false;
  take_resets();
  return true;
}

}  // namespace uptempo::vgpu::kfd
