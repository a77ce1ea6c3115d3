// Measures the command processor alone: nanoseconds per packet, round trip, wake-up, idle cost.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "cp/device_thread.hpp"
#include "device/clock.hpp"
#include "device/host/host_pages.hpp"
#include "device_fixture.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;
using Clock = std::chrono::steady_clock;

namespace {

double ns_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

// Fills the ring while the queue is suspended, so that only the processor's own work is timed.
template <typename Packet>
double full_ring(DeviceFixture& device, const Packet& packet, uint32_t packets = 16384) {
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    ComputeQueue queue(device, packets, true);
    amd_signal_t* done = device.signal(1);
    for (uint32_t index = 0; index + 1 < packets; ++index) queue.write(packet);
    queue.write(barrier_and({}, true, done));
    queue.ring();
    const auto begin = Clock::now();
    device.processor->update_queue(
        queue.id,
        DeviceFixture::address(static_cast<std::byte*>(queue.queue->hsa_queue.base_address)),
        packets * 64, 100, 7);
    while (DeviceFixture::value(done) != 0) {
    }
    best = std::min(best, ns_between(begin, Clock::now()) / packets);
    queue.destroy();
  }
  return best;
}

double process_cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

struct Quantiles {
  double p10, median, p90;
};
Quantiles quantiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 10], values[values.size() / 2], values[values.size() * 9 / 10]};
}

// A thread that sleeps in a futex and records when it woke: the lower bound of every wake-up.
class FutexSleeper {
 public:
  FutexSleeper() : thread_([this] { run(); }) {}
  ~FutexSleeper() {
    stop_ = true;
    wake();
    thread_.join();
  }

