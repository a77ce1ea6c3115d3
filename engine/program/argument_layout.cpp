#include "engine/program/argument_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/program/metadata.hpp"
#include "engine/runtime/error.hpp"

namespace uptempo {
namespace {

[[noreturn]] void refuse(hsa_status_t status, const std::string& kernel, std::string asked,
                         std::string found, std::string remedy) {
  throw Error({.status = status,
               .call = fmt::format("kernel '{}'", kernel),
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

std::string bytes(size_t count) {
  return fmt::format("{} {}", count, count == 1 ? "byte" : "bytes");
}

std::string alignment_note(const ArgumentType& type, uint32_t offset) {
  if (type.alignment == 0 || offset % type.alignment == 0) return {};
  return fmt::format(", aligned to {}", type.alignment);
}

bool always_zero(ArgumentKind kind) noexcept {
  switch (kind) {
    case ArgumentKind::hidden_none:
    case ArgumentKind::hidden_global_offset_x:  // AQL has no global offset: a dispatch starts at 0
    case ArgumentKind::hidden_global_offset_y:
    case ArgumentKind::hidden_global_offset_z:
    case ArgumentKind::hidden_multigrid_sync_arg:
    case ArgumentKind::hidden_default_queue:
    case ArgumentKind::hidden_completion_action:
      return true;
    default:
      return false;
  }
}

const char* service_of(ArgumentKind kind) noexcept {
  switch (kind) {
    case ArgumentKind::hidden_printf_buffer:
      return "printf";
    case ArgumentKind::hidden_hostcall_buffer:
      return "host calls (printf, assert or malloc on the device)";
    case ArgumentKind::hidden_heap_v1:
      return "the device heap (malloc on the device)";
    default:
      return nullptr;
  }
}

uint64_t hidden_value(ArgumentKind kind, const Grid& grid, const QueueFacts& queue) noexcept {
  switch (kind) {
    case ArgumentKind::hidden_block_count_x:
      return grid.items.x / grid.workgroup.x;
    case ArgumentKind::hidden_block_count_y:
      return grid.items.y / grid.workgroup.y;
    case ArgumentKind::hidden_block_count_z:
      return grid.items.z / grid.workgroup.z;
    case ArgumentKind::hidden_group_size_x:
      return grid.workgroup.x;
    case ArgumentKind::hidden_group_size_y:
      return grid.workgroup.y;
    case ArgumentKind::hidden_group_size_z:
      return grid.workgroup.z;
    case ArgumentKind::hidden_remainder_x:
      return grid.items.x % grid.workgroup.x;
    case ArgumentKind::hidden_remainder_y:
      return grid.items.y % grid.workgroup.y;
    case ArgumentKind::hidden_remainder_z:
      return grid.items.z % grid.workgroup.z;
    case ArgumentKind::hidden_grid_dims:
      return grid.dimensions;
    case ArgumentKind::hidden_dynamic_lds_size:
      return grid.lds_bytes;
    case ArgumentKind::hidden_private_base:
      return queue.private_aperture_high;
    case ArgumentKind::hidden_shared_base:
      return queue.group_aperture_high;
    case ArgumentKind::hidden_queue_ptr:
      return queue.queue_address;
    default:
      return 0;
  }
}

}  // namespace

ArgumentLayout::ArgumentLayout(const KernelMetadata& kernel, bool program_has_printf)
    : kernel_(kernel.name), size_(kernel.kernarg_size), alignment_(kernel.kernarg_alignment) {
  if (alignment_ > 64) {
    refuse(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, kernel_, "kernarg blocks aligned to 64 bytes",
           fmt::format("a kernel that needs {}", alignment_),
           "align the kernel's argument types to 64 bytes or less");
  }
  if (size_ > UINT32_MAX - 63) {
    refuse(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, kernel_,
           "a kernarg block whose size, in whole lines of 64 bytes, fits 32 bits",
           fmt::format("a kernarg segment of {} bytes", size_), "pass the arguments in a buffer");
  }
  for (const ArgumentMetadata& argument : kernel.arguments) {
    switch (argument.kind) {
      case ArgumentKind::by_value:
      case ArgumentKind::global_buffer:
      case ArgumentKind::dynamic_shared_pointer:
        if (argument.kind == ArgumentKind::dynamic_shared_pointer &&
            argument.size != sizeof(uint32_t)) {
          refuse(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, kernel_, "LDS arrays with a 32-bit offset",
                 fmt::format("one of {} at offset {}", bytes(argument.size), argument.offset),
                 "compile the kernel for an AMD GPU");
        }
        explicit_.push_back({argument.kind, argument.offset, argument.size});
        declared_.push_back({argument.name, argument.type_name});
        continue;
      case ArgumentKind::sampler:
      case ArgumentKind::image:
      case ArgumentKind::pipe:
      case ArgumentKind::queue:
        refuse(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
               "arguments that are values, addresses or LDS arrays",
               fmt::format("an argument of kind '{}' at offset {}", argument.kind_name,
                           argument.offset),
               "images, samplers, pipes and device queues are not supported; pass buffers");
      default:
        break;
    }
    if (const char* service = service_of(argument.kind)) {
      // Version 3 reserves the printf buffer in every kernel. It is used only if formats are
      // listed.
      if (argument.kind == ArgumentKind::hidden_printf_buffer && !program_has_printf) continue;
      refuse(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
             "a kernel that runs without services of the host",
             fmt::format("hidden argument '{}': it uses {}", argument.kind_name, service),
             "remove the call, or compile with optimization so that an unused one disappears");
    }
    if (!always_zero(argument.kind))
      hidden_.push_back({argument.kind, argument.offset, argument.size});
  }
  explicit_count_ = static_cast<uint32_t>(explicit_.size());
  // That of the segment may be larger, because of hidden arguments.
  uint32_t packed_alignment = 1;
  for (const Explicit& argument : explicit_) {
    const bool is_local = argument.kind == ArgumentKind::dynamic_shared_pointer;
    is_dense_ = is_dense_ && !is_local && argument.offset == packed_bytes_;
    has_local_ = has_local_ || is_local;
    const uint32_t own = argument.offset | argument.size;  // multiples of its alignment
    packed_alignment = std::max(packed_alignment, own & (~own + 1));
    packed_bytes_ = std::max(packed_bytes_, argument.offset + argument.size);
  }
  if (alignment_ != 0) packed_alignment = std::min(packed_alignment, alignment_);
  packed_padding_ = (packed_alignment - packed_bytes_ % packed_alignment) % packed_alignment;
  std::vector<bool> is_explicit(size_, false);
  uint32_t end = 0;  // of the last argument
  for (const ArgumentMetadata& argument : kernel.arguments)
    end = std::max(end, argument.offset + argument.size);
  for (const Explicit& argument : explicit_)
    std::fill_n(is_explicit.begin() + argument.offset, argument.size, true);
  for (uint32_t byte = 0; byte < end; ++byte) {
    if (is_explicit[byte] || (!implicit_words_.empty() && implicit_words_.back() == byte / 8))
      continue;
    implicit_words_.push_back(byte / 8);
  }
}

bool ArgumentLayout::names_queue() const noexcept {
  return std::any_of(hidden_.begin(), hidden_.end(), [](const Hidden& hidden) {
    return hidden.kind == ArgumentKind::hidden_queue_ptr;
  });
}

ArgumentType::Kind ArgumentLayout::kind(size_t argument) const noexcept {
  switch (explicit_[argument].kind) {
    case ArgumentKind::by_value:
      return ArgumentType::Kind::value;
    case ArgumentKind::global_buffer:
      return ArgumentType::Kind::address;
    default:
      return ArgumentType::Kind::local;
  }
}

void ArgumentLayout::require(std::span<const ArgumentType> types) const {
  if (types.size() != explicit_.size()) {
    refuse(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
           fmt::format("{} arguments", types.size()),
           fmt::format("the kernel takes {}", explicit_.size()),
           "name one type for each of the kernel's parameters");
  }
  std::string asked, found;
  for (size_t i = 0; i < types.size(); ++i) {
    if (takes(types[i], i)) continue;
    const char* const separator = asked.empty() ? "" : ", ";
    asked += fmt::format("{}argument {} as '{}' ({}{})", separator, i, types[i].name,
                         bytes(types[i].size), alignment_note(types[i], offset(i)));
    found += fmt::format("{}{}", separator, describe(i));
  }
  if (asked.empty()) return;
  refuse(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_, std::move(asked),
         fmt::format("the kernel takes {}", found),
         "make each C++ type the type of the kernel's parameter");
}

void ArgumentLayout::refuse_count(Arguments given) const {
  std::string all;
  for (size_t i = 0; i < explicit_.size(); ++i)
    all += fmt::format("{}{}", i == 0 ? "" : ", ", describe(i));
  if (given.is_packed()) {
    const std::string most =
        packed_padding_ == 0 ? "" : fmt::format(" to {}", packed_bytes_ + packed_padding_);
    refuse(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
           fmt::format("{} of packed arguments", bytes(given.count())),
           fmt::format("the kernel takes {}{} bytes{}{}", packed_bytes_, most,
                       all.empty() ? "" : ": ", all),
           "pack each argument at its offset");
  }
  refuse(HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
         fmt::format("pointers to {} arguments", given.count()),
         fmt::format("the kernel takes {}{}{}", explicit_.size(), all.empty() ? "" : ": ", all),
         "pass one pointer for each of the kernel's parameters");
}

void ArgumentLayout::refuse_null(size_t argument) const {
  refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT, kernel_, "pointers to the arguments",
         fmt::format("a null pointer for {}", describe(argument)),
         "point to the value, also where the value is a null address");
}

void ArgumentLayout::store_each(std::byte* block, Arguments given,
                                uint32_t& group_segment) const noexcept {
  for (size_t i = 0; i < explicit_count_; ++i) {
    const Explicit& argument = explicit_[i];
    std::byte* const to = block + argument.offset;
    const void* const from = value(given, i);
    if (argument.kind == ArgumentKind::dynamic_shared_pointer) {
      // The block may be in device memory, which the host never reads.
      uint32_t size_bytes;
      std::memcpy(&size_bytes, from, sizeof size_bytes);
      group_segment = static_cast<uint32_t>(align_local(group_segment));
      std::memcpy(to, &group_segment, sizeof group_segment);
      group_segment += size_bytes;
    } else {
      std::memcpy(to, from, argument.size);
    }
  }
}

uint64_t ArgumentLayout::with_local(uint64_t bytes, Arguments given) const noexcept {
  for (size_t i = 0; i < explicit_.size(); ++i) {
    if (explicit_[i].kind != ArgumentKind::dynamic_shared_pointer) continue;
    uint32_t size_bytes;
    std::memcpy(&size_bytes, value(given, i), sizeof size_bytes);
    bytes = align_local(bytes) + size_bytes;
  }
  return bytes;
}

bool ArgumentLayout::holds(const std::byte* block, Arguments given,
                           uint32_t& group_segment) const noexcept {
  for (size_t i = 0; i < explicit_.size(); ++i) {
    const Explicit& argument = explicit_[i];
    const void* expected = value(given, i);
    uint32_t offset_of_array;
    if (argument.kind == ArgumentKind::dynamic_shared_pointer) {
      uint32_t size_bytes;
      std::memcpy(&size_bytes, expected, sizeof size_bytes);
      offset_of_array = static_cast<uint32_t>(align_local(group_segment));
      group_segment = offset_of_array + size_bytes;
      expected = &offset_of_array;
    }
    if (std::memcmp(block + argument.offset, expected, argument.size) != 0) return false;
  }
  return true;
}

bool ArgumentLayout::takes(const ArgumentType& type, size_t argument) const noexcept {
  const ArgumentType::Kind kind = this->kind(argument);
  if (type.kind != kind || type.size != size(argument)) return false;
  if (type.alignment != 0 && offset(argument) % type.alignment != 0) return false;
  return kind == ArgumentType::Kind::local ||
         fits(type, declared_element(declared_[argument].type_name));
}

std::string ArgumentLayout::describe(size_t argument) const {
  const Declared& declared = declared_[argument];
  std::string text = fmt::format("argument {}", argument);
  if (!declared.name.empty()) text += fmt::format(" {}", declared.name);
  if (!declared.type_name.empty()) text += fmt::format(" '{}'", declared.type_name);
  if (kind(argument) == ArgumentType::Kind::local) return text + " (an LDS array: LocalBytes)";
  return text +
         fmt::format(" ({}, {}, at offset {})", bytes(size(argument)),
                     kind(argument) == ArgumentType::Kind::address ? "an address" : "by value",
                     offset(argument));
}

void ArgumentLayout::fill_hidden(std::byte* block, const Grid& grid,
                                 const QueueFacts& queue) const noexcept {
  // Writes gaps, too: blocks are compared byte by byte, and a reused block must not keep another
  // kernel's bytes.
  uint32_t at = 0;
  for (const Explicit& argument : explicit_) {
    if (argument.offset > at) std::memset(block + at, 0, argument.offset - at);
    at = argument.offset + argument.size;
  }
  if (size_ > at) std::memset(block + at, 0, size_ - at);
  for (const Hidden& argument : hidden_) {
    const uint64_t value = hidden_value(argument.kind, grid, queue);
    // Little-endian: the low bytes come first.
    std::memcpy(block + argument.offset, &value,
                argument.size < sizeof value ? argument.size : sizeof value);
  }
}

}  // namespace uptempo
