// The owners of the memory that host and GPU share, on machines with one, two and four sockets. The
// oracles are independent of the library: hsa_amd_pointer_info reports the owner, and the PCI
// device's numa_node the nearest node.
#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>
#include <vector>

#include <uptempo/memory/pool.hpp>
#include <uptempo/stream/copy/staging.hpp>
#include "test/engine/state_access.hpp"
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

uint32_t node_of(hsa_agent_t agent) {
  uint32_t node = UINT32_MAX;
  REQUIRE(hsa_agent_get_info(agent, HSA_AGENT_INFO_NODE, &node) == HSA_STATUS_SUCCESS);
  return node;
}

uint32_t owner_node(const void* address) {
  hsa_amd_pointer_info_t info{};
  info.size = sizeof info;
  REQUIRE(hsa_amd_pointer_info(const_cast<void*>(address), &info, nullptr, nullptr, nullptr) ==
          HSA_STATUS_SUCCESS);
  REQUIRE(info.type == HSA_EXT_POINTER_TYPE_HSA);
  return node_of(info.agentOwner);
}

// The kernel's answer. -1 on a machine without NUMA: its one node.
uint32_t numa_node_of(const Agent& gpu) {
  std::ifstream file("/sys/bus/pci/devices/" + pci_address(gpu.properties()) + "/numa_node");
  int node = -2;
  file >> node;
  REQUIRE(node >= -1);
  return static_cast<uint32_t>(std::max(node, 0));
}

std::vector<Agent> cpu_agents(const Runtime& runtime) {
  std::vector<Agent> found;
  for (const Agent& agent : runtime.agents())
    if (agent.properties().type == HSA_DEVICE_TYPE_CPU) found.push_back(agent);
  return found;
}

struct NearDevice : OnDevice {
  uint32_t near = numa_node_of(gpu);
  std::vector<Agent> hosts = cpu_agents(runtime);
  Program basics{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
};

}  // namespace

TEST_CASE_METHOD(NearDevice,
                 "memory for host and GPU belongs to the CPU agent that is nearest to the GPU",
                 "[device][memory]") {
  const PinnedBuffer<uint32_t> pinned(gpu, 1000);
  CHECK(owner_node(pinned.data()) == near);
  const Allocation coarse(gpu, MemoryKind::pinned_coarse, 4096);
  CHECK(owner_node(coarse.data()) == near);
  const KernargBuffer kernargs(gpu, 256);
  CHECK(owner_node(kernargs.data()) == near);
  detail::Staging staging(&gpu, 1 << 20, 1 << 18);
  CHECK(owner_node(staging.try_take(100).get()) == near);
  const DeviceBuffer<uint32_t> device(gpu, 1000);
  CHECK(owner_node(device.data()) == gpu.properties().node);
  // The kernargs that packets name, of queues and of streams.
  DeviceBuffer<uint32_t> values(gpu, 64);
  const auto kernargs_of_first_packet = [](const hsa_queue_t* queue) {
    return static_cast<const hsa_kernel_dispatch_packet_t*>(queue->base_address)->kernarg_address;
  };
  Queue queue(gpu, {.packets = 64});
  BatchSubmitter batch(queue);
  batch.dispatch(chain, Grid{64}, values.data(), 1u);
  batch.submit().wait();
  CHECK(owner_node(kernargs_of_first_packet(queue.handle())) == near);
  Streams streams(gpu);
  Stream stream(streams);
  stream.launch(chain, Grid{64}, values.data(), 1u);
  stream.synchronize();
  CHECK(owner_node(kernargs_of_first_packet(hardware_queue(stream))) == near);
}

TEST_CASE_METHOD(NearDevice,
                 "the queue names the owner of its kernargs and other agents' distances",
                 "[device][memory]") {
  const std::string text = Queue(gpu, {.packets = 64}).describe();
  CAPTURE(text);
  CHECK(contains(text, "kernarg memory of node " + std::to_string(near) + ", the"));
  CHECK(node_of(find_pool(gpu, MemoryKind::pinned).owner) == near);
  const std::vector<detail::HostDistance> all = detail::hosts_by_distance(gpu);
  REQUIRE(all.size() == hosts.size());
  for (const detail::HostDistance& each : all) {
    CAPTURE(each.node);
    REQUIRE(each.distance.has_value());
    CHECK(each.link == "PCIe");
    CHECK((each.node == near) == (*each.distance == *all.front().distance));
    if (all.size() > 1) CHECK(contains(text, std::to_string(*each.distance)));
  }
}

TEST_CASE_METHOD(NearDevice, "ROCr puts signals at the first CPU agent, which is said",
                 "[device][memory]") {
  const Signal interrupt, event_less(SignalKind::event_less);
  for (const Signal* signal : {&interrupt, &event_less})
    CHECK(owner_node(reinterpret_cast<void*>(signal->handle().handle)) ==
          hosts.front().properties().node);
  const std::string text = detail::signal_placement(gpu);
  CAPTURE(text);
  CHECK(contains(text, "node " + std::to_string(hosts.front().properties().node)));
  CHECK(contains(text, "hsa_amd_signal_create offers no choice"));
}

TEST_CASE_METHOD(NearDevice, "copies pass through the nearest agent's memory and arrive",
                 "[device][memory]") {
  Copier copier(gpu);
  Streams streams(gpu);
  Stream stream(streams);
  DeviceBuffer<uint32_t> values(gpu, 300'000);
  std::vector<uint32_t> sent(values.size()), back(values.size()), again(values.size());
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint32_t>(i * 2654435761u);
  stream.copy(values, std::span<const uint32_t>(sent));
  stream.copy(std::span(back), values);
  stream.synchronize();
  CHECK(back == sent);
  copier.copy(again, values);
  CHECK(again == sent);
}
