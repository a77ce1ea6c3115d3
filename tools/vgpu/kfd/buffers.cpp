#include "kfd/buffers.hpp"

#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

#include "cp/command_processor.hpp"
#include "device/bar/lazy_bar.hpp"
#include "device/fences/checker.hpp"
#include "device/hives.hpp"
#include "device/host/host_pages.hpp"
#include "device/memory_check/checker.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGpuAddressEnd = uint64_t{1} << 47;  // gpuvm_limit + 1, see process.cpp

// linux/kfd_ioctl.h defines the highest flag as a signed shift.
constexpr uint32_t kWritable = 1u << 31;
// KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT. Older headers lack it.
constexpr uint32_t kExtendedCoherence = 1u << 24;

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The flags take precedence as in gmc_v9_0_get_coherence_flags() (Linux gmc_v9_0.c). `local`: the
// buffer is the GPU's own.
MemoryKind kind_of(uint32_t flags, bool local) {
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0) return MemoryKind::doorbell;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) return MemoryKind::hdp_registers;
  const bool coherent = (flags & KFD_IOC_ALLOC_MEM_FLAGS_COHERENT) != 0;
  const bool extended = (flags & kExtendedCoherence) != 0;
  const bool uncached = (flags & KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED) != 0;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0) {
    if (!local)
      return uncached || extended ? MemoryKind::peer_local_uncached
             : coherent           ? MemoryKind::peer_local_fine
                                  : MemoryKind::peer_local;
    return uncached   ? MemoryKind::device_local_uncached
           : extended ? MemoryKind::device_local_extended
           : coherent ? MemoryKind::device_local_fine
                      : MemoryKind::device_local;
  }
  if (uncached) return MemoryKind::uncached;
  return coherent || extended ? MemoryKind::fine_grained : MemoryKind::coarse_grained;
}

memory_check::BufferKind checked_kind(uint32_t flags) {
  return {.flags = flags,
          .is_undefined = (flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0,
          .host_stores = (flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) != 0};
}

}  // namespace

Buffers::Buffers(std::vector<Gpu*> gpus, SparseFile& kfd_file)
    : gpus_(std::move(gpus)), kfd_file_(kfd_file), processors_(gpus_.size()) {}

memory_check::Checker* Buffers::memory_check() const noexcept {
  return gpus_.front()->device.memory_check;
}

void Buffers::set_command_processor(const Gpu& gpu, CommandProcessor* processor) {
  const std::lock_guard lock(mutex_);
  processors_[gpu.index] = processor;
  if (processor == nullptr) return;
  for (const auto& [handle, buffer] : buffers_)
    if (buffer.request.gpu_index == gpu.index && is_mapped(buffer, gpu) &&
        (buffer.request.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0)
      processor->attach_doorbell_page(reinterpret_cast<std::byte*>(buffer.request.gpu_address),
                                      buffer.host, buffer.request.size_bytes);
}

int Buffers::place(Buffer& buffer, uint64_t& mmap_offset) {
  const Request& request = buffer.request;
  Gpu& gpu = owner_of(buffer);
  HostPages* const host_pages = gpu.device.host_pages;
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0) {
    if (request.size_bytes != kDoorbellPageBytes) return -EINVAL;
    mmap_offset = doorbell_file_offset(gpu.index);
    buffer.host = kfd_file_.at(mmap_offset);
    return 0;
  }
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) {
    if (request.size_bytes != kRegisterPageBytes) return -EINVAL;
    mmap_offset = register_file_offset(gpu.index);
    buffer.host = kfd_file_.at(mmap_offset);
    return 0;
  }
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0) {
    if (request.program_address == 0) return -EINVAL;
    // The device reaches registered memory through the program's own mapping.
    if (host_pages != nullptr)
      host_pages->unwatch(reinterpret_cast<const std::byte*>(request.program_address),
                          request.size_bytes);
    if (const int error = check_user_pages(request.program_address, request.size_bytes); error != 0)
      return error;
    buffer.host = reinterpret_cast<std::byte*>(request.program_address & ~(kPage - 1));
    if (host_pages != nullptr && request.gpu_address == request.program_address)
      buffer.shared =
          SharedPages::replace(request.program_address, round_up(request.size_bytes, kPage));
    if (buffer.shared != nullptr) buffer.host = buffer.shared->alias();
    return 0;
  }
  const bool vram = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0;
  if (!vram && (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT) == 0) return -EINVAL;
  // An AQL ring with AQL_QUEUE_MEM has one backing, mapped twice, back to back.
  const bool twice = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0;
  const uint64_t bytes = round_up(twice ? request.size_bytes / 2 : request.size_bytes, kPage);
  const auto offset = gpu.machine.allocate(gpu.index, vram ? Heap::vram : Heap::gtt, bytes,
                                           bytes >= kLargePage ? kLargePage : kPage);
  if (!offset) {
    note("ALLOC_MEMORY_OF_GPU: " + std::to_string(bytes) + " contiguous bytes of " +
         (vram ? "VRAM" : "GTT") + " are not available");
    return -ENOMEM;
  }
  buffer.file_offset = *offset;
  buffer.file_bytes = bytes;
  buffer.host = gpu.render_file.at(*offset);
  mmap_offset = *offset;
  return 0;
}

