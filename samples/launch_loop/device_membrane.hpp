// The membrane on the device. Its kernels are launched in one of four ways; each adds one thing to
// the previous one.
//
// Thread safety: one owner.
#pragma once

#include <uptempo/uptempo.hpp>

#include <array>
#include <cstdint>

#include "fresh_scratch.hpp"
#include "membrane.hpp"

namespace uptempo::launch_loop {

enum class Way : uint8_t {
  // FreshScratch that waits: memory for each launch, blocking copies, a wait for each kernel
  naive,
  async_copies,       // FreshScratch that does not wait: one wait per step
  cached_scratch,     // Launcher that keeps no arguments: memory is reused
  skipped_arguments,  // Launcher: arguments are written only if they change
};
struct WayInfo {
  Way way;
  const char* name;
  bool is_slow;  // runs only some of the steps
};
inline constexpr std::array<WayInfo, 4> kWays{{
    {Way::naive, "naive", true},
    {Way::async_copies, "+ async copies", true},
    {Way::cached_scratch, "+ cached scratch", false},
    {Way::skipped_arguments, "+ skipped arguments", false},
}};

class DeviceMembrane {
 public:
  // Creates a membrane at rest. Throws Error.
  DeviceMembrane(const Agent& gpu, const Program& program, Way way);

  void actuate(const Field& actions) { launch(actuate_, speed_.data(), in(actions), kWidth); }
  void wind(float strength) { launch(wind_, speed_.data(), kWidth, strength); }
  void tension() { launch(tension_, speed_.data(), height_.data(), kWidth, kStiffness, kDamping); }
  void hold() { launch(hold_, speed_.data(), height_.data(), kWidth, mounts_); }
  void drift() { launch(drift_, height_.data(), speed_.data(), kWidth, kTimeStep); }
  // Blocks until observation() is valid.
  void observe() {
    launch(observe_, out(observation_), height_.data(), speed_.data(), kWidth);
    if (way_ == Way::async_copies) fresh_.finish();
  }

  const Observation& observation() const noexcept { return observation_; }
  // Copy the field from the device. Throw Error.
  Field height() { return download(height_); }
  Field speed() { return download(speed_); }

 private:
  template <class... Args, class... Given>
  void launch(Launcher<Args...>& launcher, const Given&... given) {
    const Grid grid = Grid{kPoints}.by(kPoints);
    if (way_ == Way::naive || way_ == Way::async_copies)
      return fresh_.launch(launcher.kernel(), grid, given...);
    launcher.launch(stream_, grid, given...);
  }
  Field download(const DeviceBuffer<float>& field);

  const Way way_;
  Copier copier_;
  FreshScratch fresh_;
  Streams streams_;
  Stream stream_;
  DeviceBuffer<float> height_, speed_;
  Observation observation_{};
  const Mounts mounts_ = launch_loop::mounts();
  Launcher<float*, const float*, uint32_t> actuate_;
  Launcher<float*, uint32_t, float> wind_;
  Launcher<float*, const float*, uint32_t, float, float> tension_;
  Launcher<float*, const float*, uint32_t, Mounts> hold_;
  Launcher<float*, const float*, uint32_t, float> drift_;
  Launcher<float*, const float*, const float*, uint32_t> observe_;
};

}  // namespace uptempo::launch_loop
