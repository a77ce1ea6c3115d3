// Compressed offload bundles. The layout comes from LLVM's documentation; one bundle is the output
// of Debian's clang-offload-bundler 21.1.8, since those of LLVM 14 and 15 cannot compress.
#include <fmt/format.h>
#include <zstd.h>
#include <uptempo/kernels/bitonic_sort.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/compressed_bundle.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using uptempo::test::contains;
using uptempo::test::error_of;

namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& bytes, T value) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

Bytes zstd(std::span<const std::byte> data) {
  Bytes frame(ZSTD_compressBound(data.size()));
  const size_t size = ZSTD_compress(frame.data(), frame.size(), data.data(), data.size(), 3);
  REQUIRE(ZSTD_isError(size) == 0);
  frame.resize(size);
  return frame;
}

// Fields of the header, each with the value that fits unless a test changes it.
struct Fields {
  unsigned version = 3;
  unsigned method = 1;
  int64_t more_file = 0;      // added to the size of the file
  int64_t more_unpacked = 0;  // added to the size when unpacked
};

Bytes header_and(const Bytes& packed, size_t unpacked_size, const Fields& fields = {}) {
  Bytes bytes;
  for (const char c : {'C', 'C', 'O', 'B'}) put(bytes, c);
  put(bytes, static_cast<uint16_t>(fields.version));
  put(bytes, static_cast<uint16_t>(fields.method));
  const size_t header = fields.version == 1 ? 20 : fields.version == 2 ? 24 : 32;
  const uint64_t file = header + packed.size() + static_cast<uint64_t>(fields.more_file);
  const uint64_t unpacked = unpacked_size + static_cast<uint64_t>(fields.more_unpacked);
  if (fields.version == 2) put(bytes, static_cast<uint32_t>(file));
  if (fields.version > 2) put(bytes, file);
  if (fields.version > 2) {
    put(bytes, unpacked);
  } else {
    put(bytes, static_cast<uint32_t>(unpacked));
  }
  put(bytes, uint64_t{0x0123456789abcdef});  // hash
  bytes.insert(bytes.end(), packed.begin(), packed.end());
  return bytes;
}

Bytes compressed(std::span<const std::byte> bundle, const Fields& fields = {}) {
  return header_and(zstd(bundle), bundle.size(), fields);
}

Bytes plain(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Bytes that begin as a bundle, and then repeat a letter.
Bytes bundle_like(size_t size, char letter = 'x') {
  std::string text = "__CLANG_OFFLOAD_BUNDLE__";
  text.resize(size, letter);
  return plain(text);
}

std::string refusal(const Bytes& input) {
  return error_of<Error>([&] { unpack_bundle(input); });
}

}  // namespace

TEST_CASE("a compressed bundle of each version holds the code objects of the plain one",
          "[compressed]") {
  const auto bundle = builtin_kernels::bitonic_sort();
  const unsigned version = GENERATE(1u, 2u, 3u);
  CAPTURE(version);
  CodeObject object = [&] {
    const Bytes input = compressed(bundle, {.version = version});
    CHECK(input.size() < bundle.size());
    return select_code_object(input, *parse_target_id("gfx90a"));
  }();  // the input is gone, but not the unpacked bytes
  const CodeObject original = select_code_object(bundle, *parse_target_id("gfx90a"));
  REQUIRE(object.bytes.size() == original.bytes.size());
  CHECK(std::memcmp(object.bytes.data(), original.bytes.data(), object.bytes.size()) == 0);
  CHECK(read_metadata(metadata_note(object)).kernels.front().name == "bitonic_sort");
}

