// Resources left by a Runtime and its objects: counted by the library and, outside it, by the
// driver. Only the virtual GPU's driver can be queried.
#pragma once

#include <dlfcn.h>
#include <uptempo/uptempo.hpp>

#include <cstdint>
#include <fstream>
#include <ostream>
#include <string>
#include <tuple>

#include <uptempo/vgpu/query.h>
#include <uptempo/completion/timeline.hpp>
#include <uptempo/runtime/amd_extension.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo::test {

struct Holdings {
  bool runtime = false;  // one is alive
  uint32_t signals = 0;  // interrupt signals of the library
  size_t timelines = 0;  // in use
  uint64_t queues = 0, events = 0, buffers = 0, device_bytes = 0, host_bytes = 0;  // in the driver
  // The driver's counts contain ROCr's own resources, because ROCr 6.1 stays initialised
  // (amd_extension.hpp).
  bool has_rocr = false;

  friend bool operator==(const Holdings& a, const Holdings& b) {
    if (a.runtime != b.runtime || a.signals != b.signals || a.timelines != b.timelines)
      return false;
    const auto in_driver = [](const Holdings& held) {
      return std::tie(held.queues, held.events, held.buffers, held.device_bytes, held.host_bytes);
    };
    return a.has_rocr || b.has_rocr || in_driver(a) == in_driver(b);
  }
};

inline std::ostream& operator<<(std::ostream& out, const Holdings& held) {
  return out << (held.runtime ? "a Runtime, " : "") << held.signals << " signals, "
             << held.timelines << " timelines; in the driver " << held.queues << " queues, "
             << held.events << " events, " << held.buffers << " buffers, " << held.device_bytes
             << " bytes of device memory, " << held.host_bytes << " of host memory";
}

inline Holdings holdings() {
  const Timeline::Census census = Timeline::census();
  Holdings held{.runtime = Session::running() != nullptr,
                .signals = signal_use().in_use,
                .timelines = census.all - census.free};
  const auto ask =
      reinterpret_cast<uptempo_vgpu_holdings_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_holdings"));
  uptempo_vgpu_holding_counts counts{};
  if (ask == nullptr || ask(&counts) != 0) return held;
  held.queues = counts.queues;
  held.events = counts.signal_events + counts.other_events;
  held.buffers = counts.buffers;
  held.device_bytes = counts.vram_bytes;
  held.host_bytes = counts.gtt_bytes + counts.userptr_bytes;
  held.has_rocr = must_stay_initialised();
  return held;
}

// Bytes of address space that the process uses.
inline uint64_t mapped_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == "VmSize:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

}  // namespace uptempo::test
