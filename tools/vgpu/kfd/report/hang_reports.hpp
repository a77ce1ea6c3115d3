// Hang reports of a process (cp/report): when SIGQUIT asks for one, when the watchdog finds that
// nothing completes, and when the program calls uptempo_vgpu_report().
//
// One thread, started with the process's first queue, waits for SIGQUIT and for the watchdog's time.
// There is none if SIGQUIT has no default action and --watchdog is off. A report takes no lock of the
// driver. It asks each command processor for copies of its state and waits for a bounded time.
//
// Watchdog: it reports when a queue has packets that are written and not complete, and nothing has
// completed on that GPU for that many seconds of the monotonic clock (hang_watch.hpp).
//
// Thread safety: any thread.
#pragma once

#include <semaphore.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "cp/command_processor.hpp"
#include "kfd/gpu.hpp"
#include "kfd/report/hang_watch.hpp"

namespace uptempo::vgpu::kfd {

class HangReports {
 public:
  explicit HangReports(std::vector<Gpu*> gpus);
  ~HangReports();
  HangReports(const HangReports&) = delete;
  HangReports& operator=(const HangReports&) = delete;

  // Call it when the GPU's command processor has been created. It must exist as long as this object.
  // The first call starts the thread. Not concurrently with itself.
  void add(const Gpu& gpu, CommandProcessor& processor);

  // Returns false if the descriptor cannot be written. Never throws.
  bool write(int descriptor, std::string_view reason) noexcept;

 private:
  void start();
  void run();
  bool wait();
  void look();

  const std::vector<Gpu*> gpus_;
  std::array<std::atomic<CommandProcessor*>, Options::kMostGpus> processors_{};
  std::optional<std::chrono::seconds> watchdog_;
  std::vector<HangWatch> watched_;  // by GPU; of the thread
  sem_t wake_;
  std::atomic<bool> stop_{false};
  bool started_ = false;
  bool handles_signal_ = false;
  std::thread thread_;
};

}  // namespace uptempo::vgpu::kfd
