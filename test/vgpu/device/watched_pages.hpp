// Pages with two mappings, like a buffer: one for the program, one for the device.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "device/host/host_pages.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu::test {

inline constexpr size_t kPage = HostPages::kPageBytes;

class TwoMappings {
 public:
  explicit TwoMappings(size_t pages) : bytes(pages * kPage) {
    const int file = memfd_create("two-mappings", MFD_CLOEXEC);
    REQUIRE(ftruncate(file, static_cast<off_t>(bytes)) == 0);
    program = map(file);
    device = map(file);
    ::close(file);
  }
  ~TwoMappings() {
    munmap(program, bytes);
    munmap(device, bytes);
  }
  TwoMappings(const TwoMappings&) = delete;
  TwoMappings& operator=(const TwoMappings&) = delete;

  const size_t bytes;
  std::byte* program = nullptr;
  std::byte* device = nullptr;

 private:
  std::byte* map(int file) const {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(memory != MAP_FAILED);
    return static_cast<std::byte*>(memory);
  }
};

// Accesses that the compiler does not remove.
inline void store(std::byte* at, unsigned value) {
  *const_cast<volatile std::byte*>(at) = std::byte(value);
}
inline unsigned load(const std::byte* at) {
  return std::to_integer<unsigned>(*const_cast<const volatile std::byte*>(at));
}

// A buffer at kGpu that is watched for the lifetime of the object.
inline constexpr GpuAddress kGpu = 0x4000'0000;

struct Watched {
  explicit Watched(size_t pages = 4, size_t events = HostPages::kEvents,
                   uint64_t flood_window_ns = HostPages::kFloodWindowNs)
      : memory(pages), host(events, flood_window_ns) {
    host.add(kGpu, memory.program, memory.device, memory.bytes);
  }

  std::vector<HostEvent> events() {
    std::vector<HostEvent> all;
    for (HostEvent event; host.take(event);) all.push_back(event);
    return all;
  }
  // Begins and ends a dispatch that uses the page and stores nothing.
  bool use(size_t page, bool hide_from_reads = false) {
    const bool watched = host.close(kGpu + page * kPage, hide_from_reads);
    if (watched) host.device_wrote(kGpu + page * kPage, nullptr);
    return watched;
  }

  TwoMappings memory;
  HostPages host;  // after `memory`: destroyed first, which opens the pages
};

inline bool is(const HostEvent& event, HostEvent::Kind kind, GpuAddress address,
               uint32_t bytes = 1) {
  CAPTURE(static_cast<int>(event.kind), event.address - kGpu, event.bytes);
  CHECK(event.kind == kind);
  CHECK(event.address == address);
  CHECK(event.bytes == bytes);
  return event.kind == kind && event.address == address && event.bytes == bytes;
}

}  // namespace uptempo::vgpu::test
