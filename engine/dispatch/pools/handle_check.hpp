// Handles that are used after what they name was recycled are caught in debug builds: a CommandRef whose batch has gone on, a kernarg block or a completion
// signal of the caller's that an unfinished publication still uses, a pooled signal or slab that is given back twice.
//
// On with the CMake option UPTEMPO_CHECK_HANDLES, which is on by default for the build type Debug and off otherwise. What it adds are members of
// public classes, so the library and all who include it agree or do not link: the target uptempo::engine passes the definition on, and
// BatchSubmitter's constructor has a parameter of type HandleChecks. Where it is off nothing is left of it, neither in objects nor in code.
//
// Misuse by the program throws Error. Misuse within the library ends the process with a sentence on stderr: nothing it does afterwards could be
// trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace uptempo {
class Timeline;
}

namespace uptempo::detail {

#if defined(UPTEMPO_CHECK_HANDLES)
inline constexpr bool handle_checks = true;
#else
inline constexpr bool handle_checks = false;
#endif

template <bool on>
struct HandleChecks {};

// Which use of something it is that is used again and again.
struct Generation {
  uint32_t number = 0;
  void next() noexcept { ++number; }
  friend bool operator==(const Generation&, const Generation&) = default;
};
struct NoGeneration {
  void next() noexcept {}
  friend bool operator==(const NoGeneration&, const NoGeneration&) = default;
};
using GenerationTag = std::conditional_t<handle_checks, Generation, NoGeneration>;
static_assert(std::is_empty_v<NoGeneration>);

[[noreturn]] void end_with(const char* sentence) noexcept;

// Kernarg blocks of the caller's (BatchSubmitter::dispatch_at), until the publication that reads them has completed.
//
// Thread safety: one owner.
class LentBlocks {
 public:
  // Throws Error if part of it is still read by an earlier dispatch.
  void lend(std::span<const std::byte> block, const void* batch, Timeline& timeline);
  void published(const void* batch, uint64_t value) noexcept;
  void dropped(const void* batch) noexcept;

 private:
  struct Lent {
    const std::byte* begin;
    const std::byte* end;
    const void* batch;  // null when it is published
    uint64_t value;
  };
  std::vector<Lent> lent_;
};
struct NoLentBlocks {
  void lend(std::span<const std::byte>, const void*, Timeline&) noexcept {}
  void published(const void*, uint64_t) noexcept {}
  void dropped(const void*) noexcept {}
};
using LentBlocksIfChecked = std::conditional_t<handle_checks, LentBlocks, NoLentBlocks>;

}  // namespace uptempo::detail
