// Kernel descriptor of a code object: 64 bytes that a packet's kernel_object refers to. It says
// which registers the packet processor sets up before the kernel starts.
//
// Thread safety: pure functions.
// Source: LLVM AMDGPU User Guide, "Kernel Descriptor"; KERNARG_PRELOAD_SPEC there and in "Preloaded
// Kernel Arguments".
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/program/code_object.hpp"

namespace uptempo {

struct KernelDescriptor {
  uint32_t group_segment_size = 0;    // static, bytes per workgroup
  uint32_t private_segment_size = 0;  // static, bytes per work-item
  uint32_t kernarg_size = 0;          // bytes
  bool scratch = false;               // COMPUTE_PGM_RSRC2, ENABLE_PRIVATE_SEGMENT
  // Values that the kernel gets in SGPRs.
  bool private_segment_buffer = false;
  bool dispatch_ptr = false;  // address of the packet in the ring
  bool queue_ptr = false;     // address of amd_queue_t
  bool kernarg_segment_ptr = false;
  bool dispatch_id = false;
  bool flat_scratch_init = false;
  bool private_segment_size_sgpr = false;
  // Kernargs that the packet processor loads into SGPRs, in 4-byte words; 0: none.
  uint32_t preload_words = 0;
  uint32_t preload_first_word = 0;
};

// `symbol`: the kernel's symbol in the metadata, for example "sort.kd". Throws Error if the code
// object has no such symbol, or if the descriptor or the kernel's code is not where it must be.
KernelDescriptor read_kernel_descriptor(const CodeObject& object, std::string_view symbol);

}  // namespace uptempo
