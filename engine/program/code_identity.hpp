// CodeIdentity: target ID, size and hash of the code object that a kernel was loaded from. A saved
// recording identifies its kernels by it, because arguments and results are valid only for this
// code.
//
// Two code objects with one identity are equal, except with a probability of 2^-64. The hash does
// not protect against deliberate collisions.
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
  // Constructors: without them, if a later member of the outer aggregate throws, GCC 12 destroys a
  // nested aggregate that it has not constructed.
  CodeIdentity() noexcept {}
  CodeIdentity(std::string the_target, uint64_t size, uint64_t the_hash) noexcept
      : target(std::move(the_target)), size_bytes(size), hash(the_hash) {}

  std::string target;       // "gfx90a"
  uint64_t size_bytes = 0;  // of the code object; 0: unknown
  uint64_t hash = 0;        // content_hash() of the code object

  bool is_known() const noexcept { return size_bytes != 0; }
  friend bool operator==(const CodeIdentity&, const CodeIdentity&) = default;
};

// "gfx90a, 4711 bytes, hash 00ff00ff00ff00ff".
std::string to_string(const CodeIdentity& code);

// XXH64 with seed 0 (xxHash's specification), as printed by `xxhsum -H1`. Cost: gigabytes per
// second.
uint64_t content_hash(std::span<const std::byte> bytes) noexcept;

}  // namespace uptempo
