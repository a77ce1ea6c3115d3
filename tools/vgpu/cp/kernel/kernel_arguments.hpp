// The words of a kernel's arguments that may be addresses, from the metadata of its code object.
//
// Source: LLVM AMDGPUUsage, "Code Object V3 Metadata": amdhsa.kernels is a list of maps, with
// .symbol and .args, whose entries have .offset, .size and .value_kind.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace uptempo::vgpu {

struct ArgumentWord {
  uint32_t offset = 0;  // bytes from the start of the kernargs
  // The source declares a pointer (.value_kind global_buffer). Otherwise it is a whole word of an
  // argument by value, which may be a structure with pointers.
  bool is_pointer = false;
  bool operator==(const ArgumentWord&) const = default;
};

// Hidden arguments are the runtime's and not among them. `symbol`: "sort.kd". Returns nothing if
// the metadata does not describe the kernel, is damaged before its end, or tells of more than 1 MiB
// of arguments. Cost: reads the metadata
// of all kernels before this one.
std::optional<std::vector<ArgumentWord>> kernel_arguments(std::span<const std::byte> metadata,
                                                          std::string_view symbol);

}  // namespace uptempo::vgpu