  double wake() {
    woken_ = 0;
    const auto begin = Clock::now();
    rung_.store(1);
    syscall(SYS_futex, &rung_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    while (woken_.load() == 0) {
    }
    return ns_between(begin, woken_at_);
  }

 private:
  void run() {
    prefer_latency();
    do {
      while (rung_.load() == 0)
        syscall(SYS_futex, &rung_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
      rung_ = 0;
      woken_at_ = Clock::now();
      woken_ = 1;
    } while (!stop_);
  }

  std::atomic<uint32_t> rung_{0}, woken_{0};
  std::atomic<bool> stop_{false};
  Clock::time_point woken_at_;
  std::thread thread_;
};

}  // namespace

int main() {
  {
    Options options;
    options.null_kernels = true;
    DeviceFixture device(options);
    std::printf("null dispatch, full ring          %8.1f ns\n",
                full_ring(device, dispatch(device.kernel(), 64, 64, true), 16384));
    std::printf("empty barrier, full ring          %8.1f ns\n",
                full_ring(device, barrier_and({}, true), 16384));
  }
  {
    DeviceFixture device;
    ComputeQueue queue(device, 1024);
    amd_signal_t* done = device.signal(1);
    std::vector<double> trips;
    for (int round = 0; round < 20000; ++round) {
      DeviceFixture::set(done, 1);
      const auto begin = Clock::now();
      queue.submit(barrier_and({}, true, done));
      while (DeviceFixture::value(done) != 0) {
      }
      trips.push_back(ns_between(begin, Clock::now()));
    }
    const Quantiles trip = quantiles(trips);
    std::printf("round trip of a barrier           %8.1f ns p10, %8.1f ns median, %8.1f ns p90\n",
                trip.p10, trip.median, trip.p90);
    // Time until the processor has begun the packet. The futex row is the time that the operating
    // system needs to wake a thread, which no sleeping device can beat.
    queue.set_property(AMD_QUEUE_PROPERTIES_ENABLE_PROFILING, true);
    std::vector<double> seen;
    FutexSleeper sleeper;
    std::vector<double> woken;
    for (int round = 0; round < 400; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (round % 2 == 0) {
        woken.push_back(sleeper.wake());
        continue;
      }
      DeviceFixture::set(done, 1);
      const uint64_t begin = gpu_clock_ticks();
      queue.submit(barrier_and({}, true, done));
      while (DeviceFixture::value(done) != 0) {
      }
      seen.push_back(static_cast<double>(done->start_ts - begin) * 10);
    }
    const Quantiles wake = quantiles(seen);
    const Quantiles floor = quantiles(woken);
    std::printf("doorbell on a sleeping device     %8.1f ns p10, %8.1f ns median, %8.1f ns p90\n",
                wake.p10, wake.median, wake.p90);
    std::printf(
        "wake-up of a thread by a futex    %8.1f ns p10, %8.1f ns median, %8.1f ns p90; doorbell / "
        "futex "
        "%.2fx\n",
        floor.p10, floor.median, floor.p90, wake.median / floor.median);
  }
  for (const uint32_t workers : {1u, 2u}) {
    Options options;
    options.workers = workers;
    DeviceFixture device(options);
    ScriptedKernel* kernel = device.kernel();
    std::printf("dispatch of 1 workgroup, %u worker(s)    %8.1f ns\n", workers,
                full_ring(device, dispatch(kernel, 64, 64, true), 4096));
    std::printf("dispatch of 64 workgroups, %u worker(s)  %8.1f ns\n", workers,
                full_ring(device, dispatch(kernel, 64 * 64, 64, true), 2048));
    ScriptedKernel* busy = device.kernel([](const Slice&) {
      const auto end = Clock::now() + std::chrono::nanoseconds(1500);
      while (Clock::now() < end) {
      }
      return Result::ended;
    });
    std::printf("dispatch of 64 x 1.5 us, %u worker(s)    %8.1f ns\n", workers,
                full_ring(device, dispatch(busy, 64 * 64, 64, true), 256));
  }
  for (const bool others : {false, true}) {
    // Cost in check mode of the host's store to a page that the device used before and uses next.
    constexpr size_t kPage = HostPages::kPageBytes;
    constexpr size_t kPages = 256;
    constexpr int kRounds = 40;
    const int file = memfd_create("watched", MFD_CLOEXEC);
    if (ftruncate(file, kPages * kPage) != 0) return 1;
    const auto map = [file] {
      return static_cast<std::byte*>(
          mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    };
    std::byte* const program = map();
    std::byte* const alias = map();
    HostPages pages;
    pages.add(0x10000, program, alias, kPages * kPage);
    std::atomic<bool> end{false};
    std::thread other([&] {
      while (others && !end) std::atomic_signal_fence(std::memory_order_seq_cst);
    });
    double fault_ns = 0;
    double close_ns = 0;
    HostEvent event;
    PageMask changes;
    for (int round = 0; round < kRounds; ++round) {
      const auto begin = Clock::now();
      for (size_t page = 0; page < kPages; ++page)
        if (pages.close(0x10000 + page * kPage, true))
          pages.device_wrote(0x10000 + page * kPage, nullptr);
      const auto closed = Clock::now();
      while (pages.take(event, changes)) {
      }
      const auto faulting = Clock::now();
      for (size_t page = 0; page < kPages; ++page)
        *static_cast<volatile std::byte*>(program + page * kPage + 8) = std::byte(round + 1);
      if (round == 0) continue;  // the first round creates the twins
      fault_ns += ns_between(faulting, Clock::now());
      close_ns += ns_between(begin, closed);
    }
    end = true;
    other.join();
    std::printf("watched page%s  store that faults %8.1f ns, close with comparison %8.1f ns\n",
                others ? ", a second thread runs" : "                       ",
                fault_ns / (kRounds - 1) / kPages, close_ns / (kRounds - 1) / kPages);
    close(file);
  }
  {
    DeviceFixture device;
    ComputeQueue queue(device);
    amd_signal_t* done = device.signal(1);
    queue.submit(barrier_and({}, true, done));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const double before = process_cpu_ns();
    std::this_thread::sleep_for(std::chrono::seconds(5));
    std::printf("idle, open queue                  %8.3f %% of a core over 5 s\n",
                (process_cpu_ns() - before) / 5e9 * 100);
  }
}
