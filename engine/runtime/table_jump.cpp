#include <uptempo/runtime/table_jump.hpp>

#include <cstring>

namespace uptempo::detail {
namespace {

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
constexpr uint8_t kEndBranch[] = {0xf3, 0x0f, 0x1e, 0xfa};  // ENDBR64, with control-flow protection
constexpr uint8_t kNoTrack = 0x3e;                          // prefix of a jump, likewise
constexpr unsigned kStackPointer = 4;                       // as a base it would need another byte

int32_t number_at(std::span<const uint8_t> code) noexcept {
  int32_t number = 0;
  std::memcpy(&number, code.data(), sizeof(number));
  return number;
}

}  // namespace

std::optional<TableJump> decode_table_jump(std::span<const uint8_t> code) noexcept {
#if defined(__x86_64__)
  const std::span<const uint8_t> all = code;
  const auto starts_with = [&](std::span<const uint8_t> bytes) {
    return code.size() >= bytes.size() && std::memcmp(code.data(), bytes.data(), bytes.size()) == 0;
  };
  if (starts_with(kEndBranch)) code = code.subspan(sizeof(kEndBranch));
  // REX.W MOV r64, [RIP + disp32]
  if (code.size() < 7 || code[0] != 0x48 || code[1] != 0x8b || (code[2] & 0xc7) != 0x05) return {};
  const unsigned base = code[2] >> 3 & 7u;
  if (base == kStackPointer) return {};
  const int32_t to_pointer = number_at(code.subspan(3));
  code = code.subspan(7);
  TableJump jump{.pointer = static_cast<ptrdiff_t>(all.size() - code.size()) + to_pointer};
  if (starts_with({&kNoTrack, 1})) code = code.subspan(1);
  // JMP r/m64 with an offset of 8 or of 32 bits
  if (code.size() >= 3 && code[0] == 0xff && code[1] == (0x60 | base)) {
    jump.slot = code[2] < 0x80 ? code[2] : code[2] - 0x100;
    return jump;
  }
  if (code.size() >= 6 && code[0] == 0xff && code[1] == (0xa0 | base)) {
    jump.slot = number_at(code.subspan(2));
    return jump;
  }
  return {};
#else
  (void)code;
  return {};
#endif
}

}  // namespace uptempo::detail
