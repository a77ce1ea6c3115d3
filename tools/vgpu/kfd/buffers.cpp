#include "kfd/buffers.hpp"

#include <linux/kfd_ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <stdexcept>
#include <string>

#include "cp/command_processor.hpp"
#include "device/bar/lazy_bar.hpp"
#include "device/fences/checker.hpp"
#include "device/host_pages.hpp"
#include "kfd/log.hpp"
#include "kfd/program_memory.hpp"

namespace uptempo::vgpu::kfd {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLargePage = uint64_t{2} << 20;
constexpr uint64_t kGpuAddressEnd = uint64_t{1} << 47;  // gpuvm_limit + 1, see process.cpp

// linux/kfd_ioctl.h defines the highest flag as a signed shift.
constexpr uint32_t kWritable = 1u << 31;
// KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT. Older headers lack it.
constexpr uint32_t kExtendedCoherence = 1u << 24;

uint64_t system_memory_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The flags take precedence as in gmc_v9_0_get_coherence_flags() (Linux gmc_v9_0.c).
MemoryKind kind_of(uint32_t flags) {
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0) return MemoryKind::doorbell;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) return MemoryKind::hdp_registers;
  const bool coherent = (flags & KFD_IOC_ALLOC_MEM_FLAGS_COHERENT) != 0;
  const bool extended = (flags & kExtendedCoherence) != 0;
  const bool uncached = (flags & KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED) != 0;
  if ((flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0)
    return uncached   ? MemoryKind::device_local_uncached
           : extended ? MemoryKind::device_local_extended
           : coherent ? MemoryKind::device_local_fine
                      : MemoryKind::device_local;
  if (uncached) return MemoryKind::uncached;
  return coherent || extended ? MemoryKind::fine_grained : MemoryKind::coarse_grained;
}

}  // namespace

uint64_t Buffers::render_file_bytes(uint64_t vram_bytes) {
  return vram_bytes + round_up(system_memory_bytes(), kLargePage);
}

Buffers::Buffers(Device& device, uint32_t gpu_id, SparseFile& render_file, SparseFile& kfd_file,
                 uint64_t vram_bytes)
    : device_(device),
      gpu_id_(gpu_id),
      render_file_(render_file),
      kfd_file_(kfd_file),
      vram_bytes_(vram_bytes),
      gtt_bytes_(render_file.size_bytes() - vram_bytes),
      vram_(0, vram_bytes),
      gtt_(vram_bytes, render_file.size_bytes()) {}

void Buffers::set_command_processor(CommandProcessor* processor) {
  const std::lock_guard lock(mutex_);
  processor_ = processor;
  if (processor_ == nullptr) return;
  for (const auto& [handle, buffer] : buffers_)
    if (buffer.mapped && (buffer.request.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0)
      processor_->attach_doorbell_page(reinterpret_cast<std::byte*>(buffer.request.gpu_address),
                                       buffer.host, buffer.request.size_bytes);
}

int Buffers::place(Buffer& buffer, uint64_t& mmap_offset) {
  const Request& request = buffer.request;
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0) {
    if (request.size_bytes != kDoorbellPageBytes) return -EINVAL;
    mmap_offset = kDoorbellFileOffset;
    buffer.host = kfd_file_.at(kDoorbellFileOffset);
    return 0;
  }
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) {
    if (request.size_bytes != kRegisterPageBytes) return -EINVAL;
    mmap_offset = kRegisterFileOffset;
    buffer.host = kfd_file_.at(kRegisterFileOffset);
    return 0;
  }
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0) {
    if (request.program_address == 0) return -EINVAL;
    // The device reaches registered memory through the program's own mapping.
    if (device_.host_pages != nullptr)
      device_.host_pages->unwatch(reinterpret_cast<const std::byte*>(request.program_address),
                                  request.size_bytes);
    if (const int error = check_user_pages(request.program_address, request.size_bytes); error != 0)
      return error;
    buffer.host = reinterpret_cast<std::byte*>(request.program_address & ~(kPage - 1));
    if (device_.host_pages != nullptr && request.gpu_address == request.program_address)
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
  const auto offset =
      (vram ? vram_ : gtt_).allocate(bytes, bytes >= kLargePage ? kLargePage : kPage);
  if (!offset) {
    note("ALLOC_MEMORY_OF_GPU: " + std::to_string(bytes) + " contiguous bytes of " +
         (vram ? "VRAM" : "GTT") + " are not available");
    return -ENOMEM;
  }
  (vram ? vram_used_ : gtt_used_) += bytes;
  buffer.file_offset = *offset;
  buffer.file_bytes = bytes;
  buffer.host = render_file_.at(*offset);
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
  handle = (uint64_t{gpu_id_} << 32) | next_handle_++;
  buffers_.emplace(handle, std::move(buffer));
  return 0;
}

int Buffers::free(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return -EINVAL;
  const Buffer& buffer = found->second;
  if (buffer.mapped) return -EBUSY;
  if (device_.lazy_bar != nullptr)
    device_.lazy_bar->remove(reinterpret_cast<std::byte*>(buffer.request.gpu_address));
  if (buffer.file_bytes != 0) {
    const bool vram = buffer.file_offset < vram_bytes_;
    render_file_.release(buffer.file_offset, buffer.file_bytes);
    (vram ? vram_ : gtt_).free(buffer.file_offset, buffer.file_bytes);
    (vram ? vram_used_ : gtt_used_) -= buffer.file_bytes;
  }
  buffers_.erase(found);
  return 0;
}

