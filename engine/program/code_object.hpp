// Code objects: AMDGPU ELF files, alone or in a clang offload bundle, which may be compressed
// (compressed_bundle.hpp). Functions that select one and find its metadata.
//
// Thread safety: pure functions.
// Lifetime: views refer to the caller's bytes, which must outlive them, or to unpacked bytes, which
// the candidates and code objects share and keep.
// Errors: truncated, foreign or damaged input throws an Error that names the defect. A code object
// that is read has passed all checks of elf_file.hpp, so that ROCr can load it.
// Versions: code object versions 3 to 5 load on every ROCr that the library runs on. ROCr 6.2 added
// version 6 (amd_hsa_code.cpp, GetCodeObjectVersion). Generic targets such as gfx9-generic exist
// from version 6 on. They load where the agent lists their ISA, as ROCr 6.4 does.
// Sources: LLVM AMDGPU User Guide, "Header" and "Note Records" (ELF identification, e_flags,
// notes); Clang documentation, "Clang Offload Bundler", "Bundled Code Object Layout".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace uptempo {

// An LLVM target ID: a processor and the features that a code object was built for. A code object
// runs on an agent if the processors are equal and each feature of the code object is "any" or
// equals the agent's (LLVM AMDGPU User Guide, "Target ID" and "Code Object Target Identification").
enum class TargetFeature : uint8_t {
  any,  // code object: works with the feature on or off; agent: the feature does not exist
  off,
  on,
};

struct TargetId {
  std::string processor;  // "gfx90a"
  TargetFeature sramecc = TargetFeature::any;
  TargetFeature xnack = TargetFeature::any;
  friend bool operator==(const TargetId&, const TargetId&) = default;
};

// Parses "gfx90a:sramecc+:xnack-", alone or after a triple ("amdgcn-amd-amdhsa--", as in ISA
// names). Empty for other text.
std::optional<TargetId> parse_target_id(std::string_view text);

// Canonical spelling, features in alphabetical order.
std::string to_string(const TargetId& id);

// Empty if code for `code` runs on `agent`; otherwise the reason.
std::string why_incompatible(const TargetId& code, const TargetId& agent);

namespace detail {
struct ElfFile;
}

struct CodeObject {
  std::span<const std::byte> bytes;                          // the ELF file
  std::shared_ptr<const detail::ElfFile> elf{};              // its tables
  TargetId target;                                           // from its e_flags
  int version = 0;                                           // code object version: 3 to 6
  std::shared_ptr<const std::vector<std::byte>> unpacked{};  // that `bytes` refers to; or null
};

inline constexpr int kNewestCodeObjectVersion = 6;  // that this library reads

// The code objects that the running ROCr loads on an agent.
struct Loader {
  // NOLINTNEXTLINE(google-explicit-constructor): an agent with one ISA is its target ID
  Loader(TargetId isa, int version = kNewestCodeObjectVersion)
      : isas{std::move(isa)}, newest_version(version) {}
  Loader(std::vector<TargetId> agent_isas, int version)
      : isas(std::move(agent_isas)), newest_version(version) {}

  std::vector<TargetId> isas;  // that the agent lists, preferred one first; at least one
  int newest_version;          // code object version
};

// Returns the newest code object version of the ROCr that implements this version of the AMD
// extension (HSA_AMD_SYSTEM_INFO_EXT_VERSION_*): 1.4 in ROCr 6.1, 1.6 in ROCr 6.2. Older ROCr
// reports none, which is 0.0 here.
int newest_version_of(unsigned extension_major, unsigned extension_minor) noexcept;

// One entry of the input that may be for a GPU, not yet parsed.
struct CodeObjectCandidate {
  std::string name;  // a bundle entry's ID, or "ELF file"
  std::span<const std::byte> bytes;
  std::shared_ptr<const std::vector<std::byte>> unpacked{};  // that `bytes` refers to; or null
};

// Returns the input's GPU entries: all but the host's of a bundle, or the ELF file itself. Throws
// Error for any other input (LLVM bitcode, text, ...), naming its apparent format.
std::vector<CodeObjectCandidate> candidates_in(std::span<const std::byte> input);

// Throws Error unless the bytes are a complete and undamaged AMDGPU code object for HSA, of version
// 3 to 6. Cost: linear in the sizes of its tables.
CodeObject read_code_object(std::span<const std::byte> elf);

// The same for a code object as ROCr has loaded it, from its first address on (elf_file.hpp,
// read_elf_image()). Throws Error.
CodeObject read_loaded_code_object(std::span<const std::byte> image);

// Returns the first candidate that `loader` loads, one for a generic target only if no other fits.
// If there is none, throws an Error that names every candidate and the reason for its rejection.
CodeObject select_code_object(std::span<const std::byte> input, const Loader& loader);

// XXH64 with seed 0 (xxHash's specification). Cost: gigabytes per second.
uint64_t content_hash(std::span<const std::byte> bytes) noexcept;

// Returns the contents (MessagePack) of the NT_AMDGPU_METADATA note. Throws Error if there is none.
std::span<const std::byte> metadata_note(const CodeObject& object);

}  // namespace uptempo
