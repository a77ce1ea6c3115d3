#include <uptempo/program/argument_layout.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <uptempo/program/metadata.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

using detail::ElementType;
using Scalar = ElementType::Scalar;

struct NamedElement {
  ElementType element;
  std::array<std::string_view, 4> names;
};
// OpenCL C specification, "Built-in Scalar Data Types", and the names of its atomic types.
constexpr NamedElement kNamedElements[] = {
    {{Scalar::bytes, 1}, {"void"}},
    {{Scalar::boolean, 1}, {"bool"}},
    {{Scalar::integer, 1}, {"char", "uchar"}},
    {{Scalar::integer, 2}, {"short", "ushort"}},
    {{Scalar::integer, 4}, {"int", "uint", "atomic_int", "atomic_uint"}},
    {{Scalar::integer, 8}, {"long", "ulong", "atomic_long", "atomic_ulong"}},
    {{Scalar::integer, 8}, {"size_t", "ptrdiff_t", "intptr_t", "uintptr_t"}},
    {{Scalar::floating, 2}, {"half"}},
    {{Scalar::floating, 4}, {"float", "atomic_float"}},
    {{Scalar::floating, 8}, {"double", "atomic_double"}},
};

// "Built-in Vector Data Types": the scalar's name and the number of elements.
std::string_view without_vector_size(std::string_view name) noexcept {
  for (const std::string_view size : {"16", "2", "3", "4", "8"})
    if (name.ends_with(size)) return name.substr(0, name.size() - size.size());
  return name;
}

// Returns the element type that a metadata type name declares: float for "float4*", unknown for "S"
// or no name.
ElementType declared_element(std::string_view type_name) noexcept {
  if (type_name.ends_with('*')) type_name.remove_suffix(1);
  const std::string_view scalar = without_vector_size(type_name);
  if (scalar.empty()) return {};
  for (const NamedElement& known : kNamedElements)
    if (std::ranges::count(known.names, scalar) != 0) return known.element;
  return {};
}

// True if a kernel can read elements of type `element` as `declared`.
bool fits(const ElementType& element, const ElementType& declared) noexcept {
  if (element.scalar == Scalar::unknown || declared.scalar == Scalar::unknown) return true;
  if (element.scalar == Scalar::bytes || declared.scalar == Scalar::bytes) return true;
  if (element.scalar == Scalar::half_bits)
    return declared.size_bytes == 2 && declared.scalar != Scalar::boolean;
  return element == declared;
}

