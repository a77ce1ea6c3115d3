// The virtual GPU through hsa.h alone, with queues and packets written by hand. Only ROCr is
// between the measurement and the device.
//
// Thread safety: one owner.
// Errors: std::runtime_error naming the HSA call that failed.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace uptempo::vgpu::consume {

void check(hsa_status_t status, const char* call);

class Gpu {
 public:
  // Throws std::runtime_error if there is no GPU agent, or if the program does not run on the
  // virtual GPU.
  Gpu();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  hsa_agent_t agent() const noexcept { return agent_; }
  std::string name() const;

  // A kernel without arguments that is one s_endpgm; null dispatches use it.
  uint64_t kernel_object() const noexcept { return kernel_object_; }

  // Number of packets of any kind that the device has completed for this process.
  uint64_t completed() const;

 private:
  struct KernelPage;

  hsa_agent_t agent_{0};
  std::unique_ptr<KernelPage> kernel_page_;
  uint64_t kernel_object_ = 0;
};

class Signal {
 public:
  // Without `event` a completion is one decrement. With it, the device also raises an event, and a
  // store by the host is an ioctl.
  explicit Signal(bool event = false);
  ~Signal() { hsa_signal_destroy(handle_); }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  hsa_signal_t handle() const noexcept { return handle_; }
  void set(hsa_signal_value_t value) const noexcept { hsa_signal_store_screlease(handle_, value); }
  // Waits until the value is 0, in the shortest loop that the API allows: hsa_signal_wait adds half
  // a microsecond.
  void spin() const noexcept {
    while (!fired()) {
    }
  }
  bool fired() const noexcept { return hsa_signal_load_scacquire(handle_) == 0; }

 private:
  hsa_signal_t handle_{0};
};

union Packet {
  hsa_kernel_dispatch_packet_t dispatch;
  hsa_barrier_and_packet_t barrier;
  uint32_t words[16];
};
static_assert(sizeof(Packet) == 64);

// Both have the barrier bit; the dispatch has agent scope, as in the middle of a batch. A null
// signal means none.
Packet empty_barrier(hsa_signal_t completion = {0}, hsa_signal_t dependency = {0});
Packet null_dispatch(const Gpu& gpu, hsa_signal_t completion = {0});

// Stores 64 bytes; the first four last, with release order.
inline void store(Packet& slot, const Packet& packet) noexcept {
  for (size_t word = 1; word < std::size(packet.words); ++word)
    slot.words[word] = packet.words[word];
  std::atomic_ref<uint32_t>(slot.words[0]).store(packet.words[0], std::memory_order_release);
}

class Queue {
 public:
  // `packets`: a power of two.
  Queue(const Gpu& gpu, uint32_t packets);

  uint32_t size() const noexcept { return queue_->size; }
  Packet& slot(uint64_t index) const noexcept {
    return static_cast<Packet*>(queue_->base_address)[index & (queue_->size - 1)];
  }
  // Writes the next packet. The caller ensures that there is room.
  void write(const Packet& packet) noexcept {
    store(slot(next_), packet);
    hsa_queue_store_write_index_screlease(queue_.get(), ++next_);
  }
  // Rings the doorbell for all packets written.
  void ring() const noexcept {
    hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(next_ - 1));
  }
  uint64_t written() const noexcept { return next_; }
  uint64_t read_index() const noexcept { return hsa_queue_load_read_index_scacquire(queue_.get()); }
  void wait_until_empty() const noexcept {
    while (read_index() != next_) {
    }
  }

 private:
  struct Destroy {
    void operator()(hsa_queue_t* queue) const noexcept { hsa_queue_destroy(queue); }
  };
  std::unique_ptr<hsa_queue_t, Destroy> queue_;
  uint64_t next_ = 0;
};

}  // namespace uptempo::vgpu::consume
