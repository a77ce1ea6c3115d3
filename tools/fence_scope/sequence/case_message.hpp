// Serialises cases for another process as CBOR, written and read by the same version of this
// program.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/fence_scope/sequence/sequence.hpp"

namespace uptempo::fence_scope {

struct Case {
  const Sequence* sequence;  // cases of one sequence share a pointer
  Headers headers;
};

struct Cases {
  struct One {
    size_t sequence;
    Headers headers;
  };
  std::vector<Sequence> sequences;
  std::vector<One> cases;
};

std::vector<uint8_t> to_bytes(std::span<const Case> cases);
// Throws nlohmann::json::exception for malformed bytes.
Cases from_bytes(std::span<const uint8_t> bytes);

}  // namespace uptempo::fence_scope
