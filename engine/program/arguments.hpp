// How a kernel's arguments lie in their kernarg block, and how a block is filled.
//
// An ArgumentLayout is made once for each kernel, from its metadata. The explicit arguments are
// checked against the C++ types that a Kernel is asked for with (argument_type.hpp). The hidden
// ones, which the compiler appends, are filled at each dispatch.
//
// Hidden arguments of code object versions 3, 4 and 5 (LLVM AMDGPU User Guide, "Kernel Argument
// Metadata"): global offsets (0), block counts, group sizes, remainders, grid dimensions, aperture
// bases, queue address, size of dynamic LDS (Grid::lds_bytes, without LocalBytes arguments: CLR's
// rocvirtual.cpp writes the launch's sharedMemBytes); the synchronisation argument of multi-device
// launches, device queue and completion action are 0, their documented value for "none". printf
// buffer, hostcall buffer and device heap need a service thread that this library does not have: a
// kernel that uses them is refused by name when it is asked for.
//
// Thread safety: immutable. fill() writes the caller's block only; no allocation, no failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "aql/packet.hpp"
#include "engine/program/argument_type.hpp"
#include "engine/program/grid.hpp"
#include "engine/program/metadata.hpp"

namespace uptempo {

// What hidden arguments say about the queue of the dispatch.
struct QueueFacts {
  uint64_t queue_address = 0;
  uint32_t private_aperture_high = 0;  // upper halves of the flat addresses at which scratch and LDS appear
  uint32_t group_aperture_high = 0;
};

class ArgumentLayout {
 public:
  // Throws Error for argument kinds that are not supported, naming kernel and argument.
  explicit ArgumentLayout(const KernelMetadata& kernel, bool program_has_printf);

  // Throws Error unless the types fit the explicit arguments one by one. The Error names every
  // argument that does not.
  void require(std::span<const ArgumentType> types) const;

  uint32_t size_bytes() const noexcept { return size_; }
  uint32_t alignment() const noexcept { return alignment_; }
  size_t explicit_count() const noexcept { return explicit_.size(); }
  uint32_t offset(size_t argument) const noexcept { return explicit_[argument].offset; }

  // True if a hidden argument says which queue the kernel runs in: a block that was filled for one queue does not serve another.
  bool names_queue() const noexcept;
  ArgumentType::Kind kind(size_t argument) const noexcept;
  uint32_t size(size_t argument) const noexcept { return explicit_[argument].size; }

  // Numbers of the block's 8-byte words of which some byte belongs to no explicit argument: those that fill_hidden() touches.
  std::span<const uint32_t> implicit_words() const noexcept { return implicit_words_; }

  // Writes the hidden arguments, and zero into every byte that belongs to no explicit argument.
  void fill_hidden(std::byte* block, const Grid& grid, const QueueFacts& queue) const noexcept;

 private:
  struct Explicit {
    ArgumentKind kind;
    uint32_t offset;
    uint32_t size;
  };
  struct Hidden {
    ArgumentKind kind;
    uint32_t offset;
    uint32_t size;
  };
  struct Declared {  // as the source has it; empty where the compiler kept nothing
    std::string name;
    std::string type_name;
  };
  bool takes(const ArgumentType& type, size_t argument) const noexcept;
  std::string describe(size_t argument) const;

  std::string kernel_;
  uint32_t size_;
  uint32_t alignment_;
  std::vector<Explicit> explicit_;
  std::vector<Declared> declared_;  // of each explicit one; apart from what dispatches read
  std::vector<Hidden> hidden_;      // those that are not always zero
  std::vector<uint32_t> implicit_words_;
};

namespace detail {

// LocalBytes arrays follow the kernel's static LDS and Grid::lds_bytes (grid.hpp), each aligned
// for any type (16 bytes: the largest OpenCL C needs of LDS accesses).
inline constexpr uint32_t local_alignment = 16;

constexpr uint64_t align_local(uint64_t offset) noexcept {
  return (offset + local_alignment - 1) / local_alignment * local_alignment;
}

template <class... Args>
inline constexpr bool takes_local_bytes = (std::is_same_v<std::remove_cv_t<Args>, LocalBytes> || ...);

// The size of the group segment after one more argument, in 64 bits: nothing wraps.
template <class T>
constexpr uint64_t with_argument(uint64_t group_segment, [[maybe_unused]] const T& value) noexcept {
  if constexpr (takes_local_bytes<T>) return align_local(group_segment) + value.size_bytes;
  return group_segment;
}

// Writes one explicit argument; advances `group_segment` past a dynamic LDS array.
template <class T>
inline void store_argument(std::byte* block, uint32_t offset, const T& value,
                           uint32_t& group_segment) noexcept {
  if constexpr (std::is_same_v<T, LocalBytes>) {
    group_segment = static_cast<uint32_t>(align_local(group_segment));
    std::memcpy(block + offset, &group_segment, sizeof group_segment);
    group_segment += value.size_bytes;
  } else {
    std::memcpy(block + offset, &value, sizeof value);
  }
}

// Whether a block holds that argument; advances `group_segment` alike.
template <class T>
inline bool holds_argument(const std::byte* block, uint32_t offset, const T& value,
                           uint32_t& group_segment) noexcept {
  if constexpr (std::is_same_v<T, LocalBytes>) {
    group_segment = static_cast<uint32_t>(align_local(group_segment));
    const bool holds = std::memcmp(block + offset, &group_segment, sizeof group_segment) == 0;
    group_segment += value.size_bytes;
    return holds;
  } else {
    return std::memcmp(block + offset, &value, sizeof value) == 0;
  }
}

}  // namespace detail
}  // namespace uptempo
