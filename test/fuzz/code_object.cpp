// Code objects, plain and compressed bundles, and programs that contain them: everything that the
// engine reads of a file before it gives it to ROCr.
#include <uptempo/program/code_object.hpp>

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <uptempo/program/compressed_bundle.hpp>
#include <uptempo/program/kernel_start.hpp>
#include <uptempo/program/loaded_kernel.hpp>
#include <uptempo/program/metadata.hpp>
#include "test/fuzz/fuzz.hpp"
#include "test/fuzz/rocr_loader.hpp"

namespace uptempo::fuzz {
namespace {

void read_object(const CodeObjectCandidate& candidate) {
  CodeObject object;
  if (!accepts([&] { object = read_code_object(candidate.bytes); })) return;
  require(object.version >= 3 && object.version <= kNewestCodeObjectVersion, "a known version");
  require(parse_target_id(to_string(object.target)) == object.target,
          "the target's text is the same target");
  load_as_rocr(object.bytes);
  accepts([&] { (void)can_call_host(object); });
  ProgramMetadata program;
  if (!accepts([&] { program = program_metadata(object); })) return;
  for (const KernelMetadata& kernel : program.kernels) {
    accepts([&] { (void)kernel_start(object, kernel); });
    accepts([&] { (void)can_call_host(object, kernel.name); });
  }
}

// A compressed bundle of version 3 unpacks to the bytes that were packed. They begin as a bundle.
void pack_and_unpack(Bytes contents) {
  std::vector<uint8_t> input(contents.size() + detail::kBundleMagic.size());
  std::ranges::copy(contents, std::ranges::copy(detail::kBundleMagic, input.begin()).out);
  std::vector<std::byte> packed(32 + ZSTD_compressBound(input.size()));
  const size_t size = ZSTD_compress(packed.data() + 32, packed.size() - 32, input.data(),
                                    input.size(), /*compressionLevel=*/1);
  packed.resize(32 + size);
  const uint16_t version_and_method[] = {3, 1};
  const uint64_t sizes[] = {packed.size(), input.size(), 0};
  std::memcpy(packed.data(), "CCOB", 4);
  std::memcpy(packed.data() + 4, version_and_method, sizeof version_and_method);
  std::memcpy(packed.data() + 8, sizes, sizeof sizes);
  const std::vector<std::byte> unpacked = unpack_bundle(packed);
  require(unpacked.size() == input.size() &&
              std::memcmp(unpacked.data(), input.data(), input.size()) == 0,
          "a bundle unpacks to what was packed");
}

}  // namespace

void code_object(Bytes input) {
  const auto bytes = std::as_bytes(input);
  std::vector<CodeObjectCandidate> candidates;
  accepts([&] { candidates = candidates_in(bytes); });
  for (const CodeObjectCandidate& candidate : candidates) read_object(candidate);
  accepts([&] { (void)kernel_starts(bytes); });
  accepts([&] { (void)select_code_object(bytes, {*parse_target_id("gfx90a"), 6}); });
  pack_and_unpack(input);
}

}  // namespace uptempo::fuzz
