// Compressed offload bundles: the bytes "CCOB", a header, and a clang offload bundle compressed by
// zstd. `clang --offload-compress` and `clang-offload-bundler -compress` write them.
//
// Fields, little-endian (LLVM, clang/include/clang/Driver/OffloadBundler.h):
//
//   version                 1     2     3
//   magic "CCOB"            4     4     4   bytes
//   version                 2     2     2
//   method                  2     2     2   0 zlib, 1 zstd
//   size of the file        -     4     8   header included
//   size when unpacked      4     4     8
//   hash                    8     8     8   start of the MD5 of the unpacked bytes
//
// Thread safety: pure functions.
// Errors: each field is checked, and so is the start of the contents, before memory is allocated
// for all of them. The hash is not checked, as in LLVM: it identifies the contents, it does not
// protect them. Bytes after the size of the file are ignored, because programs embed bundles with
// padding.
// Memory: a bundle unpacks to at most 256 MiB or, if that is more, 128 times its compressed size.
// Code objects compress to a tenth or less of that.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace uptempo {

namespace detail {
inline constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";  // unpacked
inline constexpr std::string_view kCompressedMagic = "CCOB";

inline bool begins_with(std::span<const std::byte> bytes, std::string_view magic) noexcept {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}
}  // namespace detail

// Returns the bundle. Throws Error, which names the defect, for an unknown version or method, a
// size that contradicts another one, contents that do not begin as an offload bundle, too many of
// them, and truncated or damaged data.
std::vector<std::byte> unpack_bundle(std::span<const std::byte> input);

}  // namespace uptempo
