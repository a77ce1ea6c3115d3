// Helpers shared by the tests that run on a device.
#pragma once

#include <engine/uptempo.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace uptempo::test {

// A deadline for events that must happen: long, but finite.
inline Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

inline std::vector<uint32_t> download(Copier& copier, const DeviceBuffer<uint32_t>& buffer) {
  std::vector<uint32_t> host(buffer.size());
  copier.to_host(std::span(host), buffer, PageablePath::staged);
  return host;
}

}  // namespace uptempo::test
