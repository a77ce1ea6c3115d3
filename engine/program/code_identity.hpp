// Which code a kernel is: the target ID, the size and a hash of the code object that it was loaded from. What refers to a kernel from outside the process,
// as a saved recording does, names it so, because arguments and results mean something for this very code only.
//
// Two code objects with one identity are the same bytes but for a chance of 2^-64. The hash is no proof against somebody who wants them to collide.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace uptempo {

struct CodeIdentity {
  // Constructors, because GCC 12 destroys a nested aggregate that it has not made when a later member of the outer one throws.
  CodeIdentity() noexcept {}
  CodeIdentity(std::string the_target, uint64_t size, uint64_t the_hash) noexcept
      : target(std::move(the_target)), size_bytes(size), hash(the_hash) {}

  std::string target;       // "gfx90a"
  uint64_t size_bytes = 0;  // of the code object; 0: it is not known
  uint64_t hash = 0;        // content_hash() of the code object

  bool is_known() const noexcept { return size_bytes != 0; }
  friend bool operator==(const CodeIdentity&, const CodeIdentity&) = default;
};

// "gfx90a, 4711 bytes, hash 00ff00ff00ff00ff".
std::string to_string(const CodeIdentity& code);

// XXH64 with seed 0 (xxHash's specification), as `xxhsum -H1` prints it; gigabytes a second.
uint64_t content_hash(std::span<const std::byte> bytes) noexcept;

}  // namespace uptempo
