// The membrane on the device, its kernels launched in one of four ways, each of which adds one thing to the one before.
//
// Thread safety: one owner.
#pragma once

#include <engine/uptempo.hpp>

#include <array>
#include <cstdint>

#include "samples/launch_loop/fresh_scratch.hpp"
#include "samples/launch_loop/membrane.hpp"

namespace uptempo::launch_loop {

enum class Way : uint8_t {
  naive,         // FreshScratch that waits: memory for each launch, copies that block, a wait for each kernel
  async_copies,  // FreshScratch that does not: a wait for each step
  cached_scratch,     // Launcher, skip_arguments(false): memory is kept
  skipped_arguments,  // Launcher: arguments are written when they change
};
struct WayInfo {
  Way way;
  const char* name;
  bool is_slow;  // takes some of the steps only
};
inline constexpr std::array<WayInfo, 4> ways{{
    {Way::naive, "naive", true},
    {Way::async_copies, "+ async copies", true},
    {Way::cached_scratch, "+ cached scratch", false},
    {Way::skipped_arguments, "+ skipped arguments", false},
}};

class DeviceMembrane {
 public:
  // At rest. Throws Error.
  DeviceMembrane(const Agent& gpu, const Program& program, Way way);

  void actuate(const Field& actions) { launch(actuate_, speed_.data(), in(actions), width); }
  void wind(float strength) { launch(wind_, speed_.data(), width, strength); }
  void tension() { launch(tension_, speed_.data(), height_.data(), width, stiffness, damping); }
  void hold() { launch(hold_, speed_.data(), height_.data(), width, mounts_); }
  void drift() { launch(drift_, height_.data(), speed_.data(), width, time_step); }
  // observation() is there when it returns.
  void observe() {
    launch(observe_, out(observation_), height_.data(), speed_.data(), width);
    if (way_ == Way::async_copies) fresh_.finish();
  }

  const Observation& observation() const noexcept { return observation_; }
  // Copied from the device. Throw Error.
  Field height() { return download(height_); }
  Field speed() { return download(speed_); }

 private:
  template <class... Args, class... Given>
  void launch(Launcher<Args...>& launcher, const Given&... given) {
    const Grid grid = Grid{points}.by(points);
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
