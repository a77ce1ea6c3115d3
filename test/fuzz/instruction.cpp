// The decoder of gfx9 instructions, compared with LLVM's disassembler for the targets that it
// knows. The first byte selects the target.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "test/fuzz/fuzz.hpp"
#include "test/vgpu/gfx9/decoder_oracle.hpp"

namespace uptempo::fuzz {

void instruction(Bytes input) {
  using namespace vgpu::gfx9;
  namespace oracles = vgpu::gfx9::test;
  if (input.size() < 5) return;
  const auto target = static_cast<vgpu::gfx9::Target>(input[0] % kTargetCount);
  std::vector<uint32_t> words((input.size() - 1) / 4);
  std::memcpy(words.data(), input.data() + 1, words.size() * 4);
  static std::array<std::unique_ptr<oracles::DecoderOracle>, kTargetCount> made;
  const bool has_oracle = std::ranges::count(oracles::llvm_targets(), target) != 0;
  for (size_t at = 0; at < words.size();) {
    const std::span<const uint32_t> rest = std::span(words).subspan(at);
    const Instruction decoded = decode(rest, target);
    require(decoded.size_bytes == 4 || decoded.size_bytes == 8, "one or two words");
    require(decoded.size_bytes <= rest.size_bytes(), "an instruction ends before its code");
    require(!mnemonic(decoded.opcode).empty(), "an opcode has a name");
    // The words after an instruction are not part of it.
    const Instruction alone = decode(rest.first(decoded.size_bytes / 4), target);
    require(alone.opcode == decoded.opcode && alone.size_bytes == decoded.size_bytes &&
                alone.dst == decoded.dst && alone.literal == decoded.literal,
            "an instruction alone decodes as before other words");
    unsigned size_bytes = decoded.size_bytes;
    if (has_oracle && rest.size() >= 2) {
      auto& oracle = made[static_cast<size_t>(target)];
      if (oracle == nullptr) oracle = std::make_unique<oracles::DecoderOracle>(target);
      if (const auto difference = oracle->compare(rest.first(2), size_bytes)) finding(*difference);
    }
    at += size_bytes / 4;
  }
}

}  // namespace uptempo::fuzz
