#include "tools/bench/vgpu/consume/gpu.hpp"

#include <dlfcn.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include <uptempo/vgpu/query.h>

namespace uptempo::vgpu::consume {
namespace {

constexpr uint32_t kEndProgram = 0xbf810000;  // s_endpgm

uint16_t header_of(hsa_packet_type_t type, hsa_fence_scope_t scope) {
  return static_cast<uint16_t>(type << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
                               scope << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                               scope << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

}  // namespace

void check(hsa_status_t status, const char* call) {
  if (status == HSA_STATUS_SUCCESS) return;
  const char* text = nullptr;
  hsa_status_string(status, &text);
  throw std::runtime_error(std::string(call) + ": " + (text == nullptr ? "unknown status" : text));
}

// The contents of memory after loading: a kernel descriptor (llvm/Support/AMDHSAKernelDescriptor.h)
// and its code.
struct alignas(4096) Gpu::KernelPage {
  struct {
    uint32_t segments[4] = {};
    int64_t entry_offset = 64;
    uint32_t rest[10] = {};
  } descriptor;
  uint32_t code[1024 - 16] = {kEndProgram};
};

Gpu::Gpu() {
  static_assert(sizeof(KernelPage::descriptor) == 64 && sizeof(KernelPage) == 4096);
  check(hsa_init(), "hsa_init");
  const auto find_gpu = [](hsa_agent_t agent, void* found) {
    hsa_device_type_t type{};
    hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
    if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
    *static_cast<hsa_agent_t*>(found) = agent;
    return HSA_STATUS_INFO_BREAK;
  };
  if (hsa_iterate_agents(find_gpu, &agent_) != HSA_STATUS_INFO_BREAK)
    throw std::runtime_error("ROCr found no GPU agent");
  completed();
  // Registered host memory is executable for the GPU (ROCT's fmm.c); pool memory is not.
  kernel_page_ = std::make_unique<KernelPage>();
  void* address = nullptr;
  check(hsa_amd_memory_lock(kernel_page_.get(), sizeof(KernelPage), &agent_, 1, &address),
        "hsa_amd_memory_lock");
  kernel_object_ = reinterpret_cast<uint64_t>(address);
}

Gpu::~Gpu() {
  if (kernel_page_ != nullptr) hsa_amd_memory_unlock(kernel_page_.get());
  hsa_shut_down();
}

std::string Gpu::name() const {
  char text[64] = {};
  check(hsa_agent_get_info(agent_, HSA_AGENT_INFO_NAME, text), "hsa_agent_get_info");
  return text;
}

uint64_t Gpu::completed() const {
  static const auto counts =
      reinterpret_cast<uptempo_vgpu_packets_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_packets"));
  uptempo_vgpu_packet_counts packets{};
  if (counts == nullptr || counts(&packets) != 0)
    throw std::runtime_error(
        "this process has no virtual GPU to count packets; start the program with uptempo-vgpu");
  return packets.dispatches + packets.others;
}

Signal::Signal(bool event) {
  check(hsa_amd_signal_create(1, 0, nullptr, event ? 0 : HSA_AMD_SIGNAL_AMD_GPU_ONLY, &handle_),
        "hsa_amd_signal_create");
}

Packet empty_barrier(hsa_signal_t completion, hsa_signal_t dependency) {
  Packet packet{};
  packet.barrier.header = header_of(HSA_PACKET_TYPE_BARRIER_AND, HSA_FENCE_SCOPE_NONE);
  packet.barrier.dep_signal[0] = dependency;
  packet.barrier.completion_signal = completion;
  return packet;
}

Packet null_dispatch(const Gpu& gpu, hsa_signal_t completion) {
  Packet packet{};
  packet.dispatch.header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, HSA_FENCE_SCOPE_AGENT);
  packet.dispatch.setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
  packet.dispatch.workgroup_size_x = 64;
  packet.dispatch.workgroup_size_y = packet.dispatch.workgroup_size_z = 1;
  packet.dispatch.grid_size_x = 64;
  packet.dispatch.grid_size_y = packet.dispatch.grid_size_z = 1;
  packet.dispatch.kernel_object = gpu.kernel_object();
  packet.dispatch.completion_signal = completion;
  return packet;
}

Queue::Queue(const Gpu& gpu, uint32_t packets) {
  hsa_queue_t* queue = nullptr;
  check(hsa_queue_create(gpu.agent(), packets, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX,
                         UINT32_MAX, &queue),
        "hsa_queue_create");
  queue_.reset(queue);
}

}  // namespace uptempo::vgpu::consume
