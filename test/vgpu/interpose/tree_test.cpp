// The virtual /dev and /sys as data, where a test through libc could not tell them from the
// machine's own.
#include "interpose/tree.hpp"

#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "device/options.hpp"
#include "interpose/topology.hpp"
#include "test/support/catch.hpp"

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

}  // namespace
}  // namespace uptempo::vgpu::interpose
