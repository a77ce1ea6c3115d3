// ArgumentLayout: the layout of a kernel's arguments in its kernarg block, and functions that fill
// the block.
//
// Each kernel has one ArgumentLayout, made from its metadata. Program::kernel() checks the explicit
// arguments against the C++ types (argument_type.hpp). Each dispatch fills the hidden arguments,
// which the compiler appends.
//
// Hidden arguments of code object versions 3 to 6 (LLVM AMDGPU User Guide, "Kernel Argument
// Metadata"):
// * Filled: global offsets (0), block counts, group sizes, remainders, grid dimensions, aperture
//   bases, queue address, size of dynamic LDS. The last one is Grid::lds_bytes without LocalBytes
//   arguments, because CLR's rocvirtual.cpp writes the launch's sharedMemBytes.
// * Always 0, their documented value for "none": the synchronization argument of multi-device
//   launches, device queue and completion action.
// * Refused by name in Program::kernel(): printf buffer if the program prints; hostcall buffer and
//   device heap if its code can call the host (can_call_host() in code_object.hpp). They need a
//   service thread that this library does not have. Otherwise the three are 0.
//
// Thread safety: immutable. fill_hidden() writes only the caller's block; it neither allocates nor
// fails.
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

namespace uptempo {

enum class ArgumentKind : uint8_t;
struct KernelMetadata;

// Values of hidden arguments that depend on the queue of the dispatch.
struct QueueFacts {
  uint64_t queue_address = 0;
  uint32_t private_aperture_high = 0;  // upper halves of the flat addresses of scratch and LDS
  uint32_t group_aperture_high = 0;
};

class ArgumentLayout {
 public:
  // Throws Error for an unsupported kind of argument, naming kernel and argument.
  explicit ArgumentLayout(const KernelMetadata& kernel, bool program_has_printf);

  // Throws Error unless each type matches its explicit argument. The Error names every argument
  // that does not match.
  void require(std::span<const ArgumentType> types) const;

  uint32_t size_bytes() const noexcept { return size_; }
  // Size that a caller's block must have (BatchSubmitter::dispatch_at): whole 8-byte words.
  uint32_t block_bytes() const noexcept { return (size_ + 7) / 8 * 8; }
  uint32_t alignment() const noexcept { return alignment_; }
  size_t explicit_count() const noexcept { return explicit_.size(); }
  uint32_t offset(size_t argument) const noexcept { return explicit_[argument].offset; }

  // True if a hidden argument holds the queue's address: a block filled for one queue is then wrong
  // for another.
  bool names_queue() const noexcept;
  ArgumentType::Kind kind(size_t argument) const noexcept;
  uint32_t size(size_t argument) const noexcept { return explicit_[argument].size; }

  // Indices of the 8-byte words up to the end of the last argument that explicit arguments do not
  // fill completely. Dispatches write only these words and the explicit arguments. The compiler
  // declares each hidden argument that a kernel can read, so no kernel reads the bytes after the
  // last one: in version 5, usually 190 of the 256 bytes of hidden arguments.
  std::span<const uint32_t> implicit_words() const noexcept { return implicit_words_; }

  // Writes the hidden arguments, and zero to all other bytes outside explicit arguments.
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
  struct Declared {  // from the source; empty if the compiler kept nothing
    std::string name;
    std::string type_name;
  };
  bool takes(const ArgumentType& type, size_t argument) const noexcept;
  std::string describe(size_t argument) const;

  std::string kernel_;
  uint32_t size_;
  uint32_t alignment_;
  std::vector<Explicit> explicit_;
  // of explicit arguments; separate from the data that dispatches read
  std::vector<Declared> declared_;
  std::vector<Hidden> hidden_;  // those that are not always zero
  std::vector<uint32_t> implicit_words_;
};

namespace detail {

template <class... Args>
inline constexpr bool takes_local_bytes = (std::is_same_v<std::remove_cv_t<Args>, LocalBytes> ||
                                           ...);

// Size of the group segment after one more argument. 64 bits, so that it cannot overflow.
template <class T>
constexpr uint64_t with_argument(uint64_t group_segment, [[maybe_unused]] const T& value) noexcept {
  if constexpr (takes_local_bytes<T>) return align_local(group_segment) + value.size_bytes;
  return group_segment;
}

// Writes one explicit argument. For a dynamic LDS array, advances `group_segment` past it.
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

// True if the block holds this argument. Advances `group_segment` in the same way.
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
