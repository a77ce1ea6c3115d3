#include "kfd/report/hang_reports.hpp"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include <uptempo/aql/write_all.hpp>
#include "cp/device_thread.hpp"
#include "cp/report/hang_report.hpp"
#include "kfd/machine/log.hpp"
#include "kfd/report/hang_signal.hpp"
#include "kfd/report/source_lines.hpp"

namespace uptempo::vgpu::kfd {
namespace {

// A command processor answers after its turn and a slice; longer if the cores are busy.
constexpr std::chrono::seconds kAnswerWithin{3};

uint64_t completed_on(const Gpu& gpu) {
  const DeviceCounts& counts = gpu.counts;
  uint64_t sum = counts.dispatches() + counts.others() + counts.signal_updates();
  for (uint32_t engine = 0; engine < DeviceCounts::kMostEngines; ++engine)
    sum += counts.copies(engine);
  return sum;
}

bool has_work(const DeviceSnapshot& snapshot) {
  return std::ranges::any_of(snapshot.queues, &QueueSnapshot::has_work);
}

}  // namespace

HangReports::HangReports(std::vector<Gpu*> gpus) : gpus_(std::move(gpus)) {
  sem_init(&wake_, 0, 0);
}

HangReports::~HangReports() {
  if (handles_signal_) remove_hang_signal();
  stop_.store(true, std::memory_order_release);
  sem_post(&wake_);
  if (thread_.joinable()) thread_.join();
  sem_destroy(&wake_);
}

void HangReports::add(const Gpu& gpu, CommandProcessor& processor) {
  processors_[gpu.index].store(&processor, std::memory_order_release);
  if (!std::exchange(started_, true)) start();
}

void HangReports::start() {
  if (const auto seconds = gpus_.front()->options.watchdog_seconds)
    watchdog_ = std::chrono::seconds(*seconds);
  if (watchdog_) watched_.assign(gpus_.size(), HangWatch(*watchdog_));
  handles_signal_ = install_hang_signal(wake_);
  if (!handles_signal_ && !watchdog_) return;
  thread_ = start_device_thread("vgpu-report", [this] { run(); });
  if (thread_.joinable()) return;
  if (std::exchange(handles_signal_, false)) remove_hang_signal();
  if (watchdog_) report("--watchdog has no effect: the system refuses another thread");
}

// Returns whether a report was asked for.
bool HangReports::wait() {
  if (!watchdog_) {
    while (sem_wait(&wake_) != 0) {
    }
    return true;
  }
  const auto period =
      std::clamp<std::chrono::nanoseconds>(std::chrono::nanoseconds(*watchdog_) / 10,
                                           std::chrono::milliseconds(50), std::chrono::seconds(1));
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const auto end =
      std::chrono::seconds(until.tv_sec) + std::chrono::nanoseconds(until.tv_nsec) + period;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(end);
  until.tv_sec = seconds.count();
  until.tv_nsec = (end - seconds).count();
  for (;;) {
    if (sem_clockwait(&wake_, CLOCK_MONOTONIC, &until) == 0) return true;
    if (errno != EINTR) return false;
  }
}

void HangReports::run() {
  for (;;) {
    const bool asked = wait();
    if (stop_.load(std::memory_order_acquire)) return;
    if (asked) write(STDERR_FILENO, "report because of SIGQUIT");
    if (watchdog_) look();
  }
}

void HangReports::look() {
  const auto now = std::chrono::steady_clock::now();
  std::string stuck;
  for (const Gpu* gpu : gpus_) {
    CommandProcessor* const processor = processors_[gpu->index].load(std::memory_order_acquire);
    if (processor == nullptr) continue;
    const auto may_have_work = [&] {
      const DeviceSnapshot snapshot =
          processor->snapshot(CommandProcessor::SnapshotDepth::queues, kAnswerWithin);
      return !snapshot.answered || has_work(snapshot);
    };
    if (!watched_[gpu->index].look(now, completed_on(*gpu), may_have_work)) continue;
    if (!stuck.empty()) stuck += ", ";
    stuck += gpus_.size() == 1 ? "the GPU" : "GPU " + std::to_string(gpu->index);
  }
  if (stuck.empty()) return;
  write(STDERR_FILENO, "a queue has work, but no packet has completed for " +
                           std::to_string(watchdog_->count()) + " s on " + stuck +
                           ", perhaps by design");
}

bool HangReports::write(int descriptor, std::string_view reason) noexcept {
  try {
    std::vector<ReportedGpu> reported;
    for (Gpu* gpu : gpus_)
      if (CommandProcessor* const processor =
              processors_[gpu->index].load(std::memory_order_acquire))
        reported.push_back(
            {.snapshot = processor->snapshot(CommandProcessor::SnapshotDepth::waves, kAnswerWithin),
             .memory = &gpu->memory});
    std::vector<AddressSpace*> memory;
    for (Gpu* gpu : gpus_) memory.push_back(&gpu->memory);
    SourceLines sources(memory);
    return aql::write_all(descriptor, hang_report(reason, reported, gpus_.size() > 1, &sources)) ==
           0;
  } catch (const std::exception& error) {
    report(std::string("no hang report: ") + error.what());
    return false;
  }
}

}  // namespace uptempo::vgpu::kfd
