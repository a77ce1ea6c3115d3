#include <uptempo/program/compressed_bundle.hpp>

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <uptempo/program/elf_file.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo {
namespace {

constexpr uint16_t kMethodZlib = 0;
constexpr uint16_t kMethodZstd = 1;
// RFC 8878, "Blocks", allows 4 bytes to yield 128 KiB, so the format sets no useful limit.
constexpr uint64_t kMostOfAny = 256 << 20;
constexpr uint64_t kMostPerByte = 128;

[[noreturn]] void refuse_bundle(std::string found,
                                std::string remedy = "bundle again, or without compression") {
  throw Error({.code = ErrorCode::program,
               .status = HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "compressed offload bundle",
               .asked = "a bundle of version 1, 2 or 3 compressed by zstd",
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

// True if the frame's contents begin as an offload bundle. Unpacks one block.
bool holds_bundle(std::span<const std::byte> frame) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   ZSTD_freeDCtx);
  // The largest window that the format's implementation has. zstd does not touch its memory yet.
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax,
                         ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  std::array<char, detail::kBundleMagic.size()> start{};
  ZSTD_outBuffer out{.dst = start.data(), .size = start.size(), .pos = 0};
  ZSTD_inBuffer in{.src = frame.data(), .size = frame.size(), .pos = 0};
  const size_t result = ZSTD_decompressStream(context.get(), &out, &in);
  if (ZSTD_isError(result) != 0)
    refuse_bundle(fmt::format("a zstd frame whose first block does not unpack: {}",
                              ZSTD_getErrorName(result)));
  return std::string_view(start.data(), out.pos) == detail::kBundleMagic;
}

}  // namespace

std::vector<std::byte> unpack_bundle(std::span<const std::byte> input) {
  if (!detail::begins_with(input, detail::kCompressedMagic))
    refuse_bundle("bytes that do not begin with CCOB");
  size_t at = detail::kCompressedMagic.size();
  const auto take = [&]<class T>(T, const char* field) -> uint64_t {
    const auto value = detail::read_at<T>(input, at);
    if (!value) refuse_bundle(fmt::format("{} bytes, cut off in its {}", input.size(), field));
    at += sizeof(T);
    return *value;
  };
  const auto version = take(uint16_t{}, "version");
  if (version < 1 || version > 3)
    refuse_bundle(fmt::format("version {}", version),
                  "bundle with COMPRESSED_BUNDLE_FORMAT_VERSION=3, or without compression");
  const auto method = take(uint16_t{}, "method");
  if (method != kMethodZstd)
    refuse_bundle(method == kMethodZlib ? "compression by zlib (method 0)"
                                        : fmt::format("compression by unknown method {}", method),
                  "bundle with an LLVM that has zstd, or without compression");
  uint64_t file_size = input.size();
  if (version == 2) file_size = take(uint32_t{}, "file size");
  if (version == 3) file_size = take(uint64_t{}, "file size");
  const uint64_t unpacked_size =
      version == 3 ? take(uint64_t{}, "unpacked size") : take(uint32_t{}, "unpacked size");
  take(uint64_t{}, "hash");
  if (file_size > input.size())
    refuse_bundle(
        fmt::format("{} bytes, cut off: its header claims a file of {}", input.size(), file_size));
  if (file_size < at)
    refuse_bundle(fmt::format("a header of {} bytes that claims a file of {}", at, file_size));

  const std::span<const std::byte> packed = input.subspan(at, file_size - at);
  // Version 1 has no file size, so more bytes than the frame's may follow.
  const size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
  if (ZSTD_isError(frame) != 0) {
    refuse_bundle(fmt::format("a zstd frame in {} bytes that is cut off or damaged: {}",
                              packed.size(), ZSTD_getErrorName(frame)));
  }
  if (const uint64_t most = std::max(kMostOfAny, kMostPerByte * frame); unpacked_size > most) {
    refuse_bundle(
        fmt::format("a header that claims {} unpacked bytes, more than {}, the most for {} bytes",
                    unpacked_size, most, frame));
  }
  const unsigned long long claimed = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (claimed != ZSTD_CONTENTSIZE_UNKNOWN && claimed != unpacked_size) {
    refuse_bundle(
        fmt::format("a header that claims {} unpacked bytes and a zstd frame that claims {}",
                    unpacked_size, claimed));
  }
  if (!holds_bundle(packed.first(frame))) refuse_bundle("contents that are not an offload bundle");
  std::vector<std::byte> bundle(unpacked_size);
  const size_t size = ZSTD_decompress(bundle.data(), bundle.size(), packed.data(), frame);
  if (ZSTD_isError(size) != 0) {
    refuse_bundle(fmt::format("a zstd frame that does not unpack to {} bytes: {}", unpacked_size,
                              ZSTD_getErrorName(size)));
  }
  if (size != unpacked_size) {
    refuse_bundle(fmt::format("a header that claims {} unpacked bytes and a zstd frame of {}",
                              unpacked_size, size));
  }
  return bundle;
}

}  // namespace uptempo
