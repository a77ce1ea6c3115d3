// A model of ROCr's loader, with a check of each read and write: the oracle of
// engine/program/elf_file.hpp. Follows ROCR-Runtime 5.2.3 as Debian builds it, with assertions
// (amd_elf_image.cpp, amd_hsa_code.cpp, executable.cpp), and shares no code with the checks.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <span>

namespace uptempo::fuzz {

// A finding if ROCr would read outside of the file, write outside of its memory, or abort.
void load_as_rocr(std::span<const std::byte> file);

}  // namespace uptempo::fuzz
