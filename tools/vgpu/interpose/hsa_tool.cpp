// The program's allocations, for --check memory: replaces functions in the tables of ROCr, as a
// tool library (HSA_TOOLS_LIB). The driver sees only what ROCr asks it for: pages, and blocks of 2
// MiB that ROCr divides among small allocations of device memory.
//
// Each allocation gets a redzone: ROCr is asked for kRedzoneBytes more than the program asked for,
// and the program is told of the size without them. Freed memory is quarantined: ROCr is asked to
// free it when kQuarantineBytes of it have come together, or when memory runs out
// (device/memory_check/README.md).
//
// ROCr loads hsa_tool_entry.cpp, which calls this. A library that is preloaded must not export
// OnLoad, because the calls of other tools to their own function would find it.
//
// Thread safety: any thread.
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device/memory_check/host_stores.hpp"
#include "interpose/real.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/process.hpp"
#include "tools/support/rocr_tables.hpp"

namespace {

namespace kfd = uptempo::vgpu::kfd;
namespace memory_check = uptempo::vgpu::memory_check;
namespace support = uptempo::support;
using support::AmdFunction;

constexpr uint64_t kRedzoneBytes = memory_check::kPageBytes;

// HIP's refusals of a pointer (hipErrorInvalidValue, hipErrorInvalidDevicePointer).
constexpr int kHipInvalidValue = 1, kHipInvalidDevicePointer = 17;

// ROCr's own functions. Written before the tables are changed.
struct Real {
  decltype(&hsa_amd_memory_pool_allocate) pool_allocate;
  decltype(&hsa_amd_memory_pool_free) pool_free;
  decltype(&hsa_amd_pointer_info) pointer_info;
  decltype(&hsa_amd_ipc_memory_create) ipc_create;
  decltype(&hsa_amd_register_deallocation_callback) deallocation_callback;
  decltype(&hsa_memory_allocate) allocate;
  decltype(&hsa_memory_free) free;
  decltype(&hsa_init) init;
};
Real real{};
bool installed = false;

kfd::Process& process() noexcept { return *kfd::Process::existing(); }
memory_check::Checker& checker() noexcept { return *process().memory_checker(); }

uint64_t whole_pages(uint64_t bytes) noexcept {
  return (bytes + memory_check::kPageBytes - 1) / memory_check::kPageBytes *
         memory_check::kPageBytes;
}

// Returns to ROCr what leaves the quarantine. Returns the last status.
hsa_status_t release(const std::vector<memory_check::Checker::Released>& memory) {
  hsa_status_t status = HSA_STATUS_SUCCESS;
  for (const auto& one : memory) {
    if (one.watched) memory_check::HostStores::of_process()->unwatch(one.begin);
    status = real.pool_free(reinterpret_cast<void*>(one.begin));
  }
  return status;
}

// `allocate`: asks ROCr for that many bytes.
template <typename Allocate>
hsa_status_t allocate(size_t bytes, void** pointer, Allocate allocate) {
  // An addition that overflows, and no bytes at all, are ROCr's to refuse.
  if (bytes == 0 || bytes > ~size_t{0} - 2 * kRedzoneBytes || pointer == nullptr)
    return allocate(bytes);
  uint64_t redzone = kRedzoneBytes;
  hsa_status_t status = allocate(bytes + redzone);
  if (status != HSA_STATUS_SUCCESS) {
    release(checker().release_all());
    status = allocate(bytes + redzone);
  }
  if (status != HSA_STATUS_SUCCESS) {
    redzone = 0;
    status = allocate(bytes);
  }
  if (status != HSA_STATUS_SUCCESS) return status;
  const auto begin = reinterpret_cast<uint64_t>(*pointer);
  if (checker().allocated({.begin = begin,
                           .bytes = bytes,
                           .reserved_bytes = whole_pages(bytes) + redzone,
                           .stack = process().capture_stack()}))
    memory_check::HostStores::of_process()->watch(begin);
  return status;
}

hsa_status_t free_memory(void* pointer, decltype(&hsa_memory_free) of_rocr) {
  using What = memory_check::Checker::Freed::What;
  const auto freed =
      checker().freed(reinterpret_cast<uint64_t>(pointer), process().capture_stack());
  const hsa_status_t status = release(freed.release);
  switch (freed.what) {
    case What::unknown:
      return of_rocr(pointer);
    case What::twice:
      return HSA_STATUS_ERROR_INVALID_ALLOCATION;  // as ROCr of memory that it does not know
    case What::passed:
      return status;
    case What::held:
      break;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t checked_pool_allocate(hsa_amd_memory_pool_t pool, size_t bytes, uint32_t flags,
                                   void** pointer) {
  return allocate(bytes, pointer, [&](size_t with_redzone) {
    return real.pool_allocate(pool, with_redzone, flags, pointer);
  });
}
hsa_status_t checked_allocate(hsa_region_t region, size_t bytes, void** pointer) {
  return allocate(bytes, pointer, [&](size_t with_redzone) {
    return real.allocate(region, with_redzone, pointer);
  });
}
hsa_status_t checked_pool_free(void* pointer) { return free_memory(pointer, real.pool_free); }
hsa_status_t checked_free(void* pointer) { return free_memory(pointer, real.free); }

// The size that ROCr would give the allocation without its redzone.
size_t redzone_of(const void* begin) {
  const auto request = checker().find_request(reinterpret_cast<uint64_t>(begin));
  return request ? request->reserved_bytes - whole_pages(request->bytes) : 0;
}

hsa_status_t checked_pointer_info(const void* pointer, hsa_amd_pointer_info_t* info,
                                  void* (*allocate)(size_t), uint32_t* agent_count,
                                  hsa_agent_t** accessible) {
  // ROCr knows nothing of freed memory.
  if (info != nullptr && checker().is_held(reinterpret_cast<uint64_t>(pointer))) {
    const uint32_t size = info->size;
    hsa_amd_pointer_info_t unknown{};
    unknown.size = size;
    unknown.type = HSA_EXT_POINTER_TYPE_UNKNOWN;
    std::memcpy(static_cast<void*>(info), &unknown, std::min<size_t>(size, sizeof unknown));
    if (agent_count != nullptr) *agent_count = 0;
    return HSA_STATUS_SUCCESS;
  }
  const hsa_status_t status = real.pointer_info(pointer, info, allocate, agent_count, accessible);
  if (status == HSA_STATUS_SUCCESS && info->type == HSA_EXT_POINTER_TYPE_HSA)
    info->sizeInBytes -= redzone_of(info->agentBaseAddress);
  return status;
}

// Requires the size of the whole allocation, as hsa_amd_pointer_info returns it.
hsa_status_t checked_ipc_create(void* pointer, size_t bytes, hsa_amd_ipc_memory_t* handle) {
  return real.ipc_create(pointer, bytes + redzone_of(pointer), handle);
}

// Where HIP initialises ROCr, it allocates for itself.
hsa_status_t checked_init() {
  process().initialises_rocr();
  return real.init();
}

// The callback comes when the memory is freed, so the quarantine must not delay that.
hsa_status_t checked_deallocation_callback(void* pointer, hsa_amd_deallocation_callback_t callback,
                                           void* data) {
  checker().expose(reinterpret_cast<uint64_t>(pointer));
  return real.deallocation_callback(pointer, callback, data);
}

template <typename Called>
void replace(void** entry, Called& saved, Called checked) {
  saved = reinterpret_cast<Called>(*entry);
  *entry = reinterpret_cast<void*>(checked);
}

bool refuse(const std::string& reason) {
  kfd::report("memory: the program's allocations are not known, because " + reason);
  return false;
}

}  // namespace

// hsa_tool_entry.cpp calls these two. Loading the tool again, after the last hsa_shut_down(), finds
// other tables, or in ROCr 6.1 and newer the same ones.
UPTEMPO_VGPU_EXPORT bool uptempo_vgpu_hsa_load(void* tables) {
  if (kfd::Process::existing() == nullptr || process().memory_checker() == nullptr) return false;
  auto* const root = static_cast<HsaApiTable*>(tables);
  if (root->core_ == nullptr || root->amd_ext_ == nullptr)
    return refuse("the tables of this ROCr lack the core or the AMD extensions");
  const auto entries = support::find_amd_entries(*root->amd_ext_);
  if (!entries)
    return refuse(
        std::string("the table of AMD's extensions of this ROCr is none of those known: ") +
        support::kKnownAmdTables);
  process().initialises_rocr();
  CoreApiTable& core = *root->core_;
  if (core.hsa_memory_free_fn == checked_free) return true;
  replace((*entries)[AmdFunction::pool_allocate], real.pool_allocate, &checked_pool_allocate);
  replace((*entries)[AmdFunction::pool_free], real.pool_free, &checked_pool_free);
  replace((*entries)[AmdFunction::pointer_info], real.pointer_info, &checked_pointer_info);
  replace((*entries)[AmdFunction::ipc_memory_create], real.ipc_create, &checked_ipc_create);
  replace((*entries)[AmdFunction::deallocation_callback], real.deallocation_callback,
          &checked_deallocation_callback);
  real.allocate = core.hsa_memory_allocate_fn;
  real.free = core.hsa_memory_free_fn;
  real.init = core.hsa_init_fn;
  core.hsa_init_fn = checked_init;
  core.hsa_memory_allocate_fn = checked_allocate;
  core.hsa_memory_free_fn = checked_free;
  installed = true;
  return true;
}

// hip_free.cpp calls this with HIP's function. Returns HIP's status.
UPTEMPO_VGPU_EXPORT int uptempo_vgpu_hip_free(void* pointer, int (*free_in_hip)(void*)) {
  if (!installed || pointer == nullptr) return free_in_hip(pointer);
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const auto before = checker().before_hip_free(address);
  const int status = free_in_hip(pointer);
  using Result = memory_check::Checker::HipResult;
  const bool is_unknown = status == kHipInvalidValue || status == kHipInvalidDevicePointer;
  checker().hip_freed(address, before,
                      status == 0  ? Result::freed
                      : is_unknown ? Result::unknown_pointer
                                   : Result::other,
                      process().capture_stack(), [](uptempo::vgpu::HostStackId allocated) {
                        return process().is_by_program(allocated);
                      });
  return status;
}

// The same for a reset of the current device.
UPTEMPO_VGPU_EXPORT int uptempo_vgpu_hip_reset(int (*reset_in_hip)()) {
  const int status = reset_in_hip();
  if (installed && status == 0) checker().hip_reset(process().capture_stack());
  return status;
}

UPTEMPO_VGPU_EXPORT void uptempo_vgpu_hsa_unload() {
  if (installed) release(checker().release_all());
}