// Watches buffers that program and device reach by separate mappings. Excludes rings that are
// mapped twice, because only the packet processor reads them.
void Buffers::watch(const Buffer& buffer) {
  const Request& request = buffer.request;
  const bool is_file =
      (request.flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT)) != 0 &&
      buffer.file_bytes != 0;
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0 ||
      (!is_file && buffer.shared == nullptr))
    return;
  const uint64_t bytes = round_up(request.size_bytes, kPage);
  auto* program = reinterpret_cast<std::byte*>(request.gpu_address);
  if (is_file && !is_mapping_of(request.gpu_address, bytes, render_file_, buffer.file_offset)) {
    const bool out_of_reach = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0 &&
                              (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) == 0;
    if (!out_of_reach) return;  // mapped elsewhere or not yet
    program = nullptr;
  }
  try {
    device_.host_pages->add(request.gpu_address, program, buffer.host, bytes);
  } catch (const std::bad_alloc&) {
    note("MAP_MEMORY_TO_GPU: no memory to observe the host's accesses to a buffer of " +
         std::to_string(bytes) + " bytes");
  }
}

void Buffers::hold_back(const Buffer& buffer) {
  const Request& request = buffer.request;
  auto* const program = reinterpret_cast<std::byte*>(request.gpu_address);
  const uint64_t bytes = round_up(request.size_bytes, kPage);
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP) != 0) {
    if (is_mapping_of(request.gpu_address, bytes, kfd_file_, kRegisterFileOffset))
      device_.lazy_bar->watch_registers(program);
    return;
  }
  const bool is_vram = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0;
  if (!is_vram || (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0 ||
      !is_mapping_of(request.gpu_address, bytes, render_file_, buffer.file_offset))
    return;
  if (!device_.lazy_bar->add(program, buffer.host, bytes))
    note("MAP_MEMORY_TO_GPU: no memory to hold back the host's stores to a buffer of " +
         std::to_string(bytes) + " bytes");
}

int Buffers::map(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return -ENOMEM;
  Buffer& buffer = found->second;
  if (buffer.mapped) return 0;
  const Request& request = buffer.request;
  const bool twice = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0;
  const uint64_t bytes = twice ? buffer.file_bytes : round_up(request.size_bytes, kPage);
  Mapping mapping{.begin = request.gpu_address,
                  .end = request.gpu_address + bytes,
                  .host = buffer.host,
                  .writable = (request.flags & kWritable) != 0,
                  .executable = (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE) != 0,
                  .kind = kind_of(request.flags)};
  try {
    device_.memory.map(mapping);
    if (twice) {
      mapping.begin += bytes;
      mapping.end += bytes;
      try {
        device_.memory.map(mapping);
      } catch (const std::invalid_argument&) {
        device_.memory.unmap(request.gpu_address);
        throw;
      }
    }
  } catch (const std::invalid_argument& overlap) {
    note(std::string("MAP_MEMORY_TO_GPU: ") + overlap.what());
    return -EINVAL;
  }
  buffer.mapped = true;
  if (device_.host_pages != nullptr) watch(buffer);
  if (device_.lazy_bar != nullptr) hold_back(buffer);
  if (processor_ != nullptr && mapping.kind == MemoryKind::doorbell)
    processor_->attach_doorbell_page(reinterpret_cast<std::byte*>(request.gpu_address), buffer.host,
                                     request.size_bytes);
  return 0;
}

int Buffers::unmap(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return -ENODEV;
  Buffer& buffer = found->second;
  if (!buffer.mapped) return -EINVAL;
  const Request& request = buffer.request;
  if (processor_ != nullptr && (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0)
    processor_->detach_doorbell_page(reinterpret_cast<std::byte*>(request.gpu_address));
  if (device_.checker != nullptr)
    device_.checker->forget(request.gpu_address,
                            request.gpu_address + round_up(request.size_bytes, kPage));
  const auto remove = [this](GpuAddress begin) {
    if (processor_ != nullptr) {
      processor_->unmap(begin);
    } else {
      device_.memory.unmap(begin);
    }
  };
  remove(request.gpu_address);
  if (device_.host_pages != nullptr) device_.host_pages->remove(request.gpu_address);
  if ((request.flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0)
    remove(request.gpu_address + buffer.file_bytes);
  if (processor_ != nullptr && (request.flags & KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE) != 0)
    processor_->invalidate_code();
  buffer.mapped = false;
  return 0;
}

uint64_t Buffers::vram_used_bytes() const {
  const std::lock_guard lock(mutex_);
  return vram_used_;
}

uint64_t Buffers::gtt_used_bytes() const {
  const std::lock_guard lock(mutex_);
  return gtt_used_;
}

Buffers::Held Buffers::held() const {
  const std::lock_guard lock(mutex_);
  Held held{.buffers = buffers_.size(), .vram_bytes = vram_used_, .gtt_bytes = gtt_used_};
  for (const auto& [handle, buffer] : buffers_)
    if ((buffer.request.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0)
      held.userptr_bytes += buffer.request.size_bytes;
  return held;
}

}  // namespace uptempo::vgpu::kfd
