// The functions that tools find in ROCr's table of AMD's extensions. The table got functions in its
// middle between ROCr 5.2 and 6.1, when its major version went from 1 to 2. So its functions are
// found by position, not by the header of the build. Sources: hsa_api_trace.h of each release;
// rocprofiler-sdk's abi.cpp, which lists each position from version 2 on.
//
// Header only and without other includes of the tree, because tools/vgpu, a project of its own,
// uses it, too. Debian's hsa_api_trace.h needs the macro AMD_INTERNAL_BUILD.
//
// Thread safety: pure functions.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_ext_amd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace uptempo::support {

// In the table's order.
enum class AmdFunction : uint8_t {
  get_dispatch_time,
  signal_async_handler,
  signal_wait_any,
  pool_allocate,
  pool_free,
  memory_async_copy,
  memory_async_copy_on_engine,
  pointer_info,
  ipc_memory_create,
  signal_create,
  ipc_signal_create,
  ipc_signal_attach,
  queue_intercept_create,
  memory_async_copy_rect,
  runtime_queue_create_register,
  deallocation_callback,
  signal_value_pointer,
  signal_wait_all,
  queue_create,  // hsa_amd_queue_create, not hsa_queue_create
};
inline constexpr size_t kAmdFunctions = static_cast<size_t>(AmdFunction::queue_create) + 1;

struct AmdTableLayout {
  static constexpr int kMissing = -1;

  uint32_t major;
  uint32_t least_functions, most_functions;
  std::array<int, kAmdFunctions> position;  // after the table's version
};
inline constexpr std::array<AmdTableLayout, 2> kAmdTableLayouts{{
    // ROCr 5.2
    {1,
     48,
     48,
     {4, 7, 9, 13, 14, 15, AmdTableLayout::kMissing, 26, 28, 31, 32, 33, 35, 38, 39, 41, 43,
      AmdTableLayout::kMissing, AmdTableLayout::kMissing}},
    // ROCr 6.1 and newer
    {2, 68, ~0u, {4, 7, 9, 13, 14, 15, 16, 28, 30, 33, 34, 35, 37, 40, 41, 43, 45, 71, 86}},
}};
// For messages about another table.
inline constexpr const char* kKnownAmdTables =
    "version 1 with 400 bytes (ROCr 5.2), and version 2 from 560 bytes on (ROCr 6.1 and newer)";