TEST_CASE("a bundle compressed by clang-offload-bundler is unpacked", "[compressed]") {
  // clang-offload-bundler-21 -type=o -compress
  //   -targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--gfx90a,
  //            hipv4-amdgcn-amd-amdhsa--gfx900
  // of an empty file and two lines of text
  constexpr std::array<uint8_t, 178> kFile = {
      0x43, 0x43, 0x4f, 0x42, 0x02, 0x00, 0x01, 0x00, 0xb2, 0x00, 0x00, 0x00, 0x42, 0x01, 0x00,
      0x00, 0x1e, 0x89, 0xee, 0xf7, 0xe0, 0x8a, 0x60, 0xee, 0x28, 0xb5, 0x2f, 0xfd, 0x60, 0x42,
      0x00, 0x85, 0x04, 0x00, 0xc4, 0x06, 0x5f, 0x5f, 0x43, 0x4c, 0x41, 0x4e, 0x47, 0x5f, 0x4f,
      0x46, 0x46, 0x4c, 0x4f, 0x41, 0x44, 0x5f, 0x42, 0x55, 0x4e, 0x44, 0x4c, 0x45, 0x5f, 0x5f,
      0x03, 0x00, 0xc4, 0x00, 0x1e, 0x00, 0x68, 0x6f, 0x73, 0x74, 0x2d, 0x78, 0x38, 0x36, 0x5f,
      0x36, 0x34, 0x2d, 0x75, 0x6e, 0x6b, 0x6e, 0x6f, 0x77, 0x6e, 0x2d, 0x6c, 0x69, 0x6e, 0x75,
      0x78, 0x2d, 0x67, 0x6e, 0x75, 0x2d, 0x3d, 0x1f, 0x69, 0x70, 0x76, 0x34, 0x2d, 0x61, 0x6d,
      0x64, 0x67, 0x63, 0x6e, 0x68, 0x73, 0x61, 0x2d, 0x2d, 0x67, 0x66, 0x78, 0x39, 0x30, 0x61,
      0x01, 0x01, 0x41, 0x30, 0x63, 0x6f, 0x6e, 0x74, 0x65, 0x6e, 0x74, 0x73, 0x20, 0x66, 0x6f,
      0x72, 0x20, 0x3a, 0x20, 0x61, 0x30, 0x3a, 0x20, 0x62, 0x0e, 0x00, 0xe0, 0x26, 0x01, 0xc1,
      0x03, 0xf0, 0x32, 0x34, 0x01, 0x53, 0xb5, 0x32, 0x97, 0x52, 0xf8, 0x3b, 0x0b, 0x2a, 0xd6,
      0x01, 0x61, 0x20, 0x0b, 0xb3, 0x22, 0x0e, 0x0c, 0x18, 0x48, 0x2c, 0x06, 0xc6,
  };
  const auto entries = candidates_in(std::as_bytes(std::span(kFile)));
  REQUIRE(entries.size() == 2);
  const auto text = [](const CodeObjectCandidate& entry) {
    return std::string(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  };
  CHECK(entries[0].name == "hipv4-amdgcn-amd-amdhsa--gfx90a");
  CHECK(text(entries[0]) == "contents for gfx90a: " + std::string(40, 'a'));
  CHECK(entries[1].name == "hipv4-amdgcn-amd-amdhsa--gfx900");
  CHECK(text(entries[1]) == "contents for gfx900: " + std::string(44, 'b'));
}

TEST_CASE("a compressed bundle is refused with the name of the field that is wrong",
          "[compressed]") {
  const Bytes data = bundle_like(5000);
  CHECK(refusal(compressed(data)) == "no error");
  CHECK(contains(refusal(plain("CCOA....")), "do not begin with CCOB"));
  CHECK(contains(refusal(compressed(data, {.version = 0})), "version 0"));
  CHECK(contains(refusal(compressed(data, {.version = 4})), "version 4"));
  CHECK(contains(refusal(compressed(data, {.method = 0})), "compression by zlib (method 0)"));
  CHECK(contains(refusal(compressed(data, {.method = 2})), "unknown method 2"));
  for (const unsigned version : {2u, 3u}) {
    CAPTURE(version);
    CHECK(contains(refusal(compressed(data, {.version = version, .more_file = 1})),
                   "cut off: its header claims a file of"));
    CHECK(contains(refusal(compressed(data, {.version = version, .more_file = -50})),
                   "claims a file of"));
  }
  for (const unsigned version : {1u, 2u, 3u}) {
    CAPTURE(version);
    CHECK(contains(refusal(compressed(data, {.version = version, .more_unpacked = 1})),
                   "claims 5001 unpacked bytes and a zstd frame that claims 5000"));
    CHECK(contains(refusal(compressed(data, {.version = version, .more_unpacked = -1})),
                   "claims 4999 unpacked bytes and a zstd frame that claims 5000"));
  }
  CHECK(contains(refusal(header_and(data, data.size())), "Unknown frame descriptor"));
  CHECK(contains(refusal(compressed(plain(std::string(5000, 'x')))),
                 "contents that are not an offload bundle"));
  CHECK(contains(refusal(compressed(plain("__CLANG"))), "contents that are not an offload bundle"));
}

TEST_CASE("a claim of more bytes than the compressed ones can yield is refused before any is made",
          "[compressed]") {
  // A frame without content size, so that only the header claims one.
  const Bytes data = bundle_like(5000);
  const auto context =
      std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)>(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_contentSizeFlag, 0);
  Bytes frame(ZSTD_compressBound(data.size()));
  frame.resize(ZSTD_compress2(context.get(), frame.data(), frame.size(), data.data(), data.size()));
  CHECK(refusal(header_and(frame, data.size())) == "no error");
  CHECK(contains(refusal(header_and(frame, data.size() - 1)), "does not unpack to 4999 bytes"));
  CHECK(contains(refusal(header_and(frame, data.size() + 1)),
                 "claims 5001 unpacked bytes and a zstd frame of 5000"));
  const size_t bomb = size_t{1} << 60;
  CHECK(contains(refusal(header_and(frame, bomb)),
                 "claims 1152921504606846976 unpacked bytes, more than"));
  // A frame that claims as much is refused in the same way. Frame header: single segment, content
  // size of 8 bytes. Last block, raw and empty.
  Bytes lie = plain("\x28\xb5\x2f\xfd\xe0");
  put(lie, uint64_t{bomb});
  for (const int byte : {1, 0, 0}) put(lie, static_cast<uint8_t>(byte));
  CHECK(contains(refusal(header_and(lie, bomb)), "more than"));
}