int Buffers::allocate(const Request& request, uint64_t& handle, uint64_t& mmap_offset) {
  if (request.size_bytes == 0 || request.gpu_address % kPage != 0 || request.gpu_address == 0 ||
      request.gpu_address >= kGpuAddressEnd ||
      request.size_bytes > kGpuAddressEnd - request.gpu_address)
    return -EINVAL;
  const std::lock_guard lock(mutex_);
  Buffer buffer{.request = request};
  if (const int error = place(buffer, mmap_offset); error != 0) return error;
  handle = (uint64_t{owner_of(buffer).id} << 32) | next_handle_++;
  buffers_.emplace(handle, std::move(buffer));
  if (memory_check::Checker* const checker = memory_check())
    checker->add_buffer(request.gpu_address, request.size_bytes, checked_kind(request.flags));
  return 0;
}

int Buffers::free(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return -EINVAL;
  const Buffer& buffer = found->second;
  if (buffer.mapped != 0) return -EBUSY;
  Gpu& gpu = owner_of(buffer);
  if (gpu.lazy_bar != nullptr)
    gpu.lazy_bar->remove(reinterpret_cast<std::byte*>(buffer.request.gpu_address));
  if (memory_check::Checker* const checker = memory_check())
    checker->remove_buffer(buffer.request.gpu_address);
  if (buffer.file_bytes != 0) gpu.machine.release(gpu.index, buffer.file_offset);
  buffers_.erase(found);
  return 0;
}

int Buffers::share(uint64_t handle, const Gpu& gpu, uint32_t tag, ShareHandle& name,
                   Machine::Shared& extent) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end() || found->second.request.gpu_index != gpu.index) return -EINVAL;
  const Buffer& buffer = found->second;
  const uint32_t flags = buffer.request.flags;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0) {
    note("memory that the program has registered cannot be exported");
    return -EPERM;  // amdgpu_gem_prime_export()
  }
  if (buffer.file_bytes == 0) return -EINVAL;
  const auto shared = gpu.machine.share(gpu.index, buffer.file_offset, {flags, tag});
  if (!shared) return -ENOMEM;
  if (memory_check::Checker* const checker = memory_check())
    checker->share_buffer(buffer.request.gpu_address);
  name = *shared;
  extent = {gpu.index, buffer.file_offset, buffer.file_bytes, {flags, tag}};
  return 0;
}