[[noreturn]] void refuse_layout(ErrorCode code, hsa_status_t status, const std::string& kernel,
                                std::string asked, std::string found, std::string remedy) {
  throw Error({.code = code,
               .status = status,
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
  const uint32_t items[] = {grid.items.x, grid.items.y, grid.items.z};
  const uint32_t group[] = {grid.workgroup.x, grid.workgroup.y, grid.workgroup.z};
  const auto dimension = [kind](ArgumentKind x) {  // 0 to 2 if it is x, y or z of these
    return static_cast<size_t>(kind) - static_cast<size_t>(x);
  };
  if (const size_t d = dimension(ArgumentKind::hidden_block_count_x); d < 3)
    return items[d] / group[d];
  if (const size_t d = dimension(ArgumentKind::hidden_group_size_x); d < 3) return group[d];
  if (const size_t d = dimension(ArgumentKind::hidden_remainder_x); d < 3)
    return items[d] % group[d];
  switch (kind) {
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

static_assert(static_cast<uint8_t>(ArgumentKind::by_value) ==
                  static_cast<uint8_t>(ArgumentType::Kind::value) &&
              static_cast<uint8_t>(ArgumentKind::global_buffer) ==
                  static_cast<uint8_t>(ArgumentType::Kind::address) &&
              static_cast<uint8_t>(ArgumentKind::dynamic_shared_pointer) ==
                  static_cast<uint8_t>(ArgumentType::Kind::local));

}  // namespace

ArgumentLayout::ArgumentLayout(const KernelMetadata& kernel, bool program_has_printf)
    : kernel_(kernel.name), size_(kernel.kernarg_size), alignment_(kernel.kernarg_alignment) {
  if (alignment_ > 64) {
    refuse_layout(ErrorCode::program, HSA_STATUS_ERROR_INVALID_CODE_OBJECT, kernel_,
                  "kernarg blocks aligned to 64 bytes",
                  fmt::format("a kernel that needs {}", alignment_),
                  "align the kernel's argument types to 64 bytes or less");
  }
  if (size_ > UINT32_MAX - 63) {
    refuse_layout(ErrorCode::program, HSA_STATUS_ERROR_INVALID_CODE_OBJECT, kernel_,
                  "a kernarg block whose size, in whole lines of 64 bytes, fits 32 bits",
                  fmt::format("a kernarg segment of {} bytes", size_),
                  "pass the arguments in a buffer");
  }
  uint32_t end = 0;  // of the last argument
  for (const ArgumentMetadata& argument : kernel.arguments) {
    end = std::max(end, argument.offset + argument.size);
    if (argument.kind == ArgumentKind::unsupported)
      refuse_layout(
          ErrorCode::program, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
          "arguments that are values, addresses or LDS arrays",
          fmt::format("an argument of kind '{}' at offset {}", argument.kind_name, argument.offset),
          "images, samplers, pipes and device queues are not supported; pass buffers");
    if (argument.kind == ArgumentKind::dynamic_shared_pointer && argument.size != sizeof(uint32_t))
      refuse_layout(ErrorCode::program, HSA_STATUS_ERROR_INVALID_CODE_OBJECT, kernel_,
                    "LDS arrays with a 32-bit offset",
                    fmt::format("one of {} at offset {}", bytes(argument.size), argument.offset),
                    "compile the kernel for an AMD GPU");
    // Version 3 reserves the printf buffer in every kernel. It is used only if formats are
    // listed.
    const bool is_unused =
        argument.kind == ArgumentKind::hidden_printf_buffer && !program_has_printf;
    if (const char* service = service_of(argument.kind); service != nullptr && !is_unused)
      refuse_layout(
          ErrorCode::program, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
          "a kernel that runs without services of the host",
          fmt::format("hidden argument '{}': it uses {}", argument.kind_name, service),
          "remove the call, or compile with optimization so that an unused one disappears");
    if (!is_hidden(argument.kind)) {
      explicit_.push_back({argument.kind, argument.offset, argument.size});
      declared_.emplace_back(argument.name, argument.type_name);
    } else if (argument.kind != ArgumentKind::hidden_none && !is_unused) {
      hidden_.push_back({argument.kind, argument.offset, argument.size});
    }
  }
  explicit_count_ = static_cast<uint32_t>(explicit_.size());
  // That of the segment may be larger, because of hidden arguments.
  uint32_t packed_alignment = 1;
  for (const Place& argument : explicit_) {
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
  for (const Place& argument : explicit_)
    std::fill_n(is_explicit.begin() + argument.offset, argument.size, true);
  for (uint32_t byte = 0; byte < end; ++byte) {
    if (is_explicit[byte] || (!implicit_words_.empty() && implicit_words_.back() == byte / 8))
      continue;
    implicit_words_.push_back(byte / 8);
  }
}

bool ArgumentLayout::names_queue() const noexcept {
  return std::ranges::count(hidden_, ArgumentKind::hidden_queue_ptr, &Place::kind) != 0;
}

void ArgumentLayout::require(std::span<const ArgumentType> types) const {
  if (types.size() != explicit_.size()) {
    refuse_layout(ErrorCode::argument, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
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
  refuse_layout(ErrorCode::argument, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
                std::move(asked), fmt::format("the kernel takes {}", found),
                "make each C++ type the type of the kernel's parameter");
}

void ArgumentLayout::refuse_count(Arguments given) const {
  std::string all;
  for (size_t i = 0; i < explicit_.size(); ++i)
    all += fmt::format("{}{}", i == 0 ? "" : ", ", describe(i));
  if (given.is_packed()) {
    const std::string most =
        packed_padding_ == 0 ? "" : fmt::format(" to {}", packed_bytes_ + packed_padding_);
    refuse_layout(ErrorCode::argument, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
                  fmt::format("{} of packed arguments", bytes(given.count())),
                  fmt::format("the kernel takes {}{} bytes{}{}", packed_bytes_, most,
                              all.empty() ? "" : ": ", all),
                  "pack each argument at its offset");
  }
  refuse_layout(
      ErrorCode::argument, HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS, kernel_,
      fmt::format("pointers to {} arguments", given.count()),
      fmt::format("the kernel takes {}{}{}", explicit_.size(), all.empty() ? "" : ": ", all),
      "pass one pointer for each of the kernel's parameters");
}

void ArgumentLayout::refuse(Arguments given) const {
  if (given.is_packed() || (given.has_count() && given.count() != explicit_count_))
    refuse_count(given);
  uint32_t argument = 0;
  while (given.pointers() != nullptr && given.pointers()[argument] != nullptr) ++argument;
  refuse_null(argument);
}

void ArgumentLayout::refuse_null(size_t argument) const {
  refuse_layout(ErrorCode::argument, HSA_STATUS_ERROR_INVALID_ARGUMENT, kernel_,
                "pointers to the arguments",
                fmt::format("a null pointer for {}", describe(argument)),
                "point to the value, also where the value is a null address");
}

// Calls visit(place, bytes that belong there) until it returns false, and then returns false.
template <class Segment, class Visit>
bool ArgumentLayout::each(Arguments given, Segment& group_segment, Visit&& visit) const noexcept {
  for (uint32_t i = 0; i < explicit_count_; ++i) {
    const void* bytes = value(given, i);
    uint32_t offset_of_array;
    if (explicit_[i].kind == ArgumentKind::dynamic_shared_pointer) {
      uint32_t size_bytes;
      std::memcpy(&size_bytes, bytes, sizeof size_bytes);
      group_segment = static_cast<Segment>(align_local(group_segment));
      offset_of_array = static_cast<uint32_t>(group_segment);
      group_segment += size_bytes;
      bytes = &offset_of_array;
    }
    if (!visit(explicit_[i], bytes)) return false;
  }
  return true;
}

void ArgumentLayout::store_each(std::byte* block, Arguments given,
                                uint32_t& group_segment) const noexcept {
  each(given, group_segment, [block](const Place& place, const void* bytes) {
    std::memcpy(block + place.offset, bytes, place.size);
    return true;
  });
}

uint64_t ArgumentLayout::with_local(uint64_t bytes, Arguments given) const noexcept {
  each(given, bytes, [](const Place&, const void*) { return true; });
  return bytes;
}

bool ArgumentLayout::holds(const std::byte* block, Arguments given,
                           uint32_t& group_segment) const noexcept {
  return each(given, group_segment, [block](const Place& place, const void* bytes) {
    return std::memcmp(block + place.offset, bytes, place.size) == 0;
  });
}

bool ArgumentLayout::takes(const ArgumentType& type, size_t argument) const noexcept {
  const ArgumentType::Kind kind = this->kind(argument);
  if (type.kind != kind || type.size != size(argument)) return false;
  if (type.alignment != 0 && offset(argument) % type.alignment != 0) return false;
  return kind == ArgumentType::Kind::local ||
         fits(type.element, declared_element(declared_[argument].second));
}

std::string ArgumentLayout::describe(size_t argument) const {
  const auto& [name, type_name] = declared_[argument];
  std::string text = fmt::format("argument {}", argument);
  if (!name.empty()) text += fmt::format(" {}", name);
  if (!type_name.empty()) text += fmt::format(" '{}'", type_name);
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
  for (const Place& argument : explicit_) {
    if (argument.offset > at) std::memset(block + at, 0, argument.offset - at);
    at = argument.offset + argument.size;
  }
  if (size_ > at) std::memset(block + at, 0, size_ - at);
  for (const Place& argument : hidden_) {
    const uint64_t value = hidden_value(argument.kind, grid, queue);
    // Little-endian: the low bytes come first.
    std::memcpy(block + argument.offset, &value, std::min<size_t>(argument.size, sizeof value));
  }
}

}  // namespace uptempo
