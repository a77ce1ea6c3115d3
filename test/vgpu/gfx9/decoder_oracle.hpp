// Compares decode() with LLVM's disassembler in both directions, field by field through the printed
// text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gfx9/decode/decoder.hpp"
#include "test/vgpu/gfx9/llvm/llvm_mc.hpp"

namespace uptempo::vgpu::gfx9::test {

// A known difference and its justification. Every other difference is an error.
struct Exclusion {
  std::string_view reason;
  // `ours` is empty if we refuse the words, `theirs` if LLVM does.
  bool (*applies)(const Instruction& instruction, std::string_view ours, std::string_view theirs);
};
std::span<const Exclusion> exclusions() noexcept;

class DecoderOracle {
 public:
  explicit DecoderOracle(Target target) : target_(target), llvm_(target) {}

  // Returns the difference for the instruction at words[0], or nullopt. Sets `size_bytes` to LLVM's
  // size, or to 4 if LLVM refuses the words.
  std::optional<std::string> compare(std::span<const uint32_t> words, unsigned& size_bytes);

  uint64_t agreed = 0, both_refuse = 0, excluded = 0;

 private:
  Target target_;
  LlvmMc llvm_;
};

}  // namespace uptempo::vgpu::gfx9::test