int Buffers::import(const ShareHandle& name, const Gpu& gpu, uint64_t gpu_address, uint64_t& handle,
                    Machine::Shared& extent) {
  if (gpu_address % kPage != 0 || gpu_address >= kGpuAddressEnd) return -EINVAL;
  if (gpu.device.checker != nullptr || gpu.caches != nullptr || gpu.lazy_bar != nullptr) {
    note(
        "memory cannot be imported with --check fences, --incoherent or --bar lazy, which know "
        "memory by one address");
    return -EINVAL;
  }
  const std::lock_guard lock(mutex_);
  const auto shared = gpu.machine.hold(name);
  if (!shared) {
    note(std::string("no buffer has the imported handle") +
         (gpu.machine.is_shared() ? "" : ": processes share memory with --join NAME only"));
    return -EINVAL;
  }
  if (shared->gpu != gpu.index || shared->size_bytes > kGpuAddressEnd - gpu_address) {
    gpu.machine.release(shared->gpu, shared->offset);
    return -EINVAL;
  }
  // amdgpu_amdkfd_gpuvm_import_dmabuf(): an import may always be written and executed. The kind of
  // memory is the buffer's (amdgpu_bo::flags).
  constexpr uint32_t kKept = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT |
                             KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT |
                             KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED | kExtendedCoherence;
  const Request request{
      .gpu_index = gpu.index,
      .gpu_address = gpu_address,
      .size_bytes = shared->size_bytes,
      .flags = (shared->kind.flags & kKept) | kWritable | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE};
  extent = *shared;
  handle = (uint64_t{gpu.id} << 32) | next_handle_++;
  buffers_.emplace(handle, Buffer{.request = request,
                                  .host = gpu.render_file.at(shared->offset),
                                  .file_offset = shared->offset,
                                  .file_bytes = shared->size_bytes});
  if (memory_check::Checker* const checker = memory_check(); checker != nullptr && gpu_address != 0)
    checker->add_buffer(gpu_address, request.size_bytes, {.flags = request.flags});
  return 0;
}

int Buffers::move(uint64_t handle, uint64_t gpu_address) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return -EINVAL;
  Buffer& buffer = found->second;
  if (buffer.mapped != 0) return -EBUSY;
  if (gpu_address % kPage != 0 || gpu_address >= kGpuAddressEnd ||
      buffer.request.size_bytes > kGpuAddressEnd - gpu_address)
    return -EINVAL;
  if (memory_check::Checker* const checker = memory_check()) {
    if (buffer.request.gpu_address != 0) checker->remove_buffer(buffer.request.gpu_address);
    if (gpu_address != 0)
      checker->add_buffer(gpu_address, buffer.request.size_bytes,
                          checked_kind(buffer.request.flags));
  }
  buffer.request.gpu_address = gpu_address;
  return 0;
}

// Watches buffers that program and device reach by separate mappings. Excludes rings that are
// mapped twice, because only the packet processor reads them.
void Buffers::watch(const Buffer& buffer) {
  const Request& request = buffer.request;
  const Gpu& gpu = owner_of(buffer);
  const bool is_file =
      (request.flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)) != 0 &&
      buffer.file_bytes != 0;
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0 ||
      (!is_file && buffer.shared == nullptr))
    return;
  const uint64_t bytes = round_up(request.size_bytes, kPage);
  auto* program = reinterpret_cast<std::byte*>(request.gpu_address);
  if (is_file && !is_mapping_of(request.gpu_address, bytes, gpu.render_file, buffer.file_offset)) {
    const bool out_of_reach = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0 &&
                              (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) == 0;
    if (!out_of_reach) return;  // mapped elsewhere or not yet
    program = nullptr;
  }
  try {
    gpu.device.host_pages->add(request.gpu_address, program, buffer.host, bytes);
  } catch (const std::bad_alloc&) {
    note("MAP_MEMORY_TO_GPU: no memory to observe the host's accesses to a buffer of " +
         std::to_string(bytes) + " bytes");
  }
}

void Buffers::hold_back(const Buffer& buffer, const Gpu& gpu) {
  const Request& request = buffer.request;
  auto* const program = reinterpret_cast<std::byte*>(request.gpu_address);
  const uint64_t bytes = round_up(request.size_bytes, kPage);
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) {
    if (is_mapping_of(request.gpu_address, bytes, kfd_file_, register_file_offset(gpu.index)))
      gpu.lazy_bar->watch_registers(program);
    return;
  }
  const bool is_vram = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0;
  if (!is_vram || (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0 ||
      !is_mapping_of(request.gpu_address, bytes, gpu.render_file, buffer.file_offset))
    return;
  if (!gpu.lazy_bar->add(program, buffer.host, bytes))
    note("MAP_MEMORY_TO_GPU: no memory to hold back the host's stores to a buffer of " +
         std::to_string(bytes) + " bytes");
}

