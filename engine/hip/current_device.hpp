// CurrentDevice: makes a HIP device the calling thread's current one until its destruction. Private
// to engine/hip.
//
// Thread safety: belongs to the thread that created it.
#pragma once

#include <uptempo/hip/api/hip_api.hpp>
#include <uptempo/hip/status.hpp>

namespace uptempo::hip {

class CurrentDevice {
 public:
  // Throws Error.
  explicit CurrentDevice(int device) {
    check(hipGetDevice(&before_), "hipGetDevice");
    if (before_ == device) return;
    check(hipSetDevice(device), "hipSetDevice");
    changed_ = true;
  }
  ~CurrentDevice() {
    if (changed_) (void)hipSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace uptempo::hip
