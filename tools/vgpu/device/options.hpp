// The options of `uptempo-vgpu`. The launcher passes them to the preloaded library through the
// environment (UPTEMPO_VGPU_*), so child processes of the program run on the same device.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/description.hpp"
#include "device/inject/rules.hpp"

namespace uptempo::vgpu {

struct Checks {
  bool fences = false;         // run the fence checker (device/fences)
  bool specification = false;  // also report what only the specification forbids
  bool repeated = false;       // report every finding, also repetitions
  bool advice = false;         // at the end, list fences that could be narrower
  bool waits = false;          // observe which completions the host has looked at (device/waits)
  bool memory = false;         // run the memory checker (device/memory_check)
  bool buffers = false;        // also report what the range checks of buffers drop
  bool races = false;          // run the race detector (device/races)
  bool same_values = false;    // also report stores of the same values
  bool atomics = false;        // report floating-point atomics without effect; on with every check

  // Accepts one or more of "atomics", "fences", "memory" and "races", comma-separated; with
  // "fences" also "hsa", "advice" and "waits"; with "memory" also "buffers"; with "races" also
  // "same-values"; with each but "atomics" also "repeated". "fences" and "memory" exclude each
  // other, and so do "advice" and "waits". Throws std::invalid_argument, which names the list and
  // what is accepted.
  static Checks parse(std::string_view list);
};

// The processor sockets of the machine. Each is a NUMA node and a CPU agent.
struct Sockets {
  static constexpr uint32_t kMost = 8;
  uint32_t count = 1;
  uint32_t of_gpu = 0;     // the socket that the GPU's PCI Express link leads to
  bool gpu_given = false;  // of_gpu was asked for

  // Accepts a count from 1 to kMost, and optionally the GPU's socket, which is the last one
  // otherwise, so that the nearest CPU agent is not also the first one. An empty text stands for
  // its default. Throws std::invalid_argument, which names the text and what is accepted.
  static Sockets parse(std::string_view count, std::string_view of_gpu);
};

// Options that exclude or need each other. what() names their variables.
struct OptionConflict : std::invalid_argument {
  OptionConflict(const std::string& variables, std::string of_launcher)
      : std::invalid_argument(variables), options(std::move(of_launcher)) {}
  std::string options;  // the same sentence with the launcher's options
};

struct Options {
  // Versions 1.8 to 1.18 of KFD's interface (kfd/driver_profile.hpp).
  static constexpr uint32_t kOldestKfd = 8, kNewestKfd = 18;
  // Returns the minor version of "1.8" to "1.18", or nullopt.
  static std::optional<uint32_t> parse_kfd(std::string_view version);

  static constexpr uint32_t kMostGpus = 8;

  // Returns whether `name` is 1 to 64 letters, digits, '.', '_' or '-', but not "." or "..".
  static bool is_machine_name(std::string_view name) noexcept;

  const DeviceDescription* device = nullptr;  // never null after from_environment()
  // The GPUs in the order of their nodes; not empty after from_environment(), which makes `device`
  // the first of them.
  std::vector<const DeviceDescription*> gpus;
  // The GPUs are partitions of one card, as an MI300 makes them in CPX mode. Their unique id is the
  // card's, or one each.
  enum class Partitions : uint8_t { none, same_id, own_id };
  Partitions partitions = Partitions::none;
  // Accepts "same-id" and "own-id", or returns nullopt.
  static std::optional<Partitions> parse_partitions(std::string_view ids);
  std::string trace_file;  // empty: no trace. "%p" becomes the process id.
  Checks checks;
  std::string report_file;  // for findings; empty: stderr. "%p" as above.
  // The exit status of a process with a finding; empty: the program's own.
  std::optional<uint32_t> error_exitcode;
  std::string suppressions_file;  // findings that are not wanted; empty: none
  // Returns a decimal number from 1 to 255, or nullopt.
  static std::optional<uint32_t> parse_exitcode(std::string_view status);
  bool null_kernels = false;  // dispatches complete without executing (to measure dispatch cost)
  // user queues: the read index passes a packet as soon as it launches
  bool early_read_index = false;
  bool grouped_read_index = false;  // user queues: the read index is stored as a multiple of eight
  // user queues: a packet is taken as soon as its header is valid, also beyond the write index
  bool eager_packets = false;
  bool deterministic = false;  // one worker per GPU, seeded order
  // Model incoherent caches; this seed decides everything that hardware leaves open about them.
  // Implies `deterministic`.
  std::optional<uint64_t> incoherent;
  // Seed of a path to device memory that holds the host's stores back (lazy_bar.hpp).
  std::optional<uint64_t> lazy_bar;
  // The BAR is smaller than VRAM: the driver gives the host no device memory.
  bool small_bar = false;
  // Bytes of VRAM behind the BAR: 256 MiB of a small one, the usual size.
  uint64_t visible_vram_bytes() const noexcept {
    return small_bar ? uint64_t{256} << 20 : device->vram_bytes;
  }
  std::optional<uint64_t> delay;  // seed of the delays of packets, copies, doorbells and interrupts
  uint64_t seed = 1;              // for everything else; the seed of `incoherent` unless given
  static constexpr uint32_t kMostWorkers = 1024;
  // device threads of one GPU that execute waves, at most kMostWorkers; 0: the cores available to
  // the process, less one from 8 on, divided among the GPUs
  uint32_t workers = 0;
  uint32_t kfd_minor = kNewestKfd;
  Sockets sockets;
  // The machine that the process shares with others; empty: it has one of its own.
  std::string join;
  // Seconds without a completed packet after which the device reports what its queues wait for.
  std::optional<uint32_t> watchdog_seconds;
  // Returns a decimal number from 1 to 1,000,000, or nullopt.
  static std::optional<uint32_t> parse_watchdog(std::string_view seconds);
  std::vector<InjectRule> inject;  // faults on purpose; empty: none
  bool verbose = false;            // log unknown ioctls and files to stderr

  // Throws std::invalid_argument, which names the variable, its value and what is accepted, or an
  // OptionConflict.
  static Options from_environment();

  // Returns the GPUs of a number from 1 to kMostGpus, all `target`, or of a list of targets
  // ("gfx90a,gfx908"). Throws std::invalid_argument, which names the text and what is accepted.
  static std::vector<const DeviceDescription*> parse_gpus(std::string_view list,
                                                          const DeviceDescription& target);
  // Returns the socket of a GPU. Several GPUs are divided among the sockets in order, unless one
  // socket was asked for.
  uint32_t socket_of_gpu(uint32_t index) const noexcept {
    if (gpus.size() < 2 || sockets.gpu_given) return sockets.of_gpu;
    return index * sockets.count / static_cast<uint32_t>(gpus.size());
  }
  // Returns these options with `device` being that GPU, and with seeds of its own; the first GPU
  // keeps those of the process. Options that list no GPUs keep their device.
  Options of_gpu(uint32_t index) const;
};

}  // namespace uptempo::vgpu
