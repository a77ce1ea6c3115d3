// A hand-written producer on the HSA API that counts what it does: the oracle of the lint's report.
#pragma once

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#define CHECK_HSA(call)                                                              \
  do {                                                                               \
    if (const hsa_status_t status_ = (call); status_ != HSA_STATUS_SUCCESS) {        \
      std::fprintf(stderr, "%s:%d: %s: 0x%x\n", __FILE__, __LINE__, #call, status_); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

namespace lint_test {

constexpr int kNone = HSA_FENCE_SCOPE_NONE, kAgent = HSA_FENCE_SCOPE_AGENT,
              kSystem = HSA_FENCE_SCOPE_SYSTEM;

struct Header {
  int acquire = kAgent, release = kAgent;
  bool barrier = true;
};

class Signal {
 public:
  explicit Signal(hsa_signal_value_t value) {
    CHECK_HSA(hsa_signal_create(value, 0, nullptr, &handle_));
  }
  ~Signal() { CHECK_HSA(hsa_signal_destroy(handle_)); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  hsa_signal_t handle() const { return handle_; }

 private:
  hsa_signal_t handle_{};
};

class Producer {
 public:
  Producer(hsa_agent_t agent, uint32_t packets) {
    CHECK_HSA(hsa_queue_create(agent, packets, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX,
                               UINT32_MAX, &queue_));
  }
  ~Producer() { CHECK_HSA(hsa_queue_destroy(queue_)); }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void dispatch(uint64_t kernel_object, uint16_t workgroup, Header header, hsa_signal_t done,
                void* kernarg) {
    hsa_kernel_dispatch_packet_t packet{};
    packet.setup = 1;
    packet.workgroup_size_x = workgroup;
    packet.workgroup_size_y = packet.workgroup_size_z = 1;
    packet.grid_size_x = workgroup;
    packet.grid_size_y = packet.grid_size_z = 1;
    packet.kernel_object = kernel_object;
    packet.kernarg_address = kernarg;
    packet.completion_signal = done;
    publish(HSA_PACKET_TYPE_KERNEL_DISPATCH, header, 1u << 16, &packet);
    ++counts["dispatches"];
  }
  void barrier(Header header, hsa_signal_t dependency, hsa_signal_t done = {}) {
    hsa_barrier_and_packet_t packet{};
    packet.dep_signal[0] = dependency;
    packet.completion_signal = done;
    publish(HSA_PACKET_TYPE_BARRIER_AND, header, 0, &packet);
  }

  void ring() {
    if (rang_ && !waited_since_ring_ && packets_since_ring_ == 1) ++counts["lone_doorbells"];
    ++counts["doorbells"];
    rang_ = true;
    waited_since_ring_ = false;
    packets_since_ring_ = 0;
    hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(next_ - 1));
  }
  // As a program that knows AMD's queues rings, without a call.
  void ring_directly() {
    auto* const doorbell = reinterpret_cast<amd_signal_t*>(queue_->doorbell_signal.handle);
    if (doorbell->kind != AMD_SIGNAL_KIND_DOORBELL) std::exit(3);
    std::atomic_ref(const_cast<uint64_t&>(*doorbell->hardware_doorbell_ptr))
        .store(next_ - 1, std::memory_order_release);
  }
  // For the signal of the queue's last packet. release() lets it execute once this thread sleeps in
  // the wait, so that the condition is not met before.
  void wait(hsa_signal_t signal, const std::function<void()>& release) {
    std::atomic<bool> waits{false};
    const std::string state = "/proc/self/task/" + std::to_string(gettid()) + "/stat";
    std::thread helper([&] {
      while (!waits || !is_asleep(state)) std::this_thread::yield();
      release();
    });
    waits = true;
    while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                     HSA_WAIT_STATE_BLOCKED) >= 1) {
    }
    helper.join();
    waited_ = waited_since_ring_ = true;
  }

  std::map<std::string, uint64_t> counts;

 private:
  // The third field of /proc/PID/task/TID/stat, after the name in parentheses (proc(5)).
  static bool is_asleep(const std::string& file) {
    std::ifstream in(file);
    std::string text;
    std::getline(in, text);
    const size_t end = text.rfind(") ");
    return end != std::string::npos && text.compare(end + 2, 1, "S") == 0;
  }
  void publish(hsa_packet_type_t type, Header header, uint32_t setup, const void* packet) {
    if (next_ - hsa_queue_load_read_index_scacquire(queue_) >= queue_->size) std::exit(4);
    auto* const slot = static_cast<uint32_t*>(queue_->base_address) + next_ % queue_->size * 16;
    std::memcpy(slot + 1, static_cast<const uint32_t*>(packet) + 1, 60);
    const uint32_t bits =
        static_cast<uint32_t>(type) | static_cast<uint32_t>(header.barrier) << 8 |
        static_cast<uint32_t>(header.acquire) << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
        static_cast<uint32_t>(header.release) << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    hsa_queue_store_write_index_relaxed(queue_, next_ + 1);
    std::atomic_ref(*slot).store(bits | setup, std::memory_order_release);
    ++next_;
    ++packets_since_ring_;
    ++counts["packets"];
    counts["barrier_bits"] += header.barrier ? 1 : 0;
    counts["system_acquires"] += header.acquire == kSystem ? 1 : 0;
    counts["system_releases"] += header.release == kSystem ? 1 : 0;
    counts["host_waits"] += waited_ ? 1 : 0;
    waited_ = false;
  }

  hsa_queue_t* queue_ = nullptr;
  uint64_t next_ = 0, packets_since_ring_ = 0;
  bool rang_ = false, waited_since_ring_ = false, waited_ = false;
};

}  // namespace lint_test
