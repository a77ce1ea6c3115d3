// Kernel metadata of a code object: NT_AMDGPU_METADATA, a MessagePack map. Program reads it itself;
// for kernels that the caller has loaded (kernel_object.hpp), the caller passes the bytes, or fills
// a KernelMetadata.
//
// Thread safety: pure functions.
// Source: LLVM AMDGPU User Guide, "Code Object V3 Metadata" to "V5".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo {

// Value kinds, explicit ones first. Those from hidden_printf_buffer on need a host service that
// this library does not offer.
enum class ArgumentKind : uint8_t {
  by_value,
  global_buffer,           // an address of global memory
  dynamic_shared_pointer,  // an offset into LDS allocated at dispatch
  unsupported,             // sampler, image, pipe, queue
  // Not read, or always 0: AQL has no global offset, because a dispatch starts at 0; for device
  // queue, completion action and synchronization of multi-device launches, 0 is "none".
  hidden_none,
  hidden_block_count_x,
  hidden_block_count_y,
  hidden_block_count_z,
  hidden_group_size_x,
  hidden_group_size_y,
  hidden_group_size_z,
  hidden_remainder_x,
  hidden_remainder_y,
  hidden_remainder_z,
  hidden_grid_dims,
  hidden_private_base,
  hidden_shared_base,
  hidden_queue_ptr,
  hidden_dynamic_lds_size,
  hidden_printf_buffer,
  hidden_hostcall_buffer,
  hidden_heap_v1,
};

constexpr bool is_hidden(ArgumentKind kind) noexcept { return kind >= ArgumentKind::hidden_none; }

struct ArgumentMetadata {
  ArgumentKind kind = ArgumentKind::by_value;
  std::string kind_name;  // spelling in the metadata, for errors
  uint32_t offset = 0;    // bytes from the start of the kernarg block
  uint32_t size = 0;      // bytes
  std::string name;       // the source's name; empty if the compiler did not keep it
  std::string type_name;  // "uint*"
};

struct KernelMetadata {
  std::string name;                                 // "bitonic_sort"
  std::string symbol;                               // "bitonic_sort.kd"
  uint32_t kernarg_size = 0;                        // bytes
  uint32_t kernarg_alignment = 0;                   // bytes; 0: not known
  uint32_t group_segment_size = 0;                  // static, bytes per workgroup
  uint32_t private_segment_size = 0;                // static, bytes per work-item
  uint32_t max_workgroup_size = 0;                  // work-items
  uint32_t required_workgroup_size[3] = {0, 0, 0};  // reqd_work_group_size; 0: any
  uint32_t max_workgroups[3] = {0, 0, 0};           // amdgpu_max_num_work_groups; 0: any
  // Its code requires that no workgroup of a grid is partial. True unless the metadata shows that
  // the source is OpenCL C 2.0 or later, compiled without -cl-uniform-work-group-size. LLVM 15
  // does not record that option: its kernels count as compiled without.
  bool whole_workgroups = true;
  bool uses_dynamic_stack = false;
  std::vector<ArgumentMetadata> arguments;  // in order of declaration; hidden ones last
};

struct ProgramMetadata {
  std::vector<KernelMetadata> kernels;
  bool has_printf = false;  // amdhsa.printf lists formats

  // The kernel of this name, as for Program::kernel(). Throws Error, which lists the kernels.
  const KernelMetadata& kernel(std::string_view name,
                               std::string_view call = "ProgramMetadata::kernel") const;
};

// Reads the contents (descriptor) of the note. A buffer for printf that no format uses becomes
// hidden_none. Throws Error if the bytes are not such a map, a kind of argument is unknown, or an
// argument lies outside its block.
ProgramMetadata read_metadata(std::span<const std::byte> message_pack);

// Makes hostcall buffer and device heap hidden_none: for a kernel that cannot call the host
// (loaded_kernel.hpp). The compiler declares both in any kernel for which it cannot prove the
// opposite: without optimization in all kernels, and LLVM 15 in all kernels of version 5 that ask
// for their workgroup's size (LLVM, AMDGPUAttributor.cpp: funcRetrievesHostcallPtr and
// funcRetrievesHeapPtr; AMDGPUHSAMetadataStreamer.cpp).
void drop_host_calls(KernelMetadata& kernel);

}  // namespace uptempo
