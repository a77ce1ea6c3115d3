// LLVM's assembler and disassembler for one gfx9 target: the oracle of our decoder. Tests also use
// it to write instructions as text. Only tests use LLVM.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9::test {

class LlvmMc {
 public:
  explicit LlvmMc(Target target);
  ~LlvmMc();

  struct Disassembled {
    unsigned size_bytes = 0;
    std::string text;  // "v_add_f32_e32 v1, v2, v3"
  };
  // Returns nullopt if LLVM knows no such instruction. Requires that is_fatal(words) is false.
  std::optional<Disassembled> disassemble(std::span<const uint32_t> words);

  // LLVM ends the process on these, instead of refusing the words: an SDWA select of 7 or an unused
  // mode of 3; from LLVM 21 on, a literal in VOP3, MUBUF or MTBUF, which have none on gfx9.
  static bool is_fatal(std::span<const uint32_t> words) noexcept;

  // Returns the words of one or more lines of assembly. Errors: throws std::runtime_error with
  // LLVM's message.
  std::vector<uint32_t> assemble(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

const char* cpu_name(Target target) noexcept;  // "gfx90a"

// The targets that this LLVM knows. The tables of gfx942 were made with LLVM 19; older releases
// lack the target or some of its instructions.
std::span<const Target> llvm_targets() noexcept;

}  // namespace uptempo::vgpu::gfx9::test
