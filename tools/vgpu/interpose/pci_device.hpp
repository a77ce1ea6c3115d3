// The device of a GPU in /sys: a PCI function, or for further partitions of a card a platform
// device.
#pragma once

#include <cstdint>
#include <string>

#include "device/options.hpp"
#include "interpose/sockets.hpp"
#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {

// Returns location_id of KFD's topology: bus, device and function. Partitions of a card have the
// card's, with the partition's number in the bits of the function (kfd_topology_add_device(),
// kfd_topology.c), although there is no such function.
uint32_t pci_location(const Options& options, uint32_t gpu);
// Returns the path of the render node's device below /sys/devices.
std::string device_folder(const Options& options, uint32_t gpu);

// Adds the device of a GPU that is at `socket`. Linux names each attribute of a PCI function in
// Documentation/ABI/testing/sysfs-bus-pci.
void add_device(Tree& tree, const Options& options, uint32_t gpu, const Socket& socket);

}  // namespace uptempo::vgpu::interpose
