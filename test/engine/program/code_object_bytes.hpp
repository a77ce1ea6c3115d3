// Code objects as bytes that a test may change.
#pragma once

#include <uptempo/kernels/probes.hpp>

#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include "test/support/catch.hpp"

namespace uptempo::test {

inline TargetId target(std::string_view text) {
  const auto id = parse_target_id(text);
  REQUIRE(id);
  return *id;
}

// The code object of the probes for one processor.
inline std::vector<std::byte> elf_for(std::string_view processor) {
  const CodeObject object = select_code_object(builtin_kernels::probes(), target(processor));
  return {object.bytes.begin(), object.bytes.end()};
}

template <class T>
T at(const std::vector<std::byte>& block, size_t offset) {
  T value;
  std::memcpy(&value, block.data() + offset, sizeof value);
  return value;
}

}  // namespace uptempo::test
