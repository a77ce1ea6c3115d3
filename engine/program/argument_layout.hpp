// ArgumentLayout: the layout of a kernel's arguments in its kernarg block, and functions that fill
// the block.
//
// Each kernel has one ArgumentLayout, made from its metadata. Program::kernel() checks the explicit
// arguments against the C++ types, or each dispatch checks its Arguments (arguments.hpp). Each
// dispatch fills the hidden arguments, which the compiler appends.
//
// Hidden arguments of code object versions 3 to 6 (LLVM AMDGPU User Guide, "Kernel Argument
// Metadata"):
// * Filled: global offsets (0), block counts, group sizes, remainders, grid dimensions, aperture
//   bases, queue address, size of dynamic LDS. The last one is Grid::lds_bytes without LocalBytes
//   arguments, because CLR's rocvirtual.cpp writes the launch's sharedMemBytes.
// * Always 0, their documented value for "none": the synchronization argument of multi-device
//   launches, device queue and completion action.
// * Refused by name in Program::kernel(): printf buffer if the program prints; hostcall buffer and
//   device heap if its code can call the host. They need a service thread that this library does
//   not have. Otherwise the three are 0.
//
// Thread safety: immutable. fill_hidden() writes only the caller's block; it neither allocates nor
// fails.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/program/arguments.hpp>
#include <uptempo/program/grid.hpp>

namespace uptempo {

enum class ArgumentKind : uint8_t;
struct KernelMetadata;

// Properties of a dispatch's queue: values of hidden arguments, and its agent.
struct QueueFacts {
  uint64_t queue_address = 0;
  uint32_t private_aperture_high = 0;  // upper halves of the flat addresses of scratch and LDS
  uint32_t group_aperture_high = 0;
  hsa_agent_t agent{0};  // 0: a queue without ROCr
};

class ArgumentLayout {
 public:
  // Throws Error for an unsupported kind of argument, naming kernel and argument.
  explicit ArgumentLayout(const KernelMetadata& kernel, bool program_has_printf);

  // Throws Error unless each type matches its explicit argument. The Error names every argument
  // that does not match.
  void require(std::span<const ArgumentType> types) const;
  // Throws Error unless these arguments have the size or the number that the kernel takes.
  void require(Arguments given) const {
    if (!accepts(given)) [[unlikely]]
      refuse(given);
  }
  // True if they have it.
  bool accepts(Arguments given) const noexcept {
    // Unsigned, so that fewer bytes also compare greater.
    if (given.is_packed()) return given.count() - packed_bytes_ <= packed_padding_;
    if (given.has_count() && given.count() != explicit_count_) [[unlikely]]
      return false;
    for (uint32_t i = 0; i < explicit_count_; ++i)
      if (given.pointers() == nullptr || given.pointers()[i] == nullptr) [[unlikely]]
        return false;
    return true;
  }
  // Where the value of one of the arguments is, of Arguments that require() accepts.
  const void* value(Arguments given, size_t argument) const noexcept {
    return given.is_packed() ? given.bytes().data() + explicit_[argument].offset
                             : given.pointers()[argument];
  }
  // Writes explicit arguments that require() accepts. `group_segment` is the group memory before
  // the LDS arrays among them, and is advanced past these.
  void store(std::byte* block, Arguments given, uint32_t& group_segment) const noexcept {
    if (given.is_packed() && is_dense_) [[likely]]
      return copy_words(block, given.bytes().data(), packed_bytes_);
    if (has_local_) [[unlikely]]
      return store_each(block, given, group_segment);
    const Place* const arguments = explicit_.data();
    for (uint32_t i = 0; i < explicit_count_; ++i)
      copy_argument(block + arguments[i].offset, value(given, i), arguments[i].size);
  }
  // True if the block holds these arguments. Advances `group_segment` in the same way.
  bool holds(const std::byte* block, Arguments given, uint32_t& group_segment) const noexcept;
  // Size of a group segment of `bytes` after the LDS arrays among these arguments.
  uint64_t with_local(uint64_t bytes, Arguments given) const noexcept;
  bool has_local() const noexcept { return has_local_; }

