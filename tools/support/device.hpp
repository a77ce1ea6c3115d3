// The device that a program was told to run on, opened: hardware, or the virtual GPU by running the program again under uptempo-vgpu.
#pragma once

#include <string>
#include <vector>

#include "engine/runtime/runtime.hpp"

namespace CLI {
class App;
}

namespace uptempo::support {

// `--device auto|hardware|virtual`, by default what `choice` holds; auto is hardware where /dev/kfd answers, else the virtual GPU.
void add_device_option(CLI::App& app, std::string& choice);

// Cores that this process may use, and so the virtual GPU, which is part of it.
uint32_t usable_cores();

struct Device {
  Runtime runtime;
  Agent gpu;
  bool is_virtual;

  // "AMD Instinct MI210 (gfx90a)"
  std::string name() const;
  // The first line of every report, at most 80 columns: the device, and that its times are a virtual GPU's where they are.
  std::string line() const;
  // What to call a time in tables and charts: "time", or "virtual GPU time".
  const char* time_name() const { return is_virtual ? "virtual GPU time" : "time"; }
};

// To be called before threads, output or HSA calls: the process may be replaced by the same program under uptempo-vgpu. Throws Unavailable where the
// choice cannot be met. `launcher_options` are uptempo-vgpu's, of no effect on hardware or when the program already runs under it.
Device open_device(const std::string& choice, int argc, char** argv,
                   const std::vector<std::string>& launcher_options = {});

}  // namespace uptempo::support
