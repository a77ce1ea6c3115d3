#include "device.hpp"
#include "test/support/hsa_end.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace uptempo::vgpu::test {
namespace {

constexpr size_t kKernargBlockBytes = 256;
constexpr size_t kKernargBlocks = 1024;

struct Agents {
  std::vector<hsa_agent_t> gpus, others;
};

hsa_status_t take_agent(hsa_agent_t agent, void* result) {
  auto& agents = *static_cast<Agents*>(result);
  hsa_device_type_t type{};
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  (type == HSA_DEVICE_TYPE_GPU ? agents.gpus : agents.others).push_back(agent);
  return HSA_STATUS_SUCCESS;
}

struct PoolSearch {
  bool fine;
  hsa_amd_memory_pool_t found{};
};

hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void* result) {
  auto& search = *static_cast<PoolSearch*>(result);
  hsa_amd_segment_t segment{};
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
  bool allocatable = false;
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allocatable);
  uint32_t flags = 0;
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  // ROCr 6.4 has a third kind, fine-grained of extended scope.
  const uint32_t wanted = search.fine ? HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED
                                      : HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
  if (segment != HSA_AMD_SEGMENT_GLOBAL || !allocatable || (flags & wanted) == 0)
    return HSA_STATUS_SUCCESS;
  search.found = pool;
  return HSA_STATUS_INFO_BREAK;
}

hsa_amd_memory_pool_t pool_of(hsa_agent_t agent, bool fine) {
  PoolSearch search{fine};
  const hsa_status_t status = hsa_amd_agent_iterate_memory_pools(agent, take_pool, &search);
  check(status == HSA_STATUS_INFO_BREAK ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR,
        "finding a memory pool");
  return search.found;
}

template <class T>
T read(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// clang offload bundle: magic, count, then {offset, size, id length, id} for each.
std::span<const std::byte> code_for(std::span<const std::byte> bundle, std::string_view target) {
  size_t at = std::strlen("__CLANG_OFFLOAD_BUNDLE__");
  const auto count = read<uint64_t>(bundle, at);
  at += 8;
  for (uint64_t i = 0; i < count; ++i) {
    const auto length = read<uint64_t>(bundle, at + 16);
    const std::string_view id(reinterpret_cast<const char*>(bundle.data()) + at + 24, length);
    if (id.find(target) != std::string_view::npos)
      return bundle.subspan(read<uint64_t>(bundle, at), read<uint64_t>(bundle, at + 8));
    at += 24 + length;
  }
  return {};
}

}  // namespace

void check(hsa_status_t status, const char* what) {
  if (status == HSA_STATUS_SUCCESS) return;
  const char* text = nullptr;
  hsa_status_string(status, &text);
  std::fprintf(stderr, "%s: %s\n", what, text != nullptr ? text : "unknown status");
  std::exit(1);
}

TestDevice::TestDevice(std::span<const std::byte> kernels, uint32_t number) {
  check(hsa_init(), "hsa_init");
  Agents agents;
  check(hsa_iterate_agents(take_agent, &agents), "hsa_iterate_agents");
  if (agents.others.empty() || number >= agents.gpus.size())
    check(HSA_STATUS_ERROR_INVALID_AGENT, "finding the agents");
  gpu = agents.gpus[number];
  cpu = agents.others.front();
  host_fine_ = pool_of(cpu, true);
  host_coarse_ = pool_of(cpu, false);
  local_ = pool_of(gpu, false);
  check(hsa_queue_create(gpu, 1024, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX, UINT32_MAX,
                         &queue_),
        "hsa_queue_create");
  check(hsa_signal_create(0, 0, nullptr, &done_), "hsa_signal_create");
  kernargs_ = allocate<std::byte>(Memory::host_fine, kKernargBlockBytes * kKernargBlocks);
  load_code(kernels);
}

TestDevice::~TestDevice() {
  check(hsa_executable_destroy(executable_), "hsa_executable_destroy");
  check(hsa_queue_destroy(queue_), "hsa_queue_destroy");
  check(hsa_signal_destroy(done_), "hsa_signal_destroy");
  for (void* address : allocated_)
    check(hsa_amd_memory_pool_free(address), "hsa_amd_memory_pool_free");
  check(uptempo::test::end_hsa(), "hsa_shut_down");
}

void TestDevice::load_code(std::span<const std::byte> bundle) {
  char target[64] = {};
  check(hsa_agent_get_info(gpu, HSA_AGENT_INFO_NAME, target), "reading the agent's name");
  const auto code = code_for(bundle, target);
  hsa_code_object_reader_t reader{};
  check(hsa_code_object_reader_create_from_memory(code.data(), code.size(), &reader),
        "reading the code object");
  check(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                  nullptr, &executable_),
        "hsa_executable_create_alt");
  check(hsa_executable_load_agent_code_object(executable_, gpu, reader, nullptr, nullptr),
        "loading code");
  check(hsa_executable_freeze(executable_, nullptr), "hsa_executable_freeze");
  check(hsa_code_object_reader_destroy(reader), "hsa_code_object_reader_destroy");
}