// Returns what hears of the GPU's writes to the buffer, or null.
Probes* Buffers::probes_of(const Buffer& buffer, const Gpu& gpu) const {
  const Gpu& owner = owner_of(buffer);
  const bool is_vram = (buffer.request.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0;
  if (owner.caches == nullptr || owner.index == gpu.index || !is_vram ||
      !peer_writes_probe(gpu.description().target) ||
      !share_hive(gpu.index, owner.index, gpu.options))
    return nullptr;
  return &owner.caches->probes();
}

int Buffers::map(uint64_t handle, Gpu& gpu) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return -ENOMEM;
  Buffer& buffer = found->second;
  if (is_mapped(buffer, gpu)) return 0;
  const Request& request = buffer.request;
  if (request.gpu_address == 0) return -EINVAL;  // imported without an address
  const bool is_owner = request.gpu_index == gpu.index;
  const MemoryKind kind = kind_of(request.flags, is_owner);
  CommandProcessor* const processor = processors_[gpu.index];
  const bool twice = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0;
  const uint64_t bytes = twice ? buffer.file_bytes : round_up(request.size_bytes, kPage);
  Mapping mapping{.begin = request.gpu_address,
                  .end = request.gpu_address + bytes,
                  .host = is_owner || kind != MemoryKind::doorbell
                              ? buffer.host
                              : reinterpret_cast<std::byte*>(request.gpu_address),
                  .writable = (request.flags & kWritable) != 0,
                  .executable = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE) != 0,
                  .kind = kind,
                  .probes = probes_of(buffer, gpu)};
  try {
    gpu.memory.map(mapping);
    if (twice) {
      mapping.begin += bytes;
      mapping.end += bytes;
      try {
        gpu.memory.map(mapping);
      } catch (const std::invalid_argument&) {
        gpu.memory.unmap(request.gpu_address);
        throw;
      }
    }
  } catch (const std::invalid_argument& overlap) {
    note(std::string("MAP_MEMORY_TO_GPU: ") + overlap.what());
    return -EINVAL;
  }
  if (gpu.device.host_pages != nullptr && buffer.mapped == 0) watch(buffer);
  buffer.mapped |= 1u << gpu.index;
  if (gpu.lazy_bar != nullptr) hold_back(buffer, gpu);
  if (processor != nullptr && is_owner && kind == MemoryKind::doorbell)
    processor->attach_doorbell_page(reinterpret_cast<std::byte*>(request.gpu_address), buffer.host,
                                    request.size_bytes);
  return 0;
}

int Buffers::unmap(uint64_t handle, Gpu& gpu) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return -ENODEV;
  Buffer& buffer = found->second;
  if (!is_mapped(buffer, gpu)) return -EINVAL;
  const Request& request = buffer.request;
  CommandProcessor* const processor = processors_[gpu.index];
  const Device& device = gpu.device;
  if (processor != nullptr && request.gpu_index == gpu.index &&
      (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0)
    processor->detach_doorbell_page(reinterpret_cast<std::byte*>(request.gpu_address));
  const bool is_last = buffer.mapped == 1u << gpu.index;
  if (device.host_pages != nullptr && is_last) device.host_pages->catch_up();
  if (device.checker != nullptr && is_last)
    device.checker->forget(request.gpu_address,
                           request.gpu_address + round_up(request.size_bytes, kPage));
  const auto remove = [&](GpuAddress begin) {
    if (processor != nullptr) {
      processor->unmap(begin);
    } else {
      gpu.memory.unmap(begin);
    }
  };
  remove(request.gpu_address);
  if (device.host_pages != nullptr && is_last) device.host_pages->remove(request.gpu_address);
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0)
    remove(request.gpu_address + buffer.file_bytes);
  if (processor != nullptr && (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE) != 0)
    processor->invalidate_code();
  buffer.mapped &= ~(1u << gpu.index);
  return 0;
}

uint64_t Buffers::vram_used_bytes(const Gpu& gpu) const {
  return gpu.machine.used_bytes(gpu.index, Heap::vram);
}

uint64_t Buffers::gtt_used_bytes(const Gpu& gpu) const {
  return gpu.machine.used_bytes(gpu.index, Heap::gtt);
}

Buffers::Held Buffers::held() const {
  const std::lock_guard lock(mutex_);
  Held held{.buffers = buffers_.size()};
  for (const auto& [handle, buffer] : buffers_) {
    const uint32_t flags = buffer.request.flags;
    if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0) {
      held.userptr_bytes += buffer.request.size_bytes;
    } else {
      ((flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0 ? held.vram_bytes : held.gtt_bytes) +=
          buffer.file_bytes;
    }
  }
  return held;
}

}  // namespace uptempo::vgpu::kfd