  uint32_t size_bytes() const noexcept { return size_; }
  // Size that a caller's block must have (BatchSubmitter::dispatch_at): whole 8-byte words.
  uint32_t block_bytes() const noexcept { return (size_ + 7) / 8 * 8; }
  uint32_t alignment() const noexcept { return alignment_; }
  size_t explicit_count() const noexcept { return explicit_.size(); }
  uint32_t offset(size_t argument) const noexcept { return explicit_[argument].offset; }

  // True if a hidden argument holds the queue's address: a block filled for one queue is then wrong
  // for another.
  bool names_queue() const noexcept;
  ArgumentType::Kind kind(size_t argument) const noexcept {
    return static_cast<ArgumentType::Kind>(explicit_[argument].kind);
  }
  uint32_t size(size_t argument) const noexcept { return explicit_[argument].size; }

  // Indices of the 8-byte words up to the end of the last argument that explicit arguments do not
  // fill completely. Dispatches write only these words and the explicit arguments. The compiler
  // declares each hidden argument that a kernel can read, so no kernel reads the bytes after the
  // last one: in version 5, usually 190 of the 256 bytes of hidden arguments.
  std::span<const uint32_t> implicit_words() const noexcept { return implicit_words_; }

  // Writes the hidden arguments, and zero to all other bytes outside explicit arguments.
  void fill_hidden(std::byte* block, const Grid& grid, const QueueFacts& queue) const noexcept;

 private:
  struct Place {
    ArgumentKind kind;
    uint32_t offset;
    uint32_t size;
  };
  bool takes(const ArgumentType& type, size_t argument) const noexcept;
  std::string describe(size_t argument) const;
  [[noreturn]] void refuse(Arguments given) const;
  [[noreturn]] void refuse_count(Arguments given) const;
  [[noreturn]] void refuse_null(size_t argument) const;

  static void copy_argument(std::byte* to, const void* from, uint32_t size) noexcept {
    // Constant sizes: a call of memcpy costs more than the copy.
    if (size == 8) {
      std::memcpy(to, from, 8);
    } else if (size == 4) {
      std::memcpy(to, from, 4);
    } else {
      std::memcpy(to, from, size);
    }
  }
  // In words, as the caller has usually just written them: a load that covers two recent stores
  // waits until both have left the store buffer.
  static void copy_words(std::byte* to, const std::byte* from, uint32_t size) noexcept {
    uint32_t at = 0;
    for (; at + 8 <= size; at += 8) {
      std::memcpy(to + at, from + at, 8);
      asm("" : "+r"(at));  // one word at a time: vectors take longer for the few words there are
    }
    if ((size & 4) != 0) std::memcpy(to + at, from + at, 4), at += 4;
    for (; at < size; ++at) to[at] = from[at];
  }
  template <class Segment, class Visit>
  bool each(Arguments given, Segment& group_segment, Visit&& visit) const noexcept;
  // store(), also of LDS arrays.
  void store_each(std::byte* block, Arguments given, uint32_t& group_segment) const noexcept;

  std::string kernel_;
  uint32_t size_;
  uint32_t alignment_;
  std::vector<Place> explicit_;
  // Names and type names of explicit arguments, if the compiler kept them; separate from the data
  // that dispatches read.
  std::vector<std::pair<std::string, std::string>> declared_;
  std::vector<Place> hidden_;  // those that are not always zero
  std::vector<uint32_t> implicit_words_;
  // For Arguments, next to each other because each dispatch reads them.
  uint32_t explicit_count_ = 0;  // the size of explicit_, which takes a division
  uint32_t packed_bytes_ = 0;    // up to the end of the last explicit argument
  uint32_t packed_padding_ = 0;  // that a C struct of the arguments may have at its end
  bool is_dense_ = true;         // values and addresses fill the packed bytes
  bool has_local_ = false;
};

}  // namespace uptempo
