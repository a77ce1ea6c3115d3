// The memory of this process, for tests that check that nothing grows.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace uptempo::test {

struct ProcessMemory {
  uint64_t resident_bytes = 0;  // includes the virtual GPU's memory
  uint64_t virtual_bytes = 0;
  uint64_t mappings = 0;
  uint64_t descriptors = 0;

  static ProcessMemory now() {
    ProcessMemory memory;
    std::ifstream statm("/proc/self/statm");
    statm >> memory.virtual_bytes >> memory.resident_bytes;
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    memory.virtual_bytes *= page;
    memory.resident_bytes *= page;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++memory.mappings;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      ++memory.descriptors;
    return memory;
  }
};

// Allowed growth that is not a leak: caches of the C++ library and, under AddressSanitizer, its
// quarantine of freed memory (256 MiB). ThreadSanitizer maps memory for a thread's first events: up
// to 71 mappings more were seen with 64 threads.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr uint64_t kResidentNoise = uint64_t{300} << 20;
inline constexpr uint64_t kVirtualNoise = uint64_t{2} << 30;
#else
inline constexpr uint64_t kResidentNoise = uint64_t{2} << 20;
inline constexpr uint64_t kVirtualNoise = uint64_t{2} << 20;
#endif
#ifdef __SANITIZE_THREAD__
inline constexpr uint64_t kMappingsOfThread = 2;
#else
inline constexpr uint64_t kMappingsOfThread = 0;
#endif

}  // namespace uptempo::test
