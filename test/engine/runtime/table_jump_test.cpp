// The expected bytes are from `objdump -d libhsa-runtime64.so.1` of Debian's ROCr 5.2.3, 6.1.2 and
// 6.4.3.
#include <uptempo/runtime/table_jump.hpp>

#include <vector>

#include "test/support/catch.hpp"

using uptempo::detail::decode_table_jump;
using uptempo::detail::kTableJumpBytes;
using uptempo::detail::TableJump;

#if defined(__x86_64__)

TEST_CASE("the entry points of three releases of ROCr are jumps through a table", "[table_jump]") {
  struct Example {
    std::vector<uint8_t> code;
    ptrdiff_t pointer, slot;
  };
  const std::vector<Example> examples = {
      // 5.2.3, hsa_queue_cas_write_index_scacq_screl at 70d10: the pointer is at 24c890
      {{0x48, 0x8b, 0x05, 0x79, 0xbb, 0x1d, 0x00, 0xff, 0xa0, 0x98, 0x00, 0x00, 0x00, 0x0f, 0x1f},
       0x24c890 - 0x70d10,
       0x98},
      // 6.1.2, hsa_queue_create at 9b980: 2ec048
      {{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0xbd, 0x06, 0x25, 0x00, 0xff, 0x60, 0x48},
       0x2ec048 - 0x9b980,
       0x48},
      // 6.4.3, hsa_signal_store_screlease at c16f0: 42a588
      {{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x05, 0x8d, 0x8e, 0x36, 0x00, 0xff, 0xa0, 0x60, 0x01,
        0x00, 0x00},
       0x42a588 - 0xc16f0,
       0x160},
      // Made by hand: another register, a table below the code, a tracked jump's prefix.
      {{0x48, 0x8b, 0x0d, 0xf0, 0xff, 0xff, 0xff, 0x3e, 0xff, 0x61, 0xf8}, -9, -8},
  };
  for (const Example& example : examples) {
    CAPTURE(example.pointer);
    const auto jump = decode_table_jump(example.code);
    REQUIRE(jump);
    CHECK(jump->pointer == example.pointer);
    CHECK(jump->slot == example.slot);
    CHECK(example.code.size() <= kTableJumpBytes);
    // One byte less, and nothing is read beyond the end. Trailing bytes are of the next function.
    for (size_t size = 0; size < 10; ++size)
      CHECK_FALSE(decode_table_jump(std::span(example.code).first(size)));
  }
}

TEST_CASE("other code is no jump through a table", "[table_jump]") {
  const std::vector<std::vector<uint8_t>> others = {
      {},
      // push %rbp; mov %rsp,%rbp: a build without optimisation
      {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xff, 0x60, 0x48, 0, 0, 0, 0},
      // jmp rel32: a patched function
      {0xe9, 1, 2, 3, 4, 0, 0, 0xff, 0x60, 0x48, 0, 0, 0, 0, 0, 0, 0, 0},
      // the table in one register, the jump through another
      {0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xff, 0x61, 0x48, 0, 0, 0, 0, 0, 0, 0, 0},
      // call instead of jmp
      {0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xff, 0x50, 0x48, 0, 0, 0, 0, 0, 0, 0, 0},
      // an address relative to RAX, not to the code
      {0x48, 0x8b, 0x80, 0, 0, 0, 0, 0xff, 0x60, 0x48, 0, 0, 0, 0, 0, 0, 0, 0},
      // a base of RSP would need one more byte
      {0x48, 0x8b, 0x25, 0, 0, 0, 0, 0xff, 0x64, 0x24, 0x48, 0, 0, 0, 0, 0, 0, 0},
  };
  for (const auto& code : others) {
    CAPTURE(code);
    CHECK_FALSE(decode_table_jump(code));
  }
}

#else

TEST_CASE("code of other processors is not decoded", "[table_jump]") {
  const std::vector<uint8_t> code(kTableJumpBytes, 0xff);
  CHECK_FALSE(decode_table_jump(code));
}

#endif
