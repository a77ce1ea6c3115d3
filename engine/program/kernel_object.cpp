#include <uptempo/program/kernel_object.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <uptempo/program/kernel_names.hpp>
#include <uptempo/program/loaded_kernel.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/session.hpp>

namespace uptempo {
namespace {

// LLVM AMDGPU User Guide, "Code Object V3 Kernel Descriptor".
struct Descriptor {
  uint32_t group_segment_size;
  uint32_t private_segment_size;
  uint32_t kernarg_size;  // 0: written by an older compiler
  uint32_t reserved[11];
  uint16_t properties;  // bit 1: ENABLE_SGPR_DISPATCH_PTR; bit 11: USES_DYNAMIC_STACK
  uint16_t preload;
  uint32_t reserved_end;

  bool has(unsigned bit) const noexcept { return (properties >> bit & 1) != 0; }
};
static_assert(sizeof(Descriptor) == 64 && offsetof(Descriptor, properties) == 56);

struct LoadedSegment {
  hsa_agent_t agent;
  std::optional<Descriptor> descriptor;  // empty if the host cannot read it
};

// Empty if ROCr has not loaded the code.
std::optional<LoadedSegment> find_segment(uint64_t address) {
  hsa_ven_amd_loader_1_01_pfn_t loader{};
  check(hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof loader, &loader),
        "hsa_system_get_major_extension_table", "HSA_EXTENSION_AMD_LOADER 1.1");
  std::vector<hsa_ven_amd_loader_segment_descriptor_t> segments;
  for (;;) {
    size_t count = 0;
    check(loader.hsa_ven_amd_loader_query_segment_descriptors(nullptr, &count),
          "hsa_ven_amd_loader_query_segment_descriptors", "the number of loaded segments");
    segments.resize(count);
    if (count == 0) return {};
    const hsa_status_t status =
        loader.hsa_ven_amd_loader_query_segment_descriptors(segments.data(), &count);
    // Another thread has loaded or unloaded code since.
    if (status == HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS) continue;
    check(status, "hsa_ven_amd_loader_query_segment_descriptors", "the loaded segments");
    break;
  }
  for (const auto& segment : segments) {
    const auto base = reinterpret_cast<uintptr_t>(segment.segment_base);
    if (address < base || address - base > segment.segment_size ||
        segment.segment_size - (address - base) < sizeof(Descriptor))
      continue;
    LoadedSegment found{.agent = segment.agent, .descriptor = {}};
    const void* host = nullptr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): HSA gives the address as a number
    const auto* const device = reinterpret_cast<const void*>(address);
    if (loader.hsa_ven_amd_loader_query_host_address(device, &host) == HSA_STATUS_SUCCESS &&
        host != nullptr)
      std::memcpy(&found.descriptor.emplace(), host, sizeof(Descriptor));
    return found;
  }
  return {};
}

bool is_known_memory(uint64_t address) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as above
  const auto* const device = reinterpret_cast<const void*>(address);
  return hsa_amd_pointer_info(device, &info, nullptr, nullptr, nullptr) == HSA_STATUS_SUCCESS &&
         info.type != HSA_EXT_POINTER_TYPE_UNKNOWN;
}

[[noreturn]] void refuse(ErrorCode code, std::string asked, std::string found, std::string remedy) {
  throw Error({.code = code,
               .status = code == ErrorCode::argument ? HSA_STATUS_ERROR_INVALID_ARGUMENT
                                                     : HSA_STATUS_ERROR_INVALID_CODE_OBJECT,
               .call = "kernel_info",
               .asked = std::move(asked),
               .found = std::move(found),
               .remedy = std::move(remedy)});
}

uint32_t required_size(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::global_buffer:
      return sizeof(uint64_t);
    case ArgumentKind::dynamic_shared_pointer:
      return sizeof(uint32_t);
    default:
      return 0;  // any
  }
}

