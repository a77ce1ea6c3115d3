// What `uptempo-vgpu` was asked for. The launcher hands it to the preloaded library through the environment
// (UPTEMPO_VGPU_*), so that child processes of the program run on the same device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/description.hpp"

namespace uptempo::vgpu {

struct Checks {
  bool fences = false;         // the fence checker watches (device/fences)
  bool specification = false;  // and tells what only the specification forbids, too
  bool repeated = false;       // and each finding, however often there was one like it before
  bool advice = false;         // and, at the end, which fences could have been narrower
  bool atomics = false;        // floating-point atomics that do nothing are reported; with every check

  // "atomics", or "fences" and any of "hsa", "repeated" and "advice", with commas. Throws
  // std::invalid_argument naming the list and what is accepted.
  static Checks parse(std::string_view list);
};

struct Options {
  const DeviceDescription* device = nullptr;  // never null after from_environment()
  std::string trace_file;                     // empty: no trace. "%p" stands for the process id.
  Checks checks;
  std::string report_file;        // its findings; empty: stderr. "%p" as above.
  bool null_kernels = false;      // dispatches complete without executing (for measuring dispatch cost)
  bool early_read_index = false;  // user queues: the read index passes a packet as soon as it is launched
  bool deterministic = false;     // one worker, seeded order
  // Caches are really kept, and everything that hardware leaves open about them comes from this seed. Implies `deterministic`.
  std::optional<uint64_t> incoherent;
  std::optional<uint64_t>
      delay;                  // packets, copies, doorbells and interrupts are late, as this seed says
  uint64_t seed = 1;     // of everything else; that of `incoherent` unless it is given
  uint32_t workers = 0;  // device threads that execute waves; 0: one per core that the process may use
  bool verbose = false;       // log unknown ioctls and files to stderr

  // Throws std::invalid_argument naming the variable, its value and what is accepted.
  static Options from_environment();
};

}  // namespace uptempo::vgpu
