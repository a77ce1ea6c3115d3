// DMA-buf descriptors of device memory: EXPORT_DMABUF makes them, IMPORT_DMABUF and GET_DMABUF_INFO
// read them. Programs pass them to other processes over sockets and fork().
//
// The descriptor is a sealed file that names a shared extent (machine.hpp). Its size is the
// buffer's, as a DMA-buf's is (lseek). It cannot be read, written or mapped.
//
// Difference from the kernel: the descriptor alone does not keep the buffer alive, since the driver
// does not see its end. After the last buffer is freed, an import returns -EINVAL.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "kfd/machine/machine.hpp"

namespace uptempo::vgpu::kfd {

// Returns a new descriptor or a negative errno.
int make_dmabuf(const ShareHandle& name, uint64_t size_bytes, bool close_on_exec);

// Returns 0 and sets `name`, -EBADF if the descriptor is not open, or -EINVAL if it is not one of
// make_dmabuf().
int read_dmabuf(int descriptor, ShareHandle& name);

}  // namespace uptempo::vgpu::kfd
