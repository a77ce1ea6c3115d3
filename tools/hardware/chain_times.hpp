#pragma once

namespace uptempo::hardware {

// One run of a chain, in microseconds: of the host, from the call to the end of its wait, and of
// the device.
struct ChainTimes {
  double host_us = 0, device_us = 0;
};

}  // namespace uptempo::hardware
