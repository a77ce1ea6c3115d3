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
// Errors: each field is checked, so that no size is allocated that the compressed bytes cannot
// yield. The hash is not checked, as in LLVM: it identifies the contents, it does not protect them.
// Bytes after the size of the file are ignored, because programs embed bundles with padding.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace uptempo {

bool is_compressed_bundle(std::span<const std::byte> input) noexcept;

// Returns the bundle. Throws Error, which names the defect, for an unknown version or method, a
// size that contradicts another one, and truncated or damaged data.
std::vector<std::byte> unpack_bundle(std::span<const std::byte> input);

}  // namespace uptempo