// ArgumentLayout and dispatches rely on these.
void check_metadata(const KernelMetadata& kernel) {
  const std::string asked = fmt::format("the metadata of kernel '{}'", kernel.name);
  const auto require = [&](bool holds, auto&& found) {
    if (holds) return;
    refuse(ErrorCode::program, asked, found(),
           "pass the metadata that the compiler wrote for this kernel (read_metadata), or correct "
           "the struct");
  };
  require(!kernel.name.empty(), [] { return "no name"; });
  require(kernel.kernarg_alignment == 0 || std::has_single_bit(kernel.kernarg_alignment), [&] {
    return fmt::format("a kernarg block aligned to {}, which is no power of two",
                       kernel.kernarg_alignment);
  });
  struct Place {
    uint64_t begin, end;
    size_t index;
  };
  std::vector<Place> places;
  uint64_t end_of_explicit = 0;
  for (const ArgumentMetadata& argument : kernel.arguments) {
    const size_t index = places.size();
    const uint64_t end = uint64_t{argument.offset} + argument.size;
    require(argument.size != 0 && end <= kernel.kernarg_size, [&] {
      return fmt::format("argument {} takes bytes {} to {} of a block of {}", index,
                         argument.offset, end, kernel.kernarg_size);
    });
    const uint32_t size = required_size(argument.kind);
    require(size == 0 || size == argument.size, [&] {
      return fmt::format("argument {} has {} bytes; an {} has {}", index, argument.size,
                         size == 8 ? "address" : "LDS array", size);
    });
    if (!is_hidden(argument.kind)) {
      require(argument.offset >= end_of_explicit, [&] {
        return fmt::format("argument {} at offset {} begins before the end of an earlier one ({})",
                           index, argument.offset, end_of_explicit);
      });
      end_of_explicit = end;
    }
    places.push_back({argument.offset, end, index});
  }
  std::ranges::sort(places, {}, &Place::begin);
  for (size_t i = 1; i < places.size(); ++i)
    require(places[i - 1].end <= places[i].begin, [&] {
      return fmt::format("arguments {} and {} overlap at offset {}", places[i - 1].index,
                         places[i].index, places[i].begin);
    });
}

void check_descriptor(const KernelMetadata& kernel, const Descriptor& descriptor) {
  const auto require = [&](const char* what, uint32_t metadata, uint32_t loaded) {
    if (metadata == loaded) return;
    refuse(ErrorCode::program,
           fmt::format("kernel '{}' with {} bytes of {}", kernel.name, metadata, what),
           fmt::format("the kernel descriptor at this address has {}", loaded),
           "pass the metadata of the kernel at this address");
  };
  require("static group memory", kernel.group_segment_size, descriptor.group_segment_size);
  require("static private memory", kernel.private_segment_size, descriptor.private_segment_size);
  if (descriptor.kernarg_size != 0)
    require("kernargs", kernel.kernarg_size, descriptor.kernarg_size);
}

}  // namespace

std::shared_ptr<const KernelInfo> kernel_info(const Agent& agent, const KernelObject& object,
                                              const KernelMetadata& metadata) {
  (void)Session::current();  // throws after the end of the Runtime
  check_metadata(metadata);
  const std::string asked =
      fmt::format("kernel '{}' with its descriptor at 0x{:x}", metadata.name, object.address);
  const char* const remedy =
      "pass HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT of a kernel that is loaded for this agent";
  if (object.address == 0 || object.address % sizeof(Descriptor) != 0)
    refuse(ErrorCode::argument, asked, "descriptors are aligned to 64 bytes", remedy);
  const std::optional<LoadedSegment> segment = find_segment(object.address);
  if (!segment && !is_known_memory(object.address))
    refuse(ErrorCode::argument, asked, "ROCr has neither code nor an allocation there", remedy);
  if (segment && segment->agent.handle != agent.handle().handle)
    refuse(ErrorCode::argument, asked,
           fmt::format("it is loaded for another agent than {}", agent.name()), remedy);
  KernelPlace place{.object = object.address,
                    .group_segment_size = metadata.group_segment_size,
                    .private_segment_size = metadata.private_segment_size};
  if (segment && segment->descriptor) {
    check_descriptor(metadata, *segment->descriptor);
    place.reads_packet = segment->descriptor->has(1);
    place.dynamic_stack = segment->descriptor->has(11);
  }
  KernelMetadata kernel = metadata;
  if (kernel.max_workgroup_size == 0)
    kernel.max_workgroup_size = agent.properties().max_workgroup_size;
  struct Kept {
    Kept(KernelInfo of_kernel, std::shared_ptr<const void> loader)
        : info(std::move(of_kernel)), owner(std::move(loader)) {}
    ~Kept() { detail::KernelNames::of_process().unload(this); }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    const KernelInfo info;
    const std::shared_ptr<const void> owner;
  };
  const auto kept = std::make_shared<const Kept>(
      info_of(agent, kernel, /*has_printf=*/true, place, object.stack, "kernel_info"),
      object.owner);
  // For errors, which ask ROCr for no names.
  detail::KernelNames::of_process().add(object.address, metadata.name, kept.get());
  return {kept, &kept->info};
}

}  // namespace uptempo
