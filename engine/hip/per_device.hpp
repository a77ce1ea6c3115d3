// PerDevice: one object of the library per HIP device. Private to engine/hip.
//
// Thread safety: any thread.
// Lifetime: the objects are created at first use and never destroyed, because work in flight may
// use them until the process ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace uptempo::hip {

inline constexpr int kMostDevices = 64;

// Throws Error for a device of kMostDevices or beyond.
void check_device_number(int device);

template <class T>
class PerDevice {
 public:
  // `make(device)` returns a std::unique_ptr<T>.
  template <class Make>
  T& of(int device, Make&& make) {
    check_device_number(device);
    std::atomic<T*>& place = objects_[static_cast<size_t>(device)];
    if (T* const object = place.load(std::memory_order_acquire)) return *object;
    std::unique_ptr<T> made = make(device);
    T* found = nullptr;
    // Another thread may have been faster.
    if (place.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
      return *made.release();
    return *found;
  }

 private:
  std::array<std::atomic<T*>, kMostDevices> objects_{};
};

}  // namespace uptempo::hip