// RFC 8878, "Frame Header" and "Blocks": a frame of one segment with the content size in 8 bytes; a
// raw block, and blocks of one byte that is repeated.
Bytes bundle_with_zeros(uint64_t size) {
  Bytes frame = plain("\x28\xb5\x2f\xfd\xe0");
  put(frame, size);
  const auto block = [&](uint64_t bytes, unsigned type, std::string_view data) {
    size -= bytes;
    const uint64_t header = bytes << 3 | type << 1 | unsigned{size == 0};
    for (const unsigned shift : {0u, 8u, 16u}) put(frame, static_cast<uint8_t>(header >> shift));
    for (const char c : data) put(frame, c);
  };
  constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
  block(kMagic.size(), 0, kMagic);
  while (size != 0) block(std::min(size, uint64_t{128} << 10), 1, {"\0", 1});
  return frame;
}

TEST_CASE("a small compressed bundle unpacks to at most 256 MiB", "[compressed]") {
  constexpr uint64_t kMost = 256 << 20;
  const auto compressed_zeros = [](uint64_t size) {
    return header_and(bundle_with_zeros(size), size);
  };
  CHECK(unpack_bundle(compressed_zeros(kMost)).size() == kMost);
  CHECK(contains(refusal(compressed_zeros(kMost + 1)),
                 "claims 268435457 unpacked bytes, more than 268435456"));
  const Bytes bomb = compressed_zeros(uint64_t{3} << 30);
  CHECK(bomb.size() < 100'000);
  CHECK(contains(refusal(bomb), "claims 3221225472 unpacked bytes, more than 268435456"));
}

TEST_CASE("a large compressed bundle unpacks to at most 128 times its size", "[compressed]") {
  std::mt19937_64 random(1);
  Bytes data = bundle_like(3 << 20);
  for (size_t at = 24; at + 8 <= data.size(); at += 8) {
    const uint64_t word = random();
    std::memcpy(data.data() + at, &word, sizeof word);
  }
  const Bytes packed = zstd(data);
  REQUIRE(packed.size() > 3 << 20);
  CHECK(contains(
      refusal(header_and(packed, 128 * packed.size() + 1)),
      fmt::format("more than {}, the most for {} bytes", 128 * packed.size(), packed.size())));
  CHECK(contains(refusal(header_and(packed, 128 * packed.size())), "a zstd frame that claims"));
}

TEST_CASE("padding after a compressed bundle is ignored", "[compressed]") {
  const Bytes data = bundle_like(5000);
  for (const unsigned version : {1u, 2u, 3u}) {
    CAPTURE(version);
    Bytes input = compressed(data, {.version = version});
    input.resize(input.size() + 100);
    CHECK(unpack_bundle(input) == data);
  }
}

TEST_CASE("a truncated compressed bundle is refused, and nothing outside it is read",
          "[compressed]") {
  Bytes data = bundle_like(500);
  data.resize(1000, std::byte{'y'});
  for (const unsigned version : {1u, 2u, 3u}) {
    const Bytes whole = compressed(data, {.version = version});
    for (size_t length = 0; length < whole.size(); ++length) {
      // A copy of exactly that size, so that AddressSanitizer detects a read past the end.
      const Bytes part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
      if (refusal(part) == "no error") FAIL("accepted " << length << " of " << whole.size());
    }
  }
}

TEST_CASE("a compressed bundle with flipped bits causes an error or bytes of the claimed size",
          "[compressed]") {
  const auto bundle = builtin_kernels::bitonic_sort();
  const Bytes whole = compressed(bundle);
  std::mt19937 random(20260102);
  unsigned refused = 0;
  for (int round = 0; round < 2000; ++round) {
    Bytes damaged = whole;
    const size_t limit = round % 2 == 0 ? whole.size() : 48;
    for (auto flips = 1 + random() % 3; flips > 0; --flips)
      damaged[random() % limit] ^= std::byte(1u << random() % 8);
    try {
      const Bytes unpacked = unpack_bundle(damaged);
      if (unpacked.size() != bundle.size()) FAIL("unpacked " << unpacked.size() << " bytes");
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 500);
}
