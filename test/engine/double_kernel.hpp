// Kernels without code, for devices that execute none: only what the engine reads of a kernel
// before it writes a packet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/program/metadata.hpp>

#include <uptempo/program/program.hpp>

namespace uptempo::test {

inline ArgumentMetadata argument(ArgumentKind kind, uint32_t offset, uint32_t size) {
  return {.kind = kind,
          .kind_name = "any",
          .offset = offset,
          .size = size,
          .name = {},
          .type_name = {}};
}

struct DoubleKernel {
  std::string name;
  uint64_t object = 0x1000;
  uint32_t kernarg_bytes = 0;
  std::vector<ArgumentMetadata> arguments{};
  uint32_t group_segment_bytes = 0;
  uint32_t private_segment_bytes = 0;
  CodeIdentity code{};
  uint32_t max_group_segment_bytes = UINT32_MAX;
  bool reads_packet = false;
};

inline std::shared_ptr<const KernelInfo> info_of(const DoubleKernel& kernel) {
  KernelMetadata metadata;
  metadata.name = kernel.name;
  metadata.kernarg_size = kernel.kernarg_bytes;
  metadata.kernarg_alignment = 8;
  metadata.arguments = kernel.arguments;
  return std::make_shared<const KernelInfo>(
      KernelInfo{.code = kernel.code,
                 .name = kernel.name,
                 .object = kernel.object,
                 .reads_packet = kernel.reads_packet,
                 .group_segment_size = kernel.group_segment_bytes,
                 .private_segment_size = kernel.private_segment_bytes,
                 .max_workgroup_size = 1024,
                 .required_workgroup_size = {},
                 .max_group_segment_size = kernel.max_group_segment_bytes,
                 .arguments = ArgumentLayout(metadata, false)});
}

// A kernel whose explicit arguments are Args.
template <class... Args>
Kernel<Args...> kernel_of(const DoubleKernel& kernel) {
  return Kernel<Args...>::of(info_of(kernel));
}

// A kernel with one explicit argument, a number, followed by hidden arguments in the layout of code
// object version 4.
inline Kernel<uint32_t> number_kernel(uint64_t object = 0x1000, bool reads_packet = false) {
  return kernel_of<uint32_t>({.name = "number",
                              .object = object,
                              .kernarg_bytes = 32,
                              .arguments = {argument(ArgumentKind::by_value, 0, 4),
                                            argument(ArgumentKind::hidden_grid_dims, 8, 2)},
                              .reads_packet = reads_packet});
}

// A kernel that reads its packet, and through it its argument, when it ends
// (PacketProcessorOptions::reads_packet).
inline constexpr uint64_t kReadsPacket = 0x2000;
inline Kernel<uint32_t> late_reader() { return number_kernel(kReadsPacket, true); }

}  // namespace uptempo::test
