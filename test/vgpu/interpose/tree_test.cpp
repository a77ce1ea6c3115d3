// The virtual /dev and /sys as data, where a test through libc could not tell them from the
// machine's own.
#include "interpose/tree.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "device/options.hpp"
#include "interpose/sockets.hpp"
#include "interpose/topology.hpp"
#include "test/support/catch.hpp"
#include "test/support/environment.hpp"

namespace uptempo::vgpu::interpose {
namespace {

std::string content(const Tree& tree, const std::string& path) {
  const auto found = tree.find(path.c_str());
  return found && found->entry != nullptr && found->entry->kind == Entry::Kind::file
             ? found->entry->content
             : "no file " + path;
}

TEST_CASE("accelerators of the machine are hidden", "[tree]") {
  const Tree tree = device_tree();
  for (const char* path :
       {"/dev/accel", "/dev/accel/accel0", "/dev/accel/accel63", "/dev//accel/../accel/./accel0"}) {
    CAPTURE(path);
    const auto found = tree.find(path);
    REQUIRE(found.has_value());
    CHECK(found->entry == nullptr);
  }
  CHECK_FALSE(tree.find("/dev/acceleration").has_value());
}

TEST_CASE("the PCI device is the node's device, under each of its names", "[tree]") {
  const Tree tree = device_tree();
  const Options options = Options::from_environment();
  char id[16];
  std::snprintf(id, sizeof id, "0x%04x\n", options.device->device_id);
  for (const std::string folder :
       {"/sys/bus/pci/devices/0000:03:00.0", "/sys/bus/pci/drivers/amdgpu/0000:03:00.0",
        "/sys/dev/char/226:128/device", "/sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0"}) {
    CAPTURE(folder);
    CHECK(content(tree, folder + "/vendor") == "0x1002\n");
    CHECK(content(tree, folder + "/device") == id);
    CHECK(content(tree, folder + "/class") == "0x038000\n");
    CHECK(content(tree, folder + "/numa_node") == "0\n");
    CHECK(content(tree, folder + "/uevent").find("\nPCI_SLOT_NAME=0000:03:00.0\n") !=
          std::string::npos);
    const auto node = tree.find((folder + "/drm/renderD128").c_str());
    REQUIRE(node.has_value());
    CHECK(node->entry != nullptr);
    CHECK(node->path == "/sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0/drm/renderD128");
  }
  const auto listed = tree.find("/sys/dev/char/226:128");
  REQUIRE(listed.has_value());
  REQUIRE(listed->entry != nullptr);
  CHECK(listed->entry->children == std::vector<std::string>{"device"});
}

TEST_CASE("the PCI device's configuration space agrees with its attributes", "[tree]") {
  const Tree tree = device_tree();
  const Options options = Options::from_environment();
  const std::string folder = "/sys/bus/pci/devices/0000:03:00.0";
  const std::string config = content(tree, folder + "/config");
  REQUIRE(config.size() == 256);
  const auto at = [&](size_t offset, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, config.data() + offset, bytes);
    return value;
  };
  CHECK(at(0, 2) == 0x1002);
  CHECK(at(2, 2) == options.device->device_id);
  CHECK(at(8, 1) == options.device->pci_revision);
  CHECK(at(9, 3) == 0x038000);
  CHECK(at(0x0e, 1) == 0);            // header of a function with six BARs
  CHECK((at(6, 2) & 0x10) == 0);      // no list of capabilities
  CHECK((at(0x10, 1) & 0xf) == 0xc);  // memory, 64 bits, prefetchable
  CHECK(at(0x2c, 4) == 0x0c341002);   // the board
  std::istringstream resources(content(tree, folder + "/resource"));
  uint64_t first = 0, last = 0, flags = 0;
  REQUIRE(resources >> std::hex >> first >> last >> flags);
  CHECK(first == (at(0x10, 8) & ~uint64_t{0xf}));
  CHECK(last - first + 1 == options.device->vram_bytes);
}

// PCI Express: 8.0, 16.0 and 32.0 GT/s in generations 3, 4 and 5. x16 gives 15.8, 31.5 and 63.0
// GB/s. AMD's product pages: MI300X has generation 5, MI210, MI100 and MI50 have 4, MI25 has 3.
TEST_CASE("the PCI device's link has the speed of its bandwidth", "[tree]") {
  for (const auto& [target, speed] : {std::pair{"gfx900", "8.0 GT/s PCIe\n"},
                                      {"gfx906", "16.0 GT/s PCIe\n"},
                                      {"gfx908", "16.0 GT/s PCIe\n"},
                                      {"gfx90a", "16.0 GT/s PCIe\n"},
                                      {"gfx942", "32.0 GT/s PCIe\n"}}) {
    const uptempo::test::Environment environment{{"UPTEMPO_VGPU_DEVICE", target}};
    const Tree tree = device_tree();
    const std::string folder = "/sys/bus/pci/devices/0000:03:00.0";
    CAPTURE(target);
    CHECK(content(tree, folder + "/current_link_speed") == speed);
    CHECK(content(tree, folder + "/max_link_speed") == speed);
    CHECK(content(tree, folder + "/max_link_width") == "16\n");
  }
}

TEST_CASE("directories of the machine have the tree's names, too", "[tree]") {
  const Tree tree = device_tree();
  using Names = std::vector<std::string>;
  CHECK(tree.names_in("/sys/bus/pci/devices") == Names{"0000:03:00.0"});
  CHECK(tree.names_in("/sys/bus/pci/devices/") == Names{"0000:03:00.0"});
  CHECK(tree.names_in("/sys/class") == Names{"kfd"});
  CHECK(tree.names_in("/sys/module") == Names{"amdgpu"});
  CHECK(tree.names_in("/sys/bus/pci").empty());
  CHECK(tree.names_in("/dev/accel").empty());
  CHECK(tree.names_in("/dev/shm").empty());
}

TEST_CASE("other PCI devices are the machine's", "[tree]") {
  const Tree tree = device_tree();
  CHECK_FALSE(tree.find("/sys/bus/pci/devices/0000:00:00.0").has_value());
  CHECK_FALSE(tree.find("/sys/bus/pci/devices").has_value());
  CHECK_FALSE(tree.find("/sys/devices/pci0000:00").has_value());
}

TEST_CASE("a machine with one socket has the host's NUMA nodes", "[tree][sockets]") {
  const Tree tree = device_tree();
  CHECK_FALSE(tree.find("/sys/devices/system/node/node0").has_value());
  CHECK(tree.find("/sys/devices/virtual/kfd/kfd/topology/nodes/2")->entry == nullptr);
}

TEST_CASE("each socket is a NUMA node with a share of the host", "[tree][sockets]") {
  const uptempo::test::Environment environment{{"UPTEMPO_VGPU_SOCKETS", "2"}};
  const Tree tree = device_tree();
  const std::string nodes = "/sys/devices/system/node";
  CHECK(content(tree, nodes + "/online") == "0-1\n");
  CHECK(content(tree, nodes + "/node0/distance") == "10 32\n");
  CHECK(content(tree, nodes + "/node1/distance") == "32 10\n");
  CHECK(tree.find((nodes + "/node2").c_str())->entry == nullptr);
  CHECK(content(tree, nodes + "/node1/meminfo").starts_with("Node 1 MemTotal: "));
  CHECK(content(tree, "/sys/bus/pci/devices/0000:03:00.0/numa_node") == "1\n");
  CHECK(content(tree, "/sys/bus/pci/devices/0000:03:00.0/local_cpulist") ==
        content(tree, nodes + "/node1/cpulist"));
}

TEST_CASE("the near socket has a PCI Express link, a far one the sum of two links",
          "[tree][sockets]") {
  const auto holds = [](const std::string& text, const std::string& line) {
    return ('\n' + text).find('\n' + line + '\n') != std::string::npos;
  };
  for (const uint32_t near : {0u, 1u, 2u}) {
    CAPTURE(near);
    const uptempo::test::Environment environment{{"UPTEMPO_VGPU_SOCKETS", "3"},
                                                 {"UPTEMPO_VGPU_GPU_SOCKET", std::to_string(near)}};
    const Tree tree = device_tree();
    const std::string topology = "/sys/devices/virtual/kfd/kfd/topology/nodes/";
    CHECK(content(tree, topology + "3/gpu_id") != "0\n");
    const std::string direct = content(tree, topology + "3/io_links/0/properties");
    CHECK(holds(direct, "node_to " + std::to_string(near)));
    CHECK(holds(direct, "weight 20"));
    CHECK(holds(direct, "type 2"));
    for (uint32_t i = 0; i < 2; ++i) {
      const std::string far =
          content(tree, topology + "3/p2p_links/" + std::to_string(i) + "/properties");
      CHECK(holds(far, "weight 52"));
      CHECK_FALSE(holds(far, "node_to " + std::to_string(near)));
    }
    for (uint32_t socket = 0; socket < 3; ++socket) {
      const std::string node = topology + std::to_string(socket);
      const std::string properties = content(tree, node + "/properties");
      CHECK(holds(properties, socket == near ? "io_links_count 3" : "io_links_count 2"));
      CHECK(holds(properties, socket == near ? "p2p_links_count 0" : "p2p_links_count 1"));
      CHECK(holds(content(tree, node + "/io_links/0/properties"), "type 1"));
      CHECK(holds(content(tree, node + "/io_links/0/properties"), "weight 32"));
      if (socket != near)
        CHECK(holds(content(tree, node + "/p2p_links/0/properties"), "weight 52"));
    }
  }
}

TEST_CASE("the host's processors are divided, and no socket is without cores", "[sockets]") {
  const std::vector<Socket> one = divide_host(1);
  REQUIRE(one.size() == 1);
  for (const uint32_t count : {2u, 3u, 8u}) {
    CAPTURE(count);
    const std::vector<Socket> sockets = divide_host(count);
    REQUIRE(sockets.size() == count);
    std::vector<uint32_t> all;
    uint64_t bytes = 0;
    for (const Socket& socket : sockets) {
      all.insert(all.end(), socket.processors.begin(), socket.processors.end());
      CHECK(socket.cores == std::max<size_t>(socket.processors.size(), 1));
      bytes += socket.memory_bytes;
    }
    CHECK(all == one.front().processors);
    CHECK(bytes <= one.front().memory_bytes);
    CHECK(bytes > one.front().memory_bytes - count * 65536);
  }
}

TEST_CASE("lists of processors have the kernel's form", "[sockets]") {
  CHECK(processor_list({}) == "\n");
  CHECK(processor_list({3}) == "3\n");
  CHECK(processor_list({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8\n");
  CHECK(processor_mask({}) == "00000000\n");
  CHECK(processor_mask({0, 1, 4}) == "00000013\n");
  CHECK(processor_mask({31, 32, 64}) == "00000001,00000001,80000000\n");
}

}  // namespace
}  // namespace uptempo::vgpu::interpose
