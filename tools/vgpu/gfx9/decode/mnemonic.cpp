#include <iterator>

#include "gfx9/decode/decoder.hpp"

namespace uptempo::vgpu::gfx9 {
namespace {

constexpr std::string_view kMnemonics[] = {
    "invalid",
#define OPCODE(mnemonic) #mnemonic,
#include "gfx9/decode/opcodes.inc"
#undef OPCODE
};
static_assert(std::size(kMnemonics) == kOpcodeCount);

}  // namespace

std::string_view mnemonic(Opcode opcode) noexcept {
  return kMnemonics[static_cast<size_t>(opcode)];
}

}  // namespace uptempo::vgpu::gfx9
