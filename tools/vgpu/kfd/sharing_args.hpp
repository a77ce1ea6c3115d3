// Arguments of requests that Debian's linux/kfd_ioctl.h lacks. The layouts are the kernel ABI: the
// IPC requests are those of AMD's out-of-tree driver (kfd_ioctl.h of ROCT), EXPORT_DMABUF is in
// Linux from KFD 1.12 on.
#pragma once

#include <cstdint>

#include "kfd/machine/machine.hpp"

namespace uptempo::vgpu::kfd {

inline constexpr uint32_t kExportDmabuf = 0x24;
inline constexpr uint32_t kIpcImport = 0x80;
inline constexpr uint32_t kIpcExport = 0x81;

struct ExportDmabufArgs {
  uint64_t handle;      // in
  uint32_t flags;       // in: O_CLOEXEC, access mode
  uint32_t descriptor;  // out
};
static_assert(sizeof(ExportDmabufArgs) == 16);

struct IpcExportArgs {
  uint64_t handle;   // in
  ShareHandle name;  // out
  uint32_t gpu_id;   // in
  uint32_t flags;    // in: ROCT's flags of the buffer
};
static_assert(sizeof(IpcExportArgs) == 32);

struct IpcImportArgs {
  uint64_t handle;       // out
  uint64_t gpu_address;  // in
  uint64_t mmap_offset;  // out
  ShareHandle name;      // in
  uint32_t gpu_id;       // in
  uint32_t flags;        // out: those of the export
};
static_assert(sizeof(IpcImportArgs) == 48);

}  // namespace uptempo::vgpu::kfd