// The layout that belongs to the header of this build agrees with it.
consteval bool is_in_header(AmdFunction function, size_t offset,
                            uint32_t major = HSA_AMD_EXT_API_TABLE_MAJOR_VERSION) {
  const AmdTableLayout& layout = kAmdTableLayouts[major - 1];
  return sizeof(ApiTableVersion) +
             sizeof(void*) * static_cast<size_t>(layout.position[static_cast<size_t>(function)]) ==
         offset;
}
#define UPTEMPO_IS_IN_HEADER(function, member) \
  static_assert(is_in_header(AmdFunction::function, offsetof(AmdExtTable, hsa_amd_##member##_fn)))
UPTEMPO_IS_IN_HEADER(get_dispatch_time, profiling_get_dispatch_time);
UPTEMPO_IS_IN_HEADER(signal_async_handler, signal_async_handler);
UPTEMPO_IS_IN_HEADER(signal_wait_any, signal_wait_any);
UPTEMPO_IS_IN_HEADER(pool_allocate, memory_pool_allocate);
UPTEMPO_IS_IN_HEADER(pool_free, memory_pool_free);
UPTEMPO_IS_IN_HEADER(memory_async_copy, memory_async_copy);
UPTEMPO_IS_IN_HEADER(pointer_info, pointer_info);
UPTEMPO_IS_IN_HEADER(ipc_memory_create, ipc_memory_create);
UPTEMPO_IS_IN_HEADER(signal_create, signal_create);
UPTEMPO_IS_IN_HEADER(ipc_signal_create, ipc_signal_create);
UPTEMPO_IS_IN_HEADER(ipc_signal_attach, ipc_signal_attach);
UPTEMPO_IS_IN_HEADER(queue_intercept_create, queue_intercept_create);
UPTEMPO_IS_IN_HEADER(memory_async_copy_rect, memory_async_copy_rect);
UPTEMPO_IS_IN_HEADER(runtime_queue_create_register, runtime_queue_create_register);
UPTEMPO_IS_IN_HEADER(deallocation_callback, register_deallocation_callback);
UPTEMPO_IS_IN_HEADER(signal_value_pointer, signal_value_pointer);
#undef UPTEMPO_IS_IN_HEADER

// The argument of hsa_amd_queue_create: hsa_amd_queue_create_desc_t of version 1
// (hsa_ext_amd.h from interface 1.26 on; ROCm/rocm-systems pull request 6921).
struct QueueDescriptor {
  static constexpr uint16_t kVersion = 1;
  static constexpr uint16_t kRingInDeviceMemory = 1;  // HSA_AMD_QUEUE_CREATE_DEVICE_MEM_RING_BUF
  static constexpr uint8_t kCompute = 0;              // HSA_AMD_QUEUE_ENGINE_COMPUTE

  uint16_t version = kVersion, flags = 0;
  uint8_t engine = kCompute, reserved[3] = {};
  uint32_t ring_bytes = 0, priority = 0;
  void (*callback)(hsa_status_t, hsa_queue_t*, void*) = nullptr;
  void* data = nullptr;
  hsa_queue_t* queue = nullptr;  // set by ROCr; null if this one failed, whatever the status
  unsigned char of_engine[56] = {};
};
static_assert(sizeof(QueueDescriptor) == 96 && offsetof(QueueDescriptor, queue) == 32);
using QueueCreate = hsa_status_t (*)(hsa_agent_t agent, QueueDescriptor* descriptors,
                                     uint32_t count);

// If the header of the build has the function, it agrees.
template <class Table>
consteval bool queue_create_agrees(uint32_t major = HSA_AMD_EXT_API_TABLE_MAJOR_VERSION) {
  if constexpr (requires { &Table::hsa_amd_queue_create_fn; }) {
    const auto agrees = []<class Agent, class Descriptor, class Count>(
                            hsa_status_t (*)(Agent, Descriptor*, Count)) {
      return sizeof(Descriptor) == sizeof(QueueDescriptor) &&
             offsetof(Descriptor, engine_type) == offsetof(QueueDescriptor, engine) &&
             offsetof(Descriptor, queue) == offsetof(QueueDescriptor, queue);
    };
    return is_in_header(AmdFunction::queue_create, offsetof(Table, hsa_amd_queue_create_fn),
                        major) &&
           agrees(decltype(Table::hsa_amd_queue_create_fn){});
  }
  return true;
}
static_assert(queue_create_agrees<AmdExtTable>());

// The entries of the table; null where the runtime has none.
struct AmdEntries {
  std::array<void**, kAmdFunctions> at{};
  void** operator[](AmdFunction function) const { return at[static_cast<size_t>(function)]; }
};

// Nothing: the table is none of kKnownAmdTables.
inline std::optional<AmdEntries> find_amd_entries(AmdExtTable& table) {
  const ApiTableVersion& version = table.version;
  if (version.minor_id < sizeof(ApiTableVersion)) return std::nullopt;
  const size_t functions = (version.minor_id - sizeof(ApiTableVersion)) / sizeof(void*);
  for (const AmdTableLayout& layout : kAmdTableLayouts) {
    if (version.major_id != layout.major || functions < layout.least_functions ||
        functions > layout.most_functions)
      continue;
    AmdEntries entries;
    auto* const first =
        reinterpret_cast<void**>(reinterpret_cast<char*>(&table) + sizeof(ApiTableVersion));
    for (size_t i = 0; i < kAmdFunctions; ++i)
      if (layout.position[i] != AmdTableLayout::kMissing &&
          static_cast<size_t>(layout.position[i]) < functions)
        entries.at[i] = first + layout.position[i];
    return entries;
  }
  return std::nullopt;
}

}  // namespace uptempo::support
