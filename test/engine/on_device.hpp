// What tests on a device have in common.
#pragma once

#include <engine/uptempo.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace uptempo::test {

// For what must come, but not for ever.
inline Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

inline std::vector<uint32_t> download(Copier& copier, const DeviceBuffer<uint32_t>& buffer) {
  std::vector<uint32_t> host(buffer.size());
  copier.to_host(std::span(host), buffer, PageablePath::staged);
  return host;
}

}  // namespace uptempo::test
