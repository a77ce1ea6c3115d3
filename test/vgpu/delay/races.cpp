// A program under test. It passes data between kernels, copies and the host, with each side waiting
// for the other. In ways with a leading "!", one side only waits for a time that usually suffices.
// Prints one line for each way: its name and "right" or "wrong".
#include <time.h>
#include <uptempo/kernels/basics.hpp>

#include <cstdio>
#include <cstring>
#include <functional>

#include "incoherent/device.hpp"

namespace {

using namespace uptempo::vgpu::test;

constexpr uint32_t kCount = 256;
constexpr unsigned kRounds = 24;

using Words = std::span<uint32_t>;

void wait(hsa_signal_t signal) {
  while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                   HSA_WAIT_STATE_BLOCKED) > 0)
    continue;
}

// Long enough for a small kernel or copy on a device without delays.
void wait_briefly() {
  const timespec pause{0, 150'000};
  nanosleep(&pause, nullptr);
}

class Queue {
 public:
  explicit Queue(hsa_agent_t gpu) {
    check(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, UINT32_MAX, UINT32_MAX,
                           &queue_),
          "hsa_queue_create");
  }
  ~Queue() { check(hsa_queue_destroy(queue_), "hsa_queue_destroy"); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void dispatch(const TestDevice::Kernel& kernel, const TestDevice::Arguments& arguments,
                hsa_signal_t done) {
    hsa_kernel_dispatch_packet_t packet{};
    packet.setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
    packet.workgroup_size_x = 64;
    packet.workgroup_size_y = packet.workgroup_size_z = 1;
    packet.grid_size_x = kCount;
    packet.grid_size_y = packet.grid_size_z = 1;
    packet.kernel_object = kernel.object;
    packet.kernarg_address = arguments.address();
    packet.completion_signal = done;
    submit(packet, HSA_PACKET_TYPE_KERNEL_DISPATCH, packet.setup);
  }
  void wait_on_device(hsa_signal_t signal) {
    hsa_barrier_and_packet_t packet{};
    packet.dep_signal[0] = signal;
    submit(packet, HSA_PACKET_TYPE_BARRIER_AND, 0);
  }

 private:
  template <class Packet>
  void submit(const Packet& packet, hsa_packet_type_t type, uint16_t setup) {
    static_assert(sizeof packet == 64);
    const uint64_t index = hsa_queue_add_write_index_relaxed(queue_, 1);
    while (index - hsa_queue_load_read_index_scacquire(queue_) >= queue_->size) continue;
    auto* slot = static_cast<std::byte*>(queue_->base_address) + index % queue_->size * 64;
    std::memcpy(slot + 4, reinterpret_cast<const std::byte*>(&packet) + 4, 60);
    constexpr unsigned kSystem = HSA_FENCE_SCOPE_SYSTEM;
    const auto header =
        static_cast<uint32_t>(type << HSA_PACKET_HEADER_TYPE | 1u << HSA_PACKET_HEADER_BARRIER |
                              kSystem << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                              kSystem << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    __atomic_store_n(reinterpret_cast<uint32_t*>(slot), header | uint32_t{setup} << 16,
                     __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }

  hsa_queue_t* queue_ = nullptr;
};

enum class Order { by_dependence, by_timing };

class Races {
 public:
  Races() {
    for (hsa_signal_t* signal : {&first_done_, &second_done_})
      check(hsa_signal_create(0, 0, nullptr, signal), "hsa_signal_create");
  }
  ~Races() {
    for (hsa_signal_t signal : {first_done_, second_done_})
      check(hsa_signal_destroy(signal), "hsa_signal_destroy");
  }

  // The host reads what a kernel writes, after the kernel's signal or after that of a later kernel
  // on another queue.
  bool host_reads(Order order) {
    arm();
    write(first_, first_queue_, first_done_);
    write(second_, second_queue_, second_done_);
    wait(order == Order::by_dependence ? first_done_ : second_done_);
    const bool right = holds(first_);
    finish();
    return right;
  }

  // A copy engine reads what a kernel writes.
  bool copy_behind_kernel(Order order) {
    arm();
    write(first_, first_queue_, first_done_);
    if (order == Order::by_timing) wait_briefly();
    copy(second_, first_, order == Order::by_dependence ? &first_done_ : nullptr, second_done_);
    finish();
    return holds(second_);
  }

  // A kernel reads what a copy engine writes.
  bool kernel_behind_copy(Order order) {
    std::fill(source_.begin(), source_.end(), 0u);
    for (uint32_t index = 0; index < kCount; ++index) source_[index] = value_ + index;
    arm();
    copy(first_, source_, nullptr, first_done_);
    read(first_, first_done_, order);
    finish();
    return holds(second_);
  }

  // A kernel reads what a kernel of another queue writes.
  bool kernel_behind_kernel(Order order) {
    arm();
    write(first_, first_queue_, first_done_);
    read(first_, first_done_, order);
    finish();
    return holds(second_);
  }

  // The host overwrites what a kernel still reads.
  bool host_overwrites(Order order) {
    for (uint32_t index = 0; index < kCount; ++index) source_[index] = value_ + index;
    arm();
    hsa_signal_store_relaxed(first_done_, 0);
    second_queue_.dispatch(copy_, device_.arguments().add(second_.data()).add(source_.data()),
                           second_done_);
    if (order == Order::by_dependence) {
      wait(second_done_);
    } else {
      wait_briefly();
    }
    std::fill(source_.begin(), source_.end(), 0u);
    finish();
    return holds(second_);
  }

  // Returns whether all rounds are right.
  bool rounds(const std::function<bool(Order)>& way, Order order) {
    bool right = true;
    for (unsigned round = 0; round < kRounds; ++round) {
      value_ += kCount;
      right = way(order) && right;
    }
    return right;
  }

 private:
  void arm() {
    hsa_signal_store_relaxed(first_done_, 1);
    hsa_signal_store_relaxed(second_done_, 1);
  }
  void finish() {
    wait(first_done_);
    wait(second_done_);
  }
  void write(Words words, Queue& queue, hsa_signal_t done) {
    queue.dispatch(iota_, device_.arguments().add(words.data()).add(value_).add(uint32_t{1}), done);
  }
  void read(Words words, hsa_signal_t written, Order order) {
    if (order == Order::by_dependence) {
      second_queue_.wait_on_device(written);
    } else {
      wait_briefly();
    }
    second_queue_.dispatch(copy_, device_.arguments().add(second_.data()).add(words.data()),
                           second_done_);
  }
  void copy(Words to, Words from, const hsa_signal_t* dependency, hsa_signal_t done) {
    check(
        hsa_amd_memory_async_copy(to.data(), device_.gpu, from.data(), device_.gpu, to.size_bytes(),
                                  dependency != nullptr ? 1 : 0, dependency, done),
        "hsa_amd_memory_async_copy");
  }
  bool holds(Words words) const {
    for (uint32_t index = 0; index < kCount; ++index)
      if (words[index] != value_ + index) return false;
    return true;
  }

  TestDevice device_{kernels::basics()};
  const TestDevice::Kernel iota_ = device_.kernel("iota"), copy_ = device_.kernel("copy");
  Queue first_queue_{device_.gpu}, second_queue_{device_.gpu};
  hsa_signal_t first_done_{}, second_done_{};
  const Words first_ = device_.allocate(Memory::host_fine, kCount),
              second_ = device_.allocate(Memory::host_fine, kCount),
              source_ = device_.allocate(Memory::host_fine, kCount);
  uint32_t value_ = 0;
};

}  // namespace

// With the argument "waiting", runs only the ways that wait.
int main(int argc, char** argv) {
  const bool all = argc < 2 || std::strcmp(argv[1], "waiting") != 0;
  Races races;
  struct Way {
    const char* name;
    bool (Races::*run)(Order);
  };
  for (const Way& way : {Way{"host-reads", &Races::host_reads},
                         Way{"copy-behind-kernel", &Races::copy_behind_kernel},
                         Way{"kernel-behind-copy", &Races::kernel_behind_copy},
                         Way{"kernel-behind-kernel", &Races::kernel_behind_kernel},
                         Way{"host-overwrites", &Races::host_overwrites}}) {
    const auto run = [&](Order order) { return (races.*way.run)(order); };
    for (const Order order : {Order::by_dependence, Order::by_timing}) {
      if (order == Order::by_timing && !all) continue;
      std::printf("%s%s %s\n", order == Order::by_timing ? "!" : "", way.name,
                  races.rounds(run, order) ? "right" : "wrong");
    }
  }
  return 0;
}
