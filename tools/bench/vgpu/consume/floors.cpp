#include "tools/bench/vgpu/consume/floors.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "tools/bench/vgpu/consume/clock.hpp"
#include "tools/bench/vgpu/consume/cores.hpp"

namespace uptempo::vgpu::consume {
namespace {

struct alignas(64) Line {
  std::atomic<uint32_t> value{0};
};

}  // namespace

double take_ring(Queue& queue, const Packet& packet, int core) {
  const uint64_t first = queue.written(), count = queue.size();
  Line begun, done;
  for (uint64_t index = 0; index < count; ++index) store(queue.slot(first + index), packet);
  std::thread taker([&] {
    pin(core);
    Packet taken{};
    begun.value.store(1, std::memory_order_release);
    for (uint64_t index = 0; index < count; ++index) {
      Packet& slot = queue.slot(first + index);
      const std::atomic_ref<uint32_t> header(slot.words[0]);
      while ((header.load(std::memory_order_acquire) & 0xff) == HSA_PACKET_TYPE_INVALID) {
      }
      std::memcpy(&taken, &slot, sizeof taken);
      asm volatile("" ::"m"(taken));
      std::atomic_ref<uint16_t>(slot.dispatch.header)
          .store(HSA_PACKET_TYPE_INVALID, std::memory_order_release);
    }
    done.value.store(1, std::memory_order_release);
  });
  while (begun.value.load(std::memory_order_acquire) == 0) {
  }
  const auto begin = now_ns();
  while (done.value.load(std::memory_order_acquire) == 0) {
  }
  const double ns = now_ns() - begin;
  taker.join();
  return ns / static_cast<double>(count);
}

std::vector<double> echoes(size_t count, int core) {
  Line call, answer;
  std::thread other([&] {
    pin(core);
    for (uint32_t turn = 1; turn <= count; ++turn) {
      while (call.value.load(std::memory_order_acquire) != turn) {
      }
      answer.value.store(turn, std::memory_order_release);
    }
  });
  std::vector<double> trips(count);
  for (uint32_t turn = 1; turn <= count; ++turn) {
    const auto begin = now_ns();
    call.value.store(turn, std::memory_order_release);
    while (answer.value.load(std::memory_order_acquire) != turn) {
    }
    trips[turn - 1] = now_ns() - begin;
  }
  other.join();
  return trips;
}

std::vector<double> futex_echoes(size_t count, int core, unsigned pause_us) {
  Line call, answer;
  const auto futex = [&](int operation, uint32_t value) {
    syscall(SYS_futex, &call.value, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
  };
  std::thread other([&] {
    pin(core);
    for (uint32_t turn = 1; turn <= count; ++turn) {
      while (call.value.load(std::memory_order_acquire) != turn) futex(FUTEX_WAIT, turn - 1);
      answer.value.store(turn, std::memory_order_release);
    }
  });
  std::vector<double> trips(count);
  for (uint32_t turn = 1; turn <= count; ++turn) {
    std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    const auto begin = now_ns();
    call.value.store(turn, std::memory_order_release);
    futex(FUTEX_WAKE, 1);
    while (answer.value.load(std::memory_order_acquire) != turn) {
    }
    trips[turn - 1] = now_ns() - begin;
  }
  other.join();
  return trips;
}

}  // namespace uptempo::vgpu::consume
