// ArgumentPlaces<Args...>: where the explicit arguments of a kernel are in its kernarg block, and
// how they are written there and compared. One definition for arguments whose types are known at
// compile time, one for Arguments. Private: the templates of BatchSubmitter, Recording, Stream and
// Launcher need it.
//
// Thread safety: immutable; writes the caller's block only.
// Lifetime: the layout must outlive its places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <uptempo/program/argument_layout.hpp>
#include <uptempo/program/arguments.hpp>

namespace uptempo::detail {

// True for kernels whose arguments are given at run time.
template <class... Args>
inline constexpr bool kAtRunTime = (std::is_same_v<std::remove_cv_t<Args>, Arguments> || ...);

template <class... Args>
inline constexpr bool takes_local_bytes = (std::is_same_v<std::remove_cv_t<Args>, LocalBytes> ||
                                           ...);

// Size of the group segment after one more argument. 64 bits, so that it cannot overflow.
template <class T>
constexpr uint64_t with_argument(uint64_t group_segment, [[maybe_unused]] const T& value) noexcept {
  if constexpr (takes_local_bytes<T>) return align_local(group_segment) + value.size_bytes;
  return group_segment;
}

// The bytes of one explicit argument in the block: of a dynamic LDS array its offset, after which
// `group_segment` is advanced past the array.
template <class T>
inline decltype(auto) in_block(const T& value, [[maybe_unused]] uint32_t& group_segment) noexcept {
  if constexpr (std::is_same_v<T, LocalBytes>) {
    const auto offset = static_cast<uint32_t>(align_local(group_segment));
    group_segment = offset + value.size_bytes;
    return uint32_t{offset};
  } else {
    return (value);  // a reference
  }
}

template <class T>
inline void store_argument(std::byte* block, uint32_t offset, const T& value,
                           uint32_t& group_segment) noexcept {
  const auto& bytes = in_block(value, group_segment);
  std::memcpy(block + offset, &bytes, sizeof bytes);
}

// True if the block holds this argument. Advances `group_segment` in the same way.
template <class T>
inline bool holds_argument(const std::byte* block, uint32_t offset, const T& value,
                           uint32_t& group_segment) noexcept {
  const auto& bytes = in_block(value, group_segment);
  return std::memcmp(block + offset, &bytes, sizeof bytes) == 0;
}

// Writes all explicit arguments in order. `group_segment` is the group memory before the LDS arrays
// among them, and is advanced past these.
template <class... Args>
class ArgumentPlaces {
 public:
  explicit ArgumentPlaces(const ArgumentLayout& layout) noexcept {
    for (size_t i = 0; i < sizeof...(Args); ++i) offsets_[i] = layout.offset(i);
  }
  void store([[maybe_unused]] std::byte* block, [[maybe_unused]] uint32_t& group_segment,
             const Args&... args) const noexcept {
    [[maybe_unused]] size_t i = 0;
    (store_argument(block, offsets_[i++], args, group_segment), ...);
  }
  bool holds([[maybe_unused]] const std::byte* block, [[maybe_unused]] uint32_t& group_segment,
             const Args&... args) const noexcept {
    [[maybe_unused]] size_t i = 0;
    return (holds_argument(block, offsets_[i++], args, group_segment) && ...);
  }

 private:
  std::array<uint32_t, sizeof...(Args)> offsets_;
};

template <>
class ArgumentPlaces<Arguments> {
 public:
  explicit ArgumentPlaces(const ArgumentLayout& layout) noexcept : layout_(&layout) {}
  void store(std::byte* block, uint32_t& group_segment, Arguments given) const noexcept {
    layout_->store(block, given, group_segment);
  }
  bool holds(const std::byte* block, uint32_t& group_segment, Arguments given) const noexcept {
    return layout_->holds(block, given, group_segment);
  }

 private:
  const ArgumentLayout* layout_;
};

}  // namespace uptempo::detail
