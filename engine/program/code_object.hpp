// Code objects: AMDGPU ELF files, alone or several in a clang offload bundle. Reads what selects one, and finds its metadata.
//
// Rule sources: LLVM AMDGPU User Guide, "Header" and "Note Records" (ELF identification, e_flags, notes); Clang documentation, "Clang Offload
// Bundler", "Bundled Code Object Layout". Every offset and count is checked against the bytes there are: truncated, foreign
// or damaged input ends in an Error that names what is wrong, never in a read outside the span.
//
// Views point into the caller's bytes, which must outlive them. Thread safety: pure functions.
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

// One entry of the input that is a candidate for a GPU, before it is looked into.
struct CodeObjectCandidate {
  std::string name;  // a bundle entry's ID, or "ELF file"
  std::span<const std::byte> bytes;
};

// The input's GPU entries: of a bundle all but the host's, of an ELF file itself. Throws Error for anything else (compressed bundles,
// LLVM bitcode, text, ...), naming what it looks like.
std::vector<CodeObjectCandidate> candidates_in(std::span<const std::byte> input);

// Reads the ELF header. Throws Error where it is no complete AMDGPU code object for HSA.
CodeObject read_code_object(std::span<const std::byte> elf);

// The first candidate that runs on `agent`. Throws Error that names every rejected one with its reason.
CodeObject select_code_object(std::span<const std::byte> input, const TargetId& agent);

// The bytes (MessagePack) of the NT_AMDGPU_METADATA note. Throws Error where there is none.
std::span<const std::byte> metadata_note(const CodeObject& object);

}  // namespace uptempo