TestDevice::Kernel TestDevice::kernel(const std::string& name) const {
  hsa_executable_symbol_t symbol{};
  check(hsa_executable_get_symbol_by_name(executable_, (name + ".kd").c_str(), &gpu, &symbol),
        name.c_str());
  Kernel kernel{};
  check(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                                       &kernel.object),
        "a kernel object");
  check(hsa_executable_symbol_get_info(
            symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernel.kernarg_bytes),
        "a kernel's arguments");
  return kernel;
}

void* TestDevice::allocate_bytes(Memory memory, size_t size_bytes) {
  const hsa_amd_memory_pool_t pool = memory == Memory::host_fine     ? host_fine_
                                     : memory == Memory::host_coarse ? host_coarse_
                                                                     : local_;
  void* address = nullptr;
  check(hsa_amd_memory_pool_allocate(pool, size_bytes, 0, &address),
        "hsa_amd_memory_pool_allocate");
  const hsa_agent_t both[] = {gpu, cpu};
  check(hsa_amd_agents_allow_access(2, both, nullptr, address), "hsa_amd_agents_allow_access");
  std::memset(address, 0, size_bytes);
  allocated_.push_back(address);
  return address;
}

void TestDevice::free(void* address) {
  std::erase(allocated_, address);
  check(hsa_amd_memory_pool_free(address), "hsa_amd_memory_pool_free");
}

void* TestDevice::lock_coarse(void* host, size_t size_bytes) {
  void* address = nullptr;
  check(hsa_amd_memory_lock_to_pool(host, size_bytes, &gpu, 1, host_coarse_, 0, &address),
        "hsa_amd_memory_lock_to_pool");
  return address;
}

TestDevice::Arguments TestDevice::arguments() {
  if (kernargs_.empty())
    check(HSA_STATUS_ERROR_OUT_OF_RESOURCES, "allocating blocks for arguments");
  std::byte* block = kernargs_.data();
  kernargs_ = kernargs_.subspan(kKernargBlockBytes);
  return Arguments(block);
}

uint64_t TestDevice::claim() {
  const uint64_t index = hsa_queue_add_write_index_relaxed(queue_, 1);
  while (index - hsa_queue_load_read_index_scacquire(queue_) >= queue_->size) {
  }
  std::memset(static_cast<std::byte*>(queue_->base_address) + index % queue_->size * 64 + 4, 0, 60);
  return index;
}

void TestDevice::publish(uint64_t index, hsa_packet_type_t type, uint16_t setup, Fences fences) {
  hsa_signal_add_relaxed(done_, 1);
  const auto header =
      static_cast<uint32_t>(type << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
                            fences.acquire << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                            fences.release << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
  __atomic_store_n(reinterpret_cast<uint32_t*>(static_cast<std::byte*>(queue_->base_address) +
                                               index % queue_->size * 64),
                   header | uint32_t{setup} << 16, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

void TestDevice::dispatch(const Kernel& kernel, uint32_t work_items, const Arguments& arguments,
                          Fences fences) {
  const uint64_t index = claim();
  auto& packet =
      static_cast<hsa_kernel_dispatch_packet_t*>(queue_->base_address)[index % queue_->size];
  packet.workgroup_size_x = 64;
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = work_items;
  packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = kernel.object;
  packet.kernarg_address = arguments.address();
  packet.completion_signal = done_;
  publish(index, HSA_PACKET_TYPE_KERNEL_DISPATCH, 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS,
          fences);
}

void TestDevice::barrier(Fences fences, hsa_signal_t dependency) {
  const uint64_t index = claim();
  auto& packet = static_cast<hsa_barrier_and_packet_t*>(queue_->base_address)[index % queue_->size];
  packet.dep_signal[0] = dependency;
  packet.completion_signal = done_;
  publish(index, HSA_PACKET_TYPE_BARRIER_AND, 0, fences);
}

void TestDevice::wait() {
  if (hsa_signal_wait_scacquire(done_, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                HSA_WAIT_STATE_BLOCKED) != 0)
    check(HSA_STATUS_ERROR, "waiting for packets");
}

void TestDevice::copy(void* destination, const void* source, size_t size_bytes) {
  wait();
  hsa_signal_store_relaxed(done_, 1);
  check(hsa_amd_memory_async_copy(destination, gpu, source, gpu, size_bytes, 0, nullptr, done_),
        "hsa_amd_memory_async_copy");
  wait();
}

}  // namespace uptempo::vgpu::test
