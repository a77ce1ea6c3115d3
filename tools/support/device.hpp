// Opens the device that `--device` selects: hardware, or the virtual GPU, for which the program is
// executed again under uptempo-vgpu.
#pragma once

#include <string>
#include <vector>

#include <uptempo/runtime/runtime.hpp>

namespace uptempo::support {

class CommandLine;
class Option;

// Adds `--device auto|hardware|virtual|GPU`; the default is the value of `choice`. "auto" is
// hardware where /dev/kfd answers, else the virtual GPU. GPU is what Runtime::gpu() selects by: an
// index, a UUID or a PCI address, of hardware, or of the virtual GPU if the program was started
// under uptempo-vgpu.
Option add_device_option(CommandLine& command_line, std::string& choice);

// Number of cores that this process may use. The virtual GPU runs in this process and shares them.
uint32_t usable_cores();

struct Device {
  Runtime runtime;
  Agent gpu;
  bool is_virtual;

  // for example "AMD Instinct MI210 (gfx90a)"
  std::string name() const;
  // The first line of every report, at most 80 columns: the device, and whether times are a virtual
  // GPU's.
  std::string line() const;
  // Name of a time in tables and charts: "time" or "virtual GPU time".
  const char* time_name() const { return is_virtual ? "virtual GPU time" : "time"; }
};

// Opens the device. Call it before starting threads, writing output or calling HSA: it may replace
// the process by the same program under uptempo-vgpu. `launcher_options` are passed to
// uptempo-vgpu; they have no effect on hardware or when the program already runs under it.
// Errors: Unavailable where the chosen device is missing.
Device open_device(const std::string& choice, int argc, char** argv,
                   const std::vector<std::string>& launcher_options = {});

}  // namespace uptempo::support
