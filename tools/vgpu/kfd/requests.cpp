#include "kfd/requests.hpp"

#include <linux/kfd_ioctl.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <string_view>
#include <vector>

#include "device/apertures.hpp"
#include "device/clock.hpp"
#include "device/inject/rules.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/process.hpp"
#include "kfd/program_memory.hpp"
#include "kfd/sharing_args.hpp"

namespace uptempo::vgpu::kfd {

struct RuntimeEnableArgs {
  uint64_t r_debug;
  uint32_t mode_mask;  // bit 0: enable
  uint32_t capabilities_mask;
};

namespace {

uint64_t nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// Reads the device's clock and the host's clocks at one moment. ROCr converts packet times with the
// result, so a thread that loses its core between two reads would shift all of them: it reads
// again.
void read_clocks(kfd_ioctl_get_clock_counters_args& clocks) {
  constexpr uint64_t kAtOnceNs = 1000;
  uint64_t least_ns = UINT64_MAX;
  for (int attempt = 0; attempt < 20 && least_ns > kAtOnceNs; ++attempt) {
    const uint64_t begin_ns = host_clock_ns();
    const uint64_t gpu = gpu_clock_ticks();
    const uint64_t system = nanoseconds(CLOCK_BOOTTIME);
    const uint64_t cpu = nanoseconds(CLOCK_MONOTONIC_RAW);
    const uint64_t took_ns = host_clock_ns() - begin_ns;
    if (took_ns >= least_ns) continue;
    least_ns = took_ns;
    clocks.gpu_clock_counter = gpu;
    clocks.cpu_clock_counter = cpu;
    clocks.system_clock_counter = system;
  }
  clocks.system_clock_freq = 1'000'000'000;
}

// A gpuvm limit of at least 2^47 - 1 makes ROCT use plain mmap addresses for all memory.
kfd_process_device_apertures apertures_of(const Gpu& gpu) {
  return {
      .lds_base = aperture_base(kSharedAperture),
      .lds_limit = aperture_limit(kSharedAperture),
      .scratch_base = aperture_base(kPrivateAperture),
      .scratch_limit = aperture_limit(kPrivateAperture),
      .gpuvm_base = 0x4000,
      .gpuvm_limit = (uint64_t{1} << 47) - 1,
      .gpu_id = gpu.id,
      .pad = 0,
  };
}

template <typename Args>
Args& as(void* args) {
  return *static_cast<Args*>(args);
}

constexpr uint32_t kRuntimeEnable = 0x25;  // AMDKFD_IOC_RUNTIME_ENABLE, since 1.13

}  // namespace

Requests::Requests(const Options& from)
    : options(from),
      injector(options.inject.empty() ? nullptr : std::make_unique<Injector>(options.inject)),
      profile(options.kfd_minor),
      trace(options.trace_file),
      kfd_file("uptempo-vgpu-kfd", kfd_file_bytes(options.gpus.size())),
      events(profile.compares_event_ages()),
      check_report(options),
      host_pages(options.checks.fences ? std::make_unique<HostPages>() : nullptr),
      machine(options.join.empty() ? std::make_unique<Machine>(memory_of(options))
                                   : std::make_unique<Machine>(options.join, properties_of(options),
                                                               memory_of(options))),
      gpus(make_gpus()),
      fault_lines(memory_of_gpus()),
      buffers(all_gpus(), kfd_file),
      drm_objects(buffers),
      queues(all_gpus(), buffers, kfd_file) {
  for (const auto& gpu : gpus)
    gpu->device.source_line = [this, index = gpu->index](GpuAddress pc) {
      return fault_lines.line(index, pc);
    };
  if (FindingDetailer* const details = check_report.details()) details->attach(memory_of_gpus());
  watch_resets();
}

std::vector<std::unique_ptr<Gpu>> Requests::make_gpus() {
  std::vector<std::unique_ptr<Gpu>> made;
  Injector* const of_device =
      injector != nullptr && injector->concerns_device() ? injector.get() : nullptr;
  for (uint32_t index = 0; index < options.gpus.size(); ++index)
    made.push_back(std::make_unique<Gpu>(
        options, index,
        ProcessParts{.machine = *machine,
                     .trace = trace,
                     .events = events,
                     .group = group,
                     .checker = check_report.checker(),
                     .races = check_report.races(),
                     .host_stacks = check_report.details() == nullptr
                                        ? nullptr
                                        : &check_report.details()->stacks,
                     .host_pages = host_pages.get(),
                     .ignored_atomics = check_report.ignored_atomics(index),
                     .injector = of_device,
                     .gpu_lost = [this, index](bool gone) { lose_gpu(index, gone); },
                     .memory_check = check_report.memory_checker()}));
  return made;
}

std::vector<AddressSpace*> Requests::memory_of_gpus() const {
  std::vector<AddressSpace*> memory;
  for (const auto& gpu : gpus) memory.push_back(&gpu->memory);
  return memory;
}

std::vector<Gpu*> Requests::all_gpus() const {
  std::vector<Gpu*> all;
  for (const auto& gpu : gpus) all.push_back(gpu.get());
  return all;
}

Requests::Named Requests::gpu_named(uint32_t id) const noexcept {
  const auto found = std::ranges::find_if(gpus, [id](const auto& gpu) { return gpu->id == id; });
  if (found == gpus.end()) return {.gpu = nullptr, .error = -EINVAL};
  return {.gpu = found->get(), .error = is_gone((*found)->index) ? -ENODEV : 0};
}

int Requests::kfd(uint32_t number, void* args) {
  switch (number) {
    case _IOC_NR(AMDKFD_IOC_GET_VERSION): {
      auto& version = as<kfd_ioctl_get_version_args>(args);
      version = {.major_version = profile.major(), .minor_version = profile.minor()};
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE): {
      auto& queue = as<kfd_ioctl_create_queue_args>(args);
      const auto [gpu, error] = gpu_named(queue.gpu_id);
      if (error != 0) return error;
      if (queue.queue_type == kSdmaByEngine && !profile.selects_sdma_engine())
        return lacks("CREATE_QUEUE with an SDMA engine", "1.17");
      const int created = queues.create(*gpu, queue, as<CreateQueueTail>(args).sdma_engine);
      if (FindingDetailer* const details = check_report.details();
          details != nullptr && created == 0)
        if (const auto ordinal = queues.with_ring(queue.ring_base_address))
          details->created_queue(*ordinal, queue.read_pointer_address);
      return created;
    }
    case _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE): {
      const uint32_t queue_id = as<kfd_ioctl_destroy_queue_args>(args).queue_id;
      if (FindingDetailer* const details = check_report.details(); details != nullptr)
        if (const auto ordinal = queues.ordinal_of_compute(queue_id))
          details->destroys_queue(*ordinal);
      return queues.destroy(queue_id);
    }
    case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE):
      return queues.update(as<kfd_ioctl_update_queue_args>(args));
    case _IOC_NR(AMDKFD_IOC_SET_CU_MASK): {
      const auto& mask = as<kfd_ioctl_set_cu_mask_args>(args);
      return queues.set_cu_mask(mask.queue_id, mask.cu_mask_ptr, mask.num_cu_mask);
    }
    case _IOC_NR(AMDKFD_IOC_ALLOC_QUEUE_GWS): {
      auto& gws = as<kfd_ioctl_alloc_queue_gws_args>(args);
      gws.first_gws = 0;
      return queues.exists(gws.queue_id) ? 0 : -EINVAL;
    }
    case _IOC_NR(AMDKFD_IOC_GET_CLOCK_COUNTERS): {
      auto& clocks = as<kfd_ioctl_get_clock_counters_args>(args);
      read_clocks(clocks);
      if (clocks.gpu_id != 0 && gpu_named(clocks.gpu_id).error != 0) clocks.gpu_clock_counter = 0;
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_GET_PROCESS_APERTURES): {
      auto& all = as<kfd_ioctl_get_process_apertures_args>(args);
      const size_t count = std::min(gpus.size(), std::size(all.process_apertures));
      for (size_t i = 0; i < count; ++i) all.process_apertures[i] = apertures_of(*gpus[i]);
      all.num_of_nodes = static_cast<uint32_t>(count);
      return 0;
    }
    case _IOC_NR(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW):
      return apertures(as<kfd_ioctl_get_process_apertures_new_args>(args));
    case _IOC_NR(AMDKFD_IOC_CREATE_EVENT):
      return create_event(as<kfd_ioctl_create_event_args>(args));
    case _IOC_NR(AMDKFD_IOC_DESTROY_EVENT):
      return events.destroy(as<kfd_ioctl_destroy_event_args>(args).event_id);
    case _IOC_NR(AMDKFD_IOC_SET_EVENT):
      return events.set(as<kfd_ioctl_set_event_args>(args).event_id);
    case _IOC_NR(AMDKFD_IOC_RESET_EVENT):
      return events.reset(as<kfd_ioctl_reset_event_args>(args).event_id);
    case _IOC_NR(AMDKFD_IOC_WAIT_EVENTS):
      return wait_events(as<kfd_ioctl_wait_events_args>(args));
    case _IOC_NR(AMDKFD_IOC_SET_MEMORY_POLICY):
      return answer_for(as<kfd_ioctl_set_memory_policy_args>(args).gpu_id);
    case _IOC_NR(AMDKFD_IOC_SET_SCRATCH_BACKING_VA):
      return answer_for(as<kfd_ioctl_set_scratch_backing_va_args>(args).gpu_id);
    case _IOC_NR(AMDKFD_IOC_SET_TRAP_HANDLER):
      return answer_for(as<kfd_ioctl_set_trap_handler_args>(args).gpu_id);
    case _IOC_NR(AMDKFD_IOC_ACQUIRE_VM):
      return answer_for(as<kfd_ioctl_acquire_vm_args>(args).gpu_id);
    case _IOC_NR(AMDKFD_IOC_GET_TILE_CONFIG):
      return tile_config(as<kfd_ioctl_get_tile_config_args>(args));
    case _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU):
      return allocate_memory(as<kfd_ioctl_alloc_memory_of_gpu_args>(args));
    case _IOC_NR(AMDKFD_IOC_FREE_MEMORY_OF_GPU):
      return free_memory(as<kfd_ioctl_free_memory_of_gpu_args>(args).handle);
    case _IOC_NR(AMDKFD_IOC_MAP_MEMORY_TO_GPU):
      return map_or_unmap(as<kfd_ioctl_map_memory_to_gpu_args>(args), true);
    case _IOC_NR(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU):
      return map_or_unmap(as<kfd_ioctl_map_memory_to_gpu_args>(args), false);
    case kIpcExport:
      return ipc_export(as<IpcExportArgs>(args));
    case kIpcImport:
      return ipc_import(as<IpcImportArgs>(args));
    case kExportDmabuf:
      if (!profile.exports_dmabufs()) return lacks("EXPORT_DMABUF", "1.12");
      return export_dmabuf(as<ExportDmabufArgs>(args));
    case _IOC_NR(AMDKFD_IOC_IMPORT_DMABUF):
      return import_dmabuf(as<kfd_ioctl_import_dmabuf_args>(args));
    case _IOC_NR(AMDKFD_IOC_GET_DMABUF_INFO):
      return dmabuf_info(as<kfd_ioctl_get_dmabuf_info_args>(args));
    case _IOC_NR(AMDKFD_IOC_AVAILABLE_MEMORY):
      if (!profile.tells_available_memory()) return lacks("AVAILABLE_MEMORY", "1.9");
      return available_memory(as<kfd_ioctl_get_available_memory_args>(args));
    case _IOC_NR(AMDKFD_IOC_SET_XNACK_MODE):
      return xnack(as<kfd_ioctl_set_xnack_mode_args>(args));
    case kRuntimeEnable:
      return runtime_enable(as<RuntimeEnableArgs>(args));
    case _IOC_NR(AMDKFD_IOC_SVM):
      note("KFD ioctl 0x20 (SVM) is not emulated: the topology does not offer it");
      return -EPERM;  // a kernel without CONFIG_HSA_AMD_SVM
    default:
      break;
  }
  const std::string_view name = kfd_ioctl_name(number);
  char text[96];
  std::snprintf(text, sizeof text, "KFD ioctl 0x%02x (%.*s) is not emulated", number,
                static_cast<int>(name.size()), name.data());
  note(text);
  return -EINVAL;  // kfd_ioctl() of the kernel returns this for every unknown number
}

