// Bytes as `as` assembles them.
#include "cp/doorbell/store_instruction.hpp"

#include <vector>

#include "test/support/catch.hpp"

using uptempo::vgpu::decode_store;

TEST_CASE("stores of 64 bits are decoded with their length and operand") {
  struct Row {
    const char* text;
    std::vector<uint8_t> code;
    unsigned size, reg;
  };
  for (const Row& row :
       {Row{"mov %rsi,(%rax)", {0x48, 0x89, 0x30}, 3, 6},
        Row{"mov %r9,(%r12)", {0x4d, 0x89, 0x0c, 0x24}, 4, 9},
        Row{"mov %rax,0x8(%rbx)", {0x48, 0x89, 0x43, 0x08}, 4, 0},
        Row{"mov %rcx,0x100(%rdx)", {0x48, 0x89, 0x8a, 0, 1, 0, 0}, 7, 1},
        Row{"mov %rdi,(%rax,%rcx,8)", {0x48, 0x89, 0x3c, 0xc8}, 4, 7},
        Row{"mov %rax,0x10(,%rcx,8)", {0x48, 0x89, 0x04, 0xcd, 0x10, 0, 0, 0}, 8, 0},
        Row{"mov %rdx,0x200(%rip)", {0x48, 0x89, 0x15, 0, 2, 0, 0}, 7, 2},
        Row{"mov %rbp,0x8(%rsp,%rax,1)", {0x48, 0x89, 0x6c, 0x04, 0x08}, 5, 5}}) {
    CAPTURE(row.text);
    auto code = row.code;
    code.resize(16);
    const auto store = decode_store(code.data());
    REQUIRE(store.has_value());
    CHECK(store->size_bytes == row.size);
    CHECK(store->reg == row.reg);
    CHECK_FALSE(store->immediate);
    CHECK_FALSE(store->exchanges);
  }
}

TEST_CASE("a constant is sign-extended, and XCHG is recognised") {
  const uint8_t constant[16] = {0x48, 0xc7, 0x00, 0xfe, 0xff, 0xff, 0xff};  // movq $-2,(%rax)
  const auto store = decode_store(constant);
  REQUIRE(store.has_value());
  CHECK(store->immediate);
  CHECK(store->constant == -2);
  CHECK(store->size_bytes == 7);
  const uint8_t exchange[16] = {0x4c, 0x87, 0x02};  // xchg %r8,(%rdx)
  const auto exchanged = decode_store(exchange);
  REQUIRE(exchanged.has_value());
  CHECK(exchanged->exchanges);
  CHECK(exchanged->reg == 8);
}

TEST_CASE("other instructions are not decoded") {
  for (const std::vector<uint8_t>& row : {std::vector<uint8_t>{0x89, 0x30},
                                          {0x48, 0x8b, 0x30},
                                          {0x48, 0x89, 0xf0},
                                          {0x48, 0xc7, 0x08},
                                          {0x0f, 0x11, 0x00}}) {
    auto code = row;
    code.resize(16);
    CHECK_FALSE(decode_store(code.data()).has_value());
  }
}
