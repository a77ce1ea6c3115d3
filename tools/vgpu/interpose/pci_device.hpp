// The PCI function of a GPU in /sys.
#pragma once

#include <cstdint>
#include <string>

#include "device/options.hpp"
#include "interpose/sockets.hpp"
#include "interpose/tree.hpp"

namespace uptempo::vgpu::interpose {

// Returns location_id of KFD's topology: bus, device and function.
uint32_t pci_location(uint32_t gpu);
// Returns the path of the function below /sys/devices.
std::string pci_path(uint32_t gpu);

// Adds the function of a GPU that is at `socket`. Linux names each attribute in
// Documentation/ABI/testing/sysfs-bus-pci.
void add_pci_device(Tree& tree, const Options& options, uint32_t gpu, const Socket& socket);

}  // namespace uptempo::vgpu::interpose
