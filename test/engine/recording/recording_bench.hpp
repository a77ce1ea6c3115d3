// A double device for tests of recordings, and a kernel with more than a number.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <uptempo/program/metadata.hpp>
#include <uptempo/recording/recording.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"

namespace uptempo::test {

// A kernel of a number, an address and a second number.
inline Kernel<uint32_t, const uint32_t*, uint32_t> wide_kernel(uint64_t object) {
  return kernel_of<uint32_t, const uint32_t*, uint32_t>(
      {.name = "wide",
       .object = object,
       .kernarg_bytes = 80,
       .arguments = {argument(ArgumentKind::by_value, 0, 4),
                     argument(ArgumentKind::global_buffer, 8, 8),
                     argument(ArgumentKind::by_value, 16, 4),
                     argument(ArgumentKind::hidden_block_count_x, 24, 4)}});
}

// A double device with kernarg memory for recordings, which logs what ran.
struct RecordingBench {
  explicit RecordingBench(DoubleOptions options = {}, size_t kernarg_lines = 8192)
      : memory(kernarg_lines),
        device(options, [this](uint32_t number) { ran.push_back(number); }) {}

  std::span<std::byte> lend(size_t bytes) {
    const std::span<std::byte> lent{memory[used].bytes, bytes};
    used += (bytes + 63) / 64;
    REQUIRE(used <= memory.size());
    return lent;
  }
  std::unique_ptr<Recording> recording(const RecordingOptions& options = {
                                           .spare_kernarg_bytes = 16 << 10}) {
    return device.recording(lend((64 << 10) + options.spare_kernarg_bytes), options);
  }

  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<uint32_t> ran;
  std::vector<Line> memory;
  size_t used = 0;
  DoubleDevice device;
};

}  // namespace uptempo::test
