// ROCT, opened on the virtual GPU. Each test that uses the fixture starts and ends with a closed
// thunk and checks that it leaves no VRAM allocated.
#pragma once

#include <hsakmt.h>
#include <cstdint>
#include <map>

#include "device/description.hpp"

namespace uptempo::vgpu {

inline constexpr HSAuint32 kCpuNode = 0;
inline constexpr HSAuint32 kGpuNode = 1;
inline constexpr uint32_t kPage = 4096;

// Returns the description of the device that the launcher was given.
const DeviceDescription& expected_device();

class Thunk {
 public:
  Thunk();
  ~Thunk();
  Thunk(const Thunk&) = delete;
  Thunk& operator=(const Thunk&) = delete;

  const HsaSystemProperties& system() const { return system_; }
  HSAuint64 available_vram() const;

 private:
  HsaSystemProperties system_{};
  HSAuint64 vram_at_start_ = 0;
};

// hsakmt's structs are packed to 4 bytes: a 64-bit field may be read by value, but a reference must
// not be bound to it.
template <typename T>
T value(T field) {
  return field;
}

HsaNodeProperties properties_of(HSAuint32 node);
// The links that begin at the node, by their other end.
std::map<HSAuint32, HsaIoLinkProperties> links_of(HSAuint32 node);

// Flags of the usual kinds of memory.
HsaMemFlags host_memory();
HsaMemFlags vram(bool host_access);

// Makes a raw KFD request on the test's own descriptor. Returns 0 or -errno.
int kfd_request(unsigned long request, void* argument);

}  // namespace uptempo::vgpu
