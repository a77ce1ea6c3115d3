// HardwareExceptions: listens to the driver's event about the loss of a GPU
// (KFD_IOC_EVENT_HW_EXCEPTION of linux/kfd_ioctl.h): a reset after a hang, a stop after an
// uncorrectable memory error, or the removal of the device. Private to engine/runtime.
//
// For ROCr before 6.1, which does not ask the driver for the event. No queue's error callback is
// called then, and the signals of lost work never change, so that a wait for it would not end.
//
// Thread safety: the constructor and the destructor run on one thread each. The function runs on a
// thread of the object.
// Lifetime: the destructor waits for a running call of the function.
// Cost: one descriptor, one event of the driver, which is none of its 4,095 signal events, and a
// thread that sleeps in the driver and wakes once per second.
#pragma once

#include <hsa/hsa.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/runtime/driver/driver_file.hpp>

namespace uptempo::detail {

class HardwareExceptions {
 public:
  // `by_memory_error`: the driver stopped the GPU after an uncorrectable error (ECC).
  using OnLoss = void (*)(hsa_agent_t agent, bool by_memory_error);

  // Listens for all GPU agents. HSA must be initialised. Throws std::bad_alloc.
  explicit HardwareExceptions(OnLoss on_loss);
  HardwareExceptions(const HardwareExceptions&) = delete;
  HardwareExceptions& operator=(const HardwareExceptions&) = delete;
  ~HardwareExceptions();

  // Why it does not listen; empty if it does.
  const std::string& refusal() const noexcept { return refusal_; }

 private:
  struct Gpu {
    uint64_t id;  // the driver's gpu_id
    hsa_agent_t agent;
  };
  bool create_event();
  void listen() noexcept;
  static std::vector<Gpu> find_gpus();

  const OnLoss on_loss_;
  // Read now, because the files of a GPU that is removed disappear with it.
  const std::vector<Gpu> gpus_;
  const Descriptor driver_;
  uint32_t event_ = 0;
  std::string refusal_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace uptempo::detail
