#include "membrane.hpp"

namespace uptempo::launch_loop {
namespace {

// Numbers from -32768 to 32767 without a pattern that could cancel out.
float scattered(uint32_t n) {
  n = (n ^ (n >> 16)) * 0x7feb352du;
  n = (n ^ (n >> 15)) * 0x846ca68bu;
  return static_cast<float>(static_cast<int>(n >> 16) - 32768);
}

template <class Each>
void for_each_inside(Each&& each) {
  for (uint32_t row = 1; row + 1 < kWidth; ++row)
    for (uint32_t column = 1; column + 1 < kWidth; ++column)
      each(row, column, row * kWidth + column);
}

}  // namespace

Mounts mounts() {
  Mounts at{};
  for (uint32_t i = 0; i < 32; ++i)
    at.mounts[i] = {.row = static_cast<float>(i / 8 * 2),
                    .column = static_cast<float>(i % 8),
                    .reach = 0.125f,
                    .pull = static_cast<float>(i % 5 + 1) * 0x1p-9f};
  return at;
}

Field actions_of(uint32_t step) {
  Field actions;
  for (uint32_t point = 0; point < kPoints; ++point)
    actions[point] = scattered(step * kPoints + point) * 0x1p-20f;
  return actions;
}

float wind_of(uint32_t step, uint32_t kernel) {
  return scattered(~(step * 1024 + kernel)) * 0x1p-24f;
}

void HostMembrane::actuate(const Field& actions) {
  for_each_inside(
      [&](uint32_t, uint32_t, uint32_t point) { speed_[point] = speed_[point] + actions[point]; });
}

void HostMembrane::wind(float strength) {
  for_each_inside([&](uint32_t row, uint32_t, uint32_t point) {
    speed_[point] = speed_[point] + strength * static_cast<float>(row + 1);
  });
}

void HostMembrane::tension() {
  for_each_inside([&](uint32_t, uint32_t, uint32_t point) {
    const float across = height_[point - 1] + height_[point + 1];
    const float along = height_[point - kWidth] + height_[point + kWidth];
    const float bend = (across + along) - 4.0f * height_[point];
    speed_[point] = kDamping * speed_[point] + kStiffness * bend;
  });
}

void HostMembrane::hold() {
  for_each_inside([&](uint32_t row, uint32_t column, uint32_t point) {
    float hold = 0.0f;
    for (const Mount& mount : mounts_.mounts) {
      const float down = static_cast<float>(row) - mount.row;
      const float right = static_cast<float>(column) - mount.column;
      const float near = 1.0f - (down * down + right * right) * mount.reach;
      hold = hold + (near > 0.0f ? near * mount.pull : 0.0f);
    }
    speed_[point] = speed_[point] - hold * height_[point];
  });
}

void HostMembrane::drift() {
  for_each_inside([&](uint32_t, uint32_t, uint32_t point) {
    height_[point] = height_[point] + kTimeStep * speed_[point];
  });
}

void HostMembrane::observe() {
  for (uint32_t row = 0; row < kWidth; ++row) {
    float heights = 0.0f, energy = 0.0f;
    for (uint32_t point = row * kWidth; point < (row + 1) * kWidth; ++point) {
      heights = heights + height_[point];
      energy = energy + speed_[point] * speed_[point];
    }
    observation_[2 * row] = heights;
    observation_[2 * row + 1] = energy;
  }
}

}  // namespace uptempo::launch_loop
