// KernelStart: what a compiled kernel reads before its own work starts, according to its kernel
// descriptor and metadata. Each of these reads delays every wave of a dispatch.
//
//   for (const KernelStart& kernel : kernel_starts(bytes_of_file))
//     if (kernel.packet) ...  // reads its packet in the ring
//
// Thread safety: pure functions.
// Sources: LLVM AMDGPU User Guide, "Kernel Descriptor", "Initial Kernel Execution State",
// "Preloaded Kernel Arguments", "Code Object V5 Metadata".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uptempo {

struct KernelStart {
  std::string
      origin{};  // entry ID in the bundle, or "ELF file"; with the bundle's offset in a program
  std::string target{};  // "gfx90a:xnack-"
  int code_object_version = 0;
  std::string name{};  // C++ kernels: mangled
  // The packet processor passes these addresses to the kernel, which the compiler requests only for
  // a kernel that uses them.
  bool packet = false;           // the packet in the ring: the dispatch pointer
  bool queue = false;            // amd_queue_t: the queue pointer
  bool kernarg_segment = false;  // without it, the kernel reads no argument from memory
  bool dispatch_id = false;
  // Names of the hidden arguments that the metadata declares, in order, without "hidden_". The
  // compiler declares more than the kernel reads. Empty without `kernarg_segment`.
  std::vector<std::string> hidden_arguments{};
  uint32_t kernarg_bytes = 0;
  uint32_t explicit_kernarg_bytes = 0;  // up to the end of the last explicit argument
  uint32_t preload_words = 0;           // 4-byte words of kernargs that arrive in registers
  uint32_t private_segment_bytes = 0;   // per work-item, static
  bool scratch = false;                 // needs scratch memory
  bool dynamic_stack = false;           // private_segment_bytes is only the static part
};

// Returns the kernels of all GPU code objects in `file`: a code object, an offload bundle (plain or
// compressed), or a program or library that contains bundles, in their order. Throws Error for
// anything else, for a damaged code object, and for a program without code objects.
std::vector<KernelStart> kernel_starts(std::span<const std::byte> file);

}  // namespace uptempo
