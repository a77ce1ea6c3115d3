// Code objects: AMDGPU ELF files, alone or in a clang offload bundle. Functions that select one and
// find its metadata.
//
// Thread safety: pure functions.
// Lifetime: views refer to the caller's bytes, which must outlive them.
// Errors: every offset and count is checked against the input size. Truncated, foreign or damaged
// input throws an Error that names the defect; no read goes outside the span.
// Sources: LLVM AMDGPU User Guide, "Header" and "Note Records" (ELF identification, e_flags,
// notes); Clang documentation, "Clang Offload Bundler", "Bundled Code Object Layout".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/program/target_id.hpp"

namespace uptempo {

struct CodeObject {
  std::span<const std::byte> bytes;  // the ELF file
  TargetId target;                   // from its e_flags
  int version = 0;                   // code object version: 3, 4 or 5
};

// One entry of the input that may be for a GPU, not yet parsed.
struct CodeObjectCandidate {
  std::string name;  // a bundle entry's ID, or "ELF file"
  std::span<const std::byte> bytes;
};

// Returns the input's GPU entries: all but the host's of a bundle, or the ELF file itself. Throws
// Error for any other input (compressed bundle, LLVM bitcode, text, ...), naming its apparent
// format.
std::vector<CodeObjectCandidate> candidates_in(std::span<const std::byte> input);

// Reads the ELF header. Throws Error unless it is a complete AMDGPU code object for HSA.
CodeObject read_code_object(std::span<const std::byte> elf);

// Returns the first candidate that runs on `agent`. If there is none, throws an Error that names
// every candidate and the reason for its rejection.
CodeObject select_code_object(std::span<const std::byte> input, const TargetId& agent);

// Returns the contents (MessagePack) of the NT_AMDGPU_METADATA note. Throws Error if there is none.
std::span<const std::byte> metadata_note(const CodeObject& object);

}  // namespace uptempo