int Requests::create_event(kfd_ioctl_create_event_args& args) {
  // event_page_offset, input: the handle of the event page on first use. The device raises events
  // by id and needs no slot in the page. ROCr finds each signal's mailbox through it.
  uint32_t id = 0;
  const int result = events.create(args.event_type, args.auto_reset != 0, id);
  if (result != 0) return result;
  args.event_id = id;
  args.event_trigger_data = id;
  args.event_slot_index = id;
  // Must always be nonzero. Otherwise ROCT gives the event no mailbox and blocked waits never wake
  // (events.c:117).
  args.event_page_offset = register_file_offset(0);
  return 0;
}

int Requests::allocate_memory(kfd_ioctl_alloc_memory_of_gpu_args& args) {
  const auto [gpu, gpu_error] = gpu_named(args.gpu_id);
  if (gpu_error != 0) return gpu_error;
  constexpr uint32_t kHostVisible = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
  if (options.small_bar && (args.flags & kHostVisible) == kHostVisible) return -EINVAL;
  uint64_t handle = 0;
  uint64_t mmap_offset = args.mmap_offset;
  const int error = buffers.allocate({.gpu_index = gpu->index,
                                      .gpu_address = args.va_addr,
                                      .size_bytes = args.size,
                                      .flags = args.flags,
                                      .program_address = args.mmap_offset},
                                     handle, mmap_offset);
  if (FindingDetailer* const details = check_report.details(); details != nullptr && error == 0)
    details->allocations.add({.begin = args.va_addr,
                              .bytes = args.size,
                              .flags = args.flags,
                              .registered = (args.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0 &&
                                            args.mmap_offset != args.va_addr,
                              .allocated = details->stacks.capture(),
                              .handle = handle});
  args.handle = handle;
  args.mmap_offset = mmap_offset;
  return error;
}

int Requests::free_memory(uint64_t handle) {
  const int error = buffers.free(handle);
  if (FindingDetailer* const details = check_report.details(); details != nullptr && error == 0)
    details->allocations.remove(handle);
  return error;
}

int Requests::wait_events(kfd_ioctl_wait_events_args& args) {
  if (args.num_events > Events::kMaxWaitedEvents) return -ENOMEM;
  std::vector<EventData> events_data(args.num_events);
  const size_t bytes = events_data.size() * sizeof(EventData);
  if (!copy_from_program(events_data.data(), args.events_ptr, bytes)) return -EFAULT;
  uint32_t result = KFD_IOC_WAIT_RESULT_FAIL;
  const int error = events.wait(events_data.data(), args.num_events, args.wait_for_all != 0,
                                args.timeout, result);
  if (error == 0 && result == KFD_IOC_WAIT_RESULT_COMPLETE &&
      !copy_to_program(args.events_ptr, events_data.data(), bytes))
    return -EFAULT;
  args.wait_result = result;
  return error;
}

int Requests::apertures(kfd_ioctl_get_process_apertures_new_args& args) {
  if (args.num_of_nodes != 0) {
    std::vector<kfd_process_device_apertures> all;
    for (const auto& gpu : gpus) all.push_back(apertures_of(*gpu));
    all.resize(std::min<size_t>(all.size(), args.num_of_nodes));
    if (!copy_to_program(args.kfd_process_device_apertures_ptr, all.data(),
                         all.size() * sizeof all[0]))
      return -EFAULT;
    args.num_of_nodes = static_cast<uint32_t>(all.size());
  } else {
    args.num_of_nodes = static_cast<uint32_t>(gpus.size());
  }
  return 0;
}

int Requests::available_memory(kfd_ioctl_get_available_memory_args& args) {
  const auto [gpu, error] = gpu_named(args.gpu_id);
  if (error != 0) return error;
  args.available = gpu->vram_bytes() - buffers.vram_used_bytes(*gpu);
  return 0;
}

int Requests::tile_config(kfd_ioctl_get_tile_config_args& args) {
  if (const int error = answer_for(args.gpu_id); error != 0) return error;
  // GFX9 has no tile mode tables (amdgpu_amdkfd_get_tile_config).
  const uint32_t tiles = std::min<uint32_t>(args.num_tile_configs, 32);
  const uint32_t macro_tiles = std::min<uint32_t>(args.num_macro_tile_configs, 16);
  constexpr std::array<uint32_t, 32> kZeros{};
  if (!copy_to_program(args.tile_config_ptr, kZeros.data(), tiles * sizeof(uint32_t)) ||
      !copy_to_program(args.macro_tile_config_ptr, kZeros.data(), macro_tiles * sizeof(uint32_t)))
    return -EFAULT;
  args.num_tile_configs = tiles;
  args.num_macro_tile_configs = macro_tiles;
  args.gb_addr_config = 0x2a110002;
  args.num_banks = 0;
  args.num_ranks = 0;
  return 0;
}

// Unmapping works for a GPU that is gone: unmap_bo_from_gpuvm() ignores that page tables can no
// longer be written, where amdgpu_vm_update_range() returns ENODEV.
int Requests::map_or_unmap(kfd_ioctl_map_memory_to_gpu_args& args, bool map) {
  static_assert(sizeof(kfd_ioctl_map_memory_to_gpu_args) ==
                sizeof(kfd_ioctl_unmap_memory_from_gpu_args));
  if (args.n_devices == 0 || args.n_success > args.n_devices) return -EINVAL;
  for (; args.n_success < args.n_devices; ++args.n_success) {
    uint32_t id = 0;
    if (!copy_from_program(&id, args.device_ids_array_ptr + args.n_success * sizeof id, sizeof id))
      return -EFAULT;
    const auto [gpu, gpu_error] = gpu_named(id);
    if (gpu == nullptr || (map && gpu_error != 0)) return gpu_error;
    if (const int error = map ? buffers.map(args.handle, *gpu) : buffers.unmap(args.handle, *gpu);
        error != 0)
      return error;
  }
  return 0;
}

int Requests::xnack(kfd_ioctl_set_xnack_mode_args& args) {
  if (args.xnack_enabled > 0) return -EPERM;  // the emulated devices cannot retry faults
  args.xnack_enabled = 0;
  return 0;
}

int Requests::runtime_enable(const RuntimeEnableArgs& args) {
  if (!profile.reports_exceptions()) return lacks("RUNTIME_ENABLE", "1.13");
  const bool enable = (args.mode_mask & 1) != 0;
  bool expected = !enable;
  if (!reports_exceptions_.compare_exchange_strong(expected, enable))
    return enable ? -EBUSY : -EPERM;
  for (const auto& gpu : gpus) gpu->device.reports_exceptions = enable;
  return 0;
}

int Requests::lacks(const char* request, const char* since) const {
  note("KFD ioctl " + std::string(request) + " exists from KFD " + since + "; --kfd is 1." +
       std::to_string(profile.minor()));
  return -EINVAL;
}

}  // namespace uptempo::vgpu::kfd
