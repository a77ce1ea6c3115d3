#include "kfd/drm_objects.hpp"

#include <cerrno>

#include "kfd/dmabuf.hpp"
#include "kfd/machine/log.hpp"

namespace uptempo::vgpu::kfd {

int DrmObjects::import(Gpu& gpu, drm_prime_handle& args) {
  ShareHandle name{};
  if (const int error = read_dmabuf(args.fd, name); error != 0) return error;
  const std::lock_guard lock(mutex_);
  Object object;
  Machine::Shared extent;
  if (const int error = buffers_.import(name, gpu, 0, object.buffer, extent); error != 0)
    return error;
  object.offset = extent.offset;
  object.size_bytes = extent.size_bytes;
  uint32_t handle = 1;
  for (const auto& [key, present] : objects_) {
    if (key.first != gpu.index) continue;
    if (present.offset == object.offset) {
      args.handle = key.second;
      return buffers_.free(object.buffer);
    }
    if (key.second == handle) ++handle;
  }
  objects_.emplace(Key(gpu.index, handle), object);
  args.handle = handle;
  return 0;
}

int DrmObjects::mmap_offset(const Gpu& gpu, drm_amdgpu_gem_mmap& args) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find({gpu.index, args.in.handle});
  if (found == objects_.end()) return -ENOENT;
  args.out.addr_ptr = found->second.offset;
  return 0;
}

int DrmObjects::change_mapping(Gpu& gpu, const drm_amdgpu_gem_va& args) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find({gpu.index, args.handle});
  if (found == objects_.end()) return -ENOENT;
  Object& object = found->second;
  switch (args.operation) {
    case AMDGPU_VA_OP_MAP: {
      if (object.mapped_at != 0 || args.offset_in_bo != 0 || args.map_size != object.size_bytes ||
          args.va_address == 0) {
        note("DRM GEM_VA: only a mapping of a whole object, one at a time, is emulated");
        return -EINVAL;
      }
      if (const int error = buffers_.move(object.buffer, args.va_address); error != 0) return error;
      if (const int error = buffers_.map(object.buffer, gpu); error != 0) return error;
      object.mapped_at = args.va_address;
      return 0;
    }
    case AMDGPU_VA_OP_UNMAP: {
      if (object.mapped_at == 0 || object.mapped_at != args.va_address) return -ENOENT;
      object.mapped_at = 0;
      return buffers_.unmap(object.buffer, gpu);
    }
    default:
      note("DRM GEM_VA: only MAP and UNMAP are emulated");
      return -EINVAL;
  }
}

int DrmObjects::close(Gpu& gpu, const drm_gem_close& args) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find({gpu.index, args.handle});
  if (found == objects_.end()) return -EINVAL;
  const Object object = found->second;
  objects_.erase(found);
  if (object.mapped_at != 0) buffers_.unmap(object.buffer, gpu);
  return buffers_.free(object.buffer);
}

}  // namespace uptempo::vgpu::kfd
