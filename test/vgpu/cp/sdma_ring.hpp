// An SDMA queue in the fixture's memory. Its packets are encoded by hand as ROCr encodes them on
// gfx9.
#pragma once

#include <cstring>
#include <stdexcept>
#include <vector>

#include "device_fixture.hpp"

namespace uptempo::vgpu::test {

using Words = std::vector<uint32_t>;

inline uint32_t low(const void* address) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(address));
}
inline uint32_t high(const void* address) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(address) >> 32);
}

inline Words copy(void* destination, const void* source, uint32_t bytes) {
  return {1, bytes - 1, 0, low(source), high(source), low(destination), high(destination)};
}
inline Words fence(void* address, uint32_t value) {
  return {5, low(address), high(address), value};
}
inline Words trap(uint32_t event) { return {6, event}; }
inline Words poll(const void* address, uint32_t reference, uint32_t function = 3) {
  return {8u | function << 28 | 1u << 31,
          low(address),
          high(address),
          reference,
          0xffffffff,
          0x0fff0004};
}
inline Words hdp_flush() { return {8, 0, 0x80000000, 0, 0, 0}; }
inline Words decrement(const void* address) {
  return {10u | 47u << 25, low(address), high(address), 0xffffffff, 0xffffffff, 0, 0, 0};
}
inline Words fill(void* address, uint32_t value, uint32_t dwords) {
  return {11u | 2u << 30, low(address), high(address), value, (dwords - 1) * 4};
}
inline Words write_data(void* address, const Words& data) {
  Words words{2, low(address), high(address), static_cast<uint32_t>(data.size() - 1)};
  words.insert(words.end(), data.begin(), data.end());
  return words;
}
inline Words timestamp(void* address) { return {13u | 2u << 8, low(address), high(address)}; }

class SdmaRing {
 public:
  explicit SdmaRing(DeviceFixture& fixture, uint64_t bytes = 4096, uint32_t engine = 0)
      : fixture_(fixture), bytes_(bytes) {
    ring_ = static_cast<std::byte*>(fixture.allocate(bytes, 4096));
    pointers_ = fixture.allocate_object<uint64_t>(2);
    bell_ = fixture.doorbell(0);
    SdmaQueueConfig config;
    config.ring = DeviceFixture::address(ring_);
    config.ring_bytes = bytes;
    config.read_pointer = DeviceFixture::address(&pointers_[0]);
    config.write_pointer = DeviceFixture::address(&pointers_[1]);
    config.doorbell = bell_.alias;
    config.engine = engine;
    id = fixture.processor->create_sdma_queue(config);
  }
  ~SdmaRing() { fixture_.processor->destroy_queue(id); }

  void write(const Words& words) {
    for (const uint32_t word : words) {
      if (!eventually([&] { return written_ - read() < bytes_; }))
        throw std::runtime_error("the SDMA ring stays full");
      std::memcpy(ring_ + written_ % bytes_, &word, 4);
      written_ += 4;
    }
  }
  void ring() {
    std::atomic_ref<uint64_t>(*bell_.program).store(written_, std::memory_order_release);
  }
  // Rings through the device's own mapping, which is never protected.
  void ring_as_device() {
    std::atomic_ref<uint64_t>(*bell_.alias).store(written_, std::memory_order_release);
  }
  void submit(const Words& words) {
    write(words);
    ring();
  }
  uint64_t read() const {
    return std::atomic_ref<uint64_t>(pointers_[0]).load(std::memory_order_acquire);
  }
  uint64_t written() const { return written_; }
  bool drained() const {
    return eventually([this] { return read() == written_; });
  }
  QueueId id = 0;

 private:
  DeviceFixture& fixture_;
  uint64_t bytes_;
  std::byte* ring_;
  uint64_t* pointers_;
  DeviceFixture::Doorbell bell_{};
  uint64_t written_ = 0;
};

}  // namespace uptempo::vgpu::test
