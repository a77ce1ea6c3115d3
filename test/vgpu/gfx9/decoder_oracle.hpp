// Compares decode() with LLVM's disassembler, field by field through the text that both give, in both directions.
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

// Where the two are known to differ, and why that is right. Nothing else may differ.
struct Exclusion {
  std::string_view reason;
  // `ours` is empty when we refuse the words, `theirs` when LLVM does.
  bool (*applies)(const Instruction& instruction, std::string_view ours, std::string_view theirs);
};
std::span<const Exclusion> exclusions() noexcept;

class DecoderOracle {
 public:
  explicit DecoderOracle(Target target) : target_(target), llvm_(target) {}

  // What differs in the instruction that starts at words[0], or nullopt. Gives LLVM's size in `size_bytes`, 4 when it refuses.
  std::optional<std::string> compare(std::span<const uint32_t> words, unsigned& size_bytes);

  uint64_t agreed = 0, both_refuse = 0, excluded = 0;

 private:
  Target target_;
  LlvmMc llvm_;
};

}  // namespace uptempo::vgpu::gfx9::test
