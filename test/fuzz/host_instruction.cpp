// The decoders of x86-64 stores and loads, compared with LLVM's disassembler.
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>

#include <cstring>
#include <memory>

#include "cp/doorbell/store_instruction.hpp"
#include "device/bar/mov_instruction.hpp"
#include "test/fuzz/fuzz.hpp"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86Disassembler();
}

namespace uptempo::fuzz {
namespace {

LLVMDisasmContextRef disassembler() {
  static const LLVMDisasmContextRef x86 = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
    return LLVMCreateDisasm("x86_64", nullptr, 0, nullptr, nullptr);
  }();
  return x86;
}

void compare(const uint8_t* code, size_t size_bytes, bool exchanges) {
  char text[128];
  uint8_t copy[15];
  std::memcpy(copy, code, sizeof copy);
  const size_t theirs =
      LLVMDisasmInstruction(disassembler(), copy, sizeof copy, 0, text, sizeof text);
  require(theirs == size_bytes, "the length is LLVM's");
  require(std::string_view(text).find(exchanges ? "\txchg" : "\tmov") == 0,
          "the instruction is LLVM's");
}

}  // namespace

void host_instruction(Bytes input) {
  // As many bytes as the decoders may read, so that AddressSanitizer sees each further one.
  const auto code = std::make_unique<uint8_t[]>(15);
  if (!input.empty()) std::memcpy(code.get(), input.data(), std::min<size_t>(input.size(), 15));
  if (const auto store = vgpu::decode_store(code.get()))
    compare(code.get(), store->size_bytes, store->exchanges);
  if (const auto mov = vgpu::decode_mov(code.get())) compare(code.get(), mov->length_bytes, false);
}

}  // namespace uptempo::fuzz
