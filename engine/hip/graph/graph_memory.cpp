#include <uptempo/hip/graph/graph_memory.hpp>

#include <fmt/format.h>
#include <hsa/hsa_ext_amd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/graph/graph_error.hpp>
#include <uptempo/runtime/error.hpp>

namespace uptempo::hip {
namespace {

[[noreturn]] void refuse(const GraphRange& range, std::string found, std::string remedy) {
  refuse_import(fmt::format("{} bytes at {}, {}", range.bytes, range.data, range.node),
                std::move(found), std::move(remedy));
}

uintptr_t number(const void* address) noexcept { return reinterpret_cast<uintptr_t>(address); }

hsa_amd_pointer_info_t ask(const GraphRange& range) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  // ROCr takes a plain pointer and reads nothing there.
  check(hsa_amd_pointer_info(const_cast<void*>(range.data), &info, nullptr, nullptr, nullptr),
        "hsa_amd_pointer_info", fmt::format("{}, {}", range.data, range.node));
  return info;
}

// Managed memory that ROCr does not know is shared with the device by address.
bool is_managed(const void* data) {
  hipPointerAttribute_t attributes{};
  if (hipPointerGetAttributes(&attributes, data) == hipSuccess) return attributes.isManaged != 0;
  (void)hipGetLastError();  // an unknown address is no error of the program
  return false;
}

// The device's address of the range. Null: pageable memory.
void* find(const Agent& gpu, const GraphRange& range) {
  if (range.bytes == 0) return const_cast<void*>(range.data);
  if (range.data == nullptr) refuse(range, "it is null", "pass the address of memory");
  const hsa_amd_pointer_info_t info = ask(range);
  if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN)
    return is_managed(range.data) ? const_cast<void*>(range.data) : nullptr;
  hsa_device_type_t type{};
  uptempo::check(hsa_agent_get_info(info.agentOwner, HSA_AGENT_INFO_DEVICE, &type),
                 "hsa_agent_get_info", "the owner of memory");
  if (type == HSA_DEVICE_TYPE_GPU && info.agentOwner.handle != gpu.handle().handle)
    refuse(range, fmt::format("memory of another device; the graph runs on {}", gpu.name()),
           "copy through host memory");
  const uintptr_t data = number(range.data), agent = number(info.agentBaseAddress);
  const uintptr_t host = number(info.hostBaseAddress);
  // Registered memory has two addresses, and HIP takes either.
  const bool is_host_address = host != 0 && data >= host && data - host < info.sizeInBytes &&
                               data - agent >= info.sizeInBytes;
  const size_t offset = data - (is_host_address ? host : agent);
  if (offset > info.sizeInBytes || range.bytes > info.sizeInBytes - offset)
    refuse(range,
           fmt::format("only {} bytes of it are allocated or pinned", info.sizeInBytes - offset),
           "pass a range inside one allocation, or pin all of it (hipHostRegister)");
  return static_cast<std::byte*>(info.agentBaseAddress) + offset;
}

}  // namespace

void GraphMemory::pin(std::span<const GraphRange> ranges) {
  struct Pages {
    uintptr_t begin, end;
    const GraphRange* first;
  };
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  std::vector<Pages> pages;
  for (const GraphRange& range : ranges) {
    if (find(gpu_, range) != nullptr || range.bytes == 0) continue;
    const uintptr_t begin = number(range.data);
    pages.push_back({begin / page * page, (begin + range.bytes + page - 1) / page * page, &range});
  }
  std::ranges::sort(pages, {}, &Pages::begin);
  std::vector<Pages> merged;
  for (const Pages& next : pages) {
    if (!merged.empty() && next.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, next.end);
    } else {
      merged.push_back(next);
    }
  }
  for (const Pages& next : merged) {
    for (uintptr_t at = next.begin; at < next.end; at += page)
      if (ask({.data = reinterpret_cast<const void*>(at), .node = next.first->node}).type !=
          HSA_EXT_POINTER_TYPE_UNKNOWN)
        refuse(*next.first, fmt::format("the page at {:#x} is pinned already, others are not", at),
               "pin all of it (hipHostRegister), or pass memory that shares no page with it");
    try {
      pins_.emplace_back(gpu_, reinterpret_cast<void*>(next.begin), next.end - next.begin);
    } catch (const Error& error) {
      refuse(*next.first,
             fmt::format("pageable host memory that cannot be pinned: {}", error.what()),
             "pass memory that is mapped and writable, or pin it (hipHostRegister)");
    }
  }
}

void* GraphMemory::device_address(const GraphRange& range) const {
  if (void* const address = find(gpu_, range); address != nullptr || range.bytes == 0)
    return address;
  refuse(range, "it is not pinned", "keep the memory registered while the graph is imported");
}

void GraphMemory::leave_to_session() noexcept {
  for (HostPin& pin : pins_) pin.leave_to_session();
}

}  // namespace uptempo::hip
