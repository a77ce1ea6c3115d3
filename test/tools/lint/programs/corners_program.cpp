// A program on the HSA API alone, for corner cases of the lint. Prints "{...}" with its counts.
//
//   corners_program destroy     threads destroy each completion signal as soon as it is complete
//   corners_program unread      a packet waits for a signal in a queue that the lint cannot read
//   corners_program add         a signal that hsa_signal_add arms again
//   corners_program satisfied   host waits whose condition was met before
//   corners_program pipeline    host waits for a packet that is not the queue's last one
//   corners_program loop        a packet and a host wait for it, five times
//   corners_program sessions    the same in two HSA sessions, one with nested hsa_init()
#include <hsa/hsa.h>

#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include "test/tools/lint/programs/packets.hpp"

namespace {

using lint_test::Signal;

constexpr hsa_signal_t kNoSignal{0};

hsa_agent_t find_gpu() {
  hsa_agent_t gpu{};
  const auto look = [](hsa_agent_t agent, void* found) {
    hsa_device_type_t type{};
    CHECK_HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
    *static_cast<hsa_agent_t*>(found) = agent;
    return HSA_STATUS_INFO_BREAK;
  };
  if (hsa_iterate_agents(look, &gpu) != HSA_STATUS_INFO_BREAK) std::exit(5);
  return gpu;
}

void wait(hsa_signal_t signal) {
  while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                   HSA_WAIT_STATE_BLOCKED) >= 1) {
  }
}

class Queue {
 public:
  Queue() {
    CHECK_HSA(hsa_queue_create(find_gpu(), 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX,
                               UINT32_MAX, &queue_));
  }
  ~Queue() { CHECK_HSA(hsa_queue_destroy(queue_)); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Any thread. A barrier-AND packet.
  uint64_t publish(hsa_signal_t dependency, hsa_signal_t done) {
    const uint64_t index = hsa_queue_add_write_index_scacq_screl(queue_, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue_) >= queue_->size)
      std::this_thread::yield();
    auto* const slot = static_cast<uint32_t*>(queue_->base_address) + index % queue_->size * 16;
    hsa_barrier_and_packet_t packet{};
    packet.dep_signal[0] = dependency;
    packet.completion_signal = done;
    std::memcpy(slot + 1, reinterpret_cast<const uint32_t*>(&packet) + 1, 60);
    std::atomic_ref(*slot).store(HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER,
                                 std::memory_order_release);
    return index;
  }
  void ring(uint64_t index) {
    hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }
  void ring_directly(uint64_t index) {
    auto* const doorbell = reinterpret_cast<amd_signal_t*>(queue_->doorbell_signal.handle);
    if (doorbell->kind != AMD_SIGNAL_KIND_DOORBELL) std::exit(3);
    std::atomic_ref(const_cast<uint64_t&>(*doorbell->hardware_doorbell_ptr))
        .store(index, std::memory_order_release);
  }

 private:
  hsa_queue_t* queue_ = nullptr;
};

int destroy() {
  constexpr int kThreads = 4, kPackets = 2000;
  Queue queue;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < kPackets; ++k) {
        const Signal done{1};
        queue.ring(queue.publish(kNoSignal, done.handle()));
        wait(done.handle());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return kThreads * kPackets;
}

int unread() {
  Queue read, hidden;
  const Signal first{1}, second{1};
  hidden.ring_directly(hidden.publish(first.handle(), second.handle()));
  read.ring(read.publish(kNoSignal, first.handle()));
  wait(second.handle());
  return 2;
}

int add() {
  Queue queue;
  const Signal done{1};
  for (int i = 0; i < 5; ++i) {
    queue.ring(queue.publish(kNoSignal, done.handle()));
    wait(done.handle());
    hsa_signal_add_relaxed(done.handle(), 1);
  }
  return 5;
}

int satisfied() {
  Queue queue;
  const Signal done{1};
  auto& value = const_cast<int64_t&>(reinterpret_cast<amd_signal_t*>(done.handle().handle)->value);
  for (int i = 0; i < 20; ++i) {
    hsa_signal_store_relaxed(done.handle(), 1);
    queue.ring(queue.publish(kNoSignal, done.handle()));
    while (std::atomic_ref(value).load(std::memory_order_acquire) >= 1) std::this_thread::yield();
    wait(done.handle());
  }
  return 20;
}

// The last packet of the queue waits for the host, so that the earlier one is never the last.
int pipeline() {
  constexpr int kPackets = 20;
  Queue queue;
  for (int i = 0; i < kPackets; ++i) {
    const Signal first{1}, gate{1}, second{1};
    const uint64_t index = queue.publish(kNoSignal, first.handle());
    const uint64_t last = queue.publish(gate.handle(), second.handle());
    if (last != index + 1) std::exit(6);
    queue.ring(last);
    wait(first.handle());
    hsa_signal_store_screlease(gate.handle(), 0);
    auto& value =
        const_cast<int64_t&>(reinterpret_cast<amd_signal_t*>(second.handle().handle)->value);
    while (std::atomic_ref(value).load(std::memory_order_acquire) >= 1) std::this_thread::yield();
  }
  return 2 * kPackets;
}

int loop() {
  Queue queue;
  for (int i = 0; i < 5; ++i) {
    const Signal done{1};
    queue.ring(queue.publish(kNoSignal, done.handle()));
    wait(done.handle());
  }
  return 5;
}

int sessions() {
  CHECK_HSA(hsa_init());
  int packets = loop();
  CHECK_HSA(hsa_shut_down());
  packets += loop();
  CHECK_HSA(hsa_shut_down());
  CHECK_HSA(hsa_init());
  return packets + loop();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  CHECK_HSA(hsa_init());
  int packets = 0;
  if (what == "destroy") {
    packets = destroy();
  } else if (what == "unread") {
    packets = unread();
  } else if (what == "add") {
    packets = add();
  } else if (what == "satisfied") {
    packets = satisfied();
  } else if (what == "pipeline") {
    packets = pipeline();
  } else if (what == "loop") {
    packets = loop();
  } else if (what == "sessions") {
    packets = sessions();
  } else {
    return 2;
  }
  CHECK_HSA(hsa_shut_down());
  std::printf("{\"packets\":%d}\n", packets);
}
