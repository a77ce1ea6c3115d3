// Code objects that ROCr holds in this process, whoever loaded them. Private to engine/hip.
//
// Source: hsa_ven_amd_loader.h. Thread safety: any thread, but not while another thread unloads one
// of the executables.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <uptempo/program/code_object.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/agent.hpp>

namespace uptempo::hip {

struct LoadedCode {
  hsa_executable_t executable{};
  uint64_t kernel_object = 0;
  std::array<uint32_t, 3> segment_sizes{};  // of the kernel: kernarg, group, private; bytes
  // The code object in the GPU's memory.
  uint64_t load_base = 0;  // address
  uint64_t load_size = 0;  // bytes
  int64_t load_delta = 0;  // address minus the ELF file's virtual address
  // The ELF file in the memory that its loader gave to ROCr, in bytes; null if it gave a file.
  const std::byte* storage = nullptr;
  uint64_t storage_size = 0;

  bool holds(const void* address) const noexcept {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): compared as a number
    const auto number = reinterpret_cast<uint64_t>(address);
    return number >= load_base && number - load_base < load_size;
  }
  bool operator==(const LoadedCode& other) const noexcept;
};

// Returns the code objects on this agent that define the kernel with this symbol ("saxpy.kd"), in
// the order of their loading, without those of Program.
std::vector<LoadedCode> code_with_kernel(const Agent& agent, const std::string& symbol);

// Whether ROCr still holds this code object with this kernel. Another one of the same size may be
// loaded in its place; it passes only if the kernel's name, address and segment sizes are the same,
// too.
bool is_loaded(const Agent& agent, const LoadedCode& code, const std::string& symbol);

// A code object as it was loaded. HIP's callers may free the ELF file after its load, so its tables
// and code are read from the GPU's memory.
struct LoadedObject {
  std::vector<std::byte> image;  // that `object` refers to
  CodeObject object;
  CodeIdentity identity;  // of the ELF file; unknown if its memory is gone or has changed
};

// Throws Error, which names the kernel. Cost: copies the code object from the GPU, and reads the
// ELF file without an access to memory that is gone.
LoadedObject read_loaded(const LoadedCode& code, const std::string& kernel);

}  // namespace uptempo::hip
