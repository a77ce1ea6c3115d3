// Everything that the lint knows between OnLoad and OnUnload.
//
// Thread safety: any thread. What the doorbell path uses (ledger, signals, timings) never waits;
// the rest has a mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/lint/api_tables.hpp"
#include "tools/lint/kernel_names.hpp"
#include "tools/lint/ledger.hpp"
#include "tools/lint/queue_watch.hpp"
#include "tools/lint/report.hpp"
#include "tools/lint/settings.hpp"
#include "tools/lint/signal_table.hpp"

namespace uptempo::lint {

// Times of sampled doorbell stores; later samples replace early ones.
class DoorbellTimes {
 public:
  void add(uint64_t nanoseconds) noexcept;
  uint64_t samples() const noexcept { return count_.load(std::memory_order_relaxed); }
  std::optional<double> median() const;

 private:
  std::array<std::atomic<uint32_t>, 512> times_{};
  std::atomic<uint64_t> count_{0};
};

class Session {
 public:
  // `core`: ROCr's functions, before the lint replaces them. `standard_error`: a copy of it; used
  // if settings.file is empty.
  Session(const Settings& settings, int standard_error, uint32_t number, const CoreApiTable& core,
          const AmdEntries& amd);

  // A queue that hsa_queue_create(), hsa_amd_queue_intercept_create() or hsa_amd_queue_create() has
  // returned, or several of them. `is_device_ring`: its creator wants the ring in device memory.
  void add_queue(hsa_agent_t agent, hsa_queue_t* queue, bool is_device_ring = false);
  // A queue of copy commands, for example.
  void add_queue_of_other_engine(hsa_agent_t agent, hsa_queue_t* queue);
  // Queues of a call that the lint does not understand.
  void add_unknown_queues(uint32_t count);
  void remove_queue(const hsa_queue_t* queue);
  // A queue that ROCr has made for itself.
  void add_queue_of_rocr(const hsa_queue_t* queue, hsa_agent_t agent);
  // Whether ROCr notifies the lint of them. Another tool may have registered before.
  void set_knows_queues_of_rocr(bool knows) noexcept { knows_queues_of_rocr_ = knows; }
  bool knows_queues_of_rocr() const noexcept { return knows_queues_of_rocr_; }
  void add_kernels(hsa_executable_t executable);
  // hsa_shut_down() may free all queues. If it has, close() ends all that the program has left.
  void note_write_indices();
  void close();

  // Writes the report, once, in the process that made the session. Reads memory of HSA only where
  // it is still mapped. A report that cannot be written is a line on stderr.
  void write_report();

  const CoreApiTable core;
  // ROCr's functions of AMD's table: as<decltype(&hsa_amd_...)>(AmdFunction::...).
  template <typename Function>
  Function amd(AmdFunction function) const {
    return reinterpret_cast<Function>(amd_[static_cast<size_t>(function)]);
  }
  const Settings settings;
  // True if the call site and the duration of this doorbell are to be taken. `number`: not 0.
  bool is_sample(uint64_t number) const noexcept { return (number & sample_mask_) == 0; }
  Ledger ledger;

 private:
  const uint64_t sample_mask_;  // beside what each doorbell needs

 public:
  SignalTable signals{ledger};
  DoorbellTimes doorbell_times;

 private:
  struct Watched {
    std::unique_ptr<QueueWatch> watch;  // never freed early: another thread may be in it
    SignalTable::Entry* doorbell = nullptr;
    bool open = true;
    QueueReport closed{};
    std::optional<uint64_t> noted{};  // write index
  };
  struct Unwatched {
    const hsa_queue_t* queue;  // null: destroyed
    QueueReport report;
    bool counts_packets = true;  // its write index does
    std::optional<uint64_t> noted{};
  };
  struct OfRocr {
    const hsa_queue_t* queue;  // null: destroyed
    uint64_t id;
    std::string agent;
    std::optional<uint64_t> noted{};
  };

  std::string describe(hsa_agent_t agent);  // with mutex_
  bool is_known(const hsa_queue_t* queue) const;
  bool is_ring_in_device_memory(const hsa_queue_t* queue) const;
  QueueReport close(const QueueWatch& watch, std::optional<uint64_t> write_index) const;
  Report make_report();

  std::array<void*, kAmdFunctions> amd_{};
  const int standard_error_;
  const uint32_t number_;
  const int process_;
  KernelNames names_;
  std::atomic<bool> reported_{false};
  std::atomic<bool> knows_queues_of_rocr_{true};

  std::mutex mutex_;  // protects the members below
  std::vector<Watched> queues_;
  std::vector<Unwatched> unwatched_;
  std::vector<OfRocr> of_rocr_;
  uint64_t unknown_queues_ = 0;
  std::vector<DeviceBound> devices_;
};

}  // namespace uptempo::lint
