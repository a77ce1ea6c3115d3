// A simulation's time step, recorded once and replayed 1,000 times; its step width changes
// half-way.
//
// Explicit Euler of x' = v, v' = -x, a vector of oscillators at once.
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <cmath>
#include <cstdio>

using namespace uptempo;

namespace {

constexpr uint32_t kOscillators = 1024;
constexpr int kSteps = 1000;
constexpr float kSlow = 1.0f / 1024, kFast = 1.0f / 256;

float width_of(int step) { return step < kSteps / 2 ? kSlow : kFast; }

bool follows_the_host(float* x, float* v) {
  float host_x = 1, host_v = 0;
  for (int step = 0; step < kSteps; ++step) {
    host_v += -width_of(step) * host_x;
    host_x += width_of(step) * host_v;
  }
  for (uint32_t i = 0; i < kOscillators; ++i)
    if (std::abs(x[i] - host_x) > 1e-3f || std::abs(v[i] - host_v) > 1e-3f) return false;
  return true;
}

bool simulate(const Agent& gpu) {
  Program program{gpu, builtin_kernels::workgroups_of_256()};
  auto saxpy = program.kernel<float*, const float*, float, uint32_t>("saxpy");  // y += a x
  Queue queue{gpu};
  PinnedBuffer<float> x{gpu, kOscillators}, v{gpu, kOscillators};
  for (uint32_t i = 0; i < kOscillators; ++i) x[i] = 1, v[i] = 0;

  Recording step{queue};
  Node kick =
      step.dispatch(saxpy, Grid{kOscillators}.by(256), v.data(), x.data(), -kSlow, kOscillators);
  Node drift =
      step.dispatch(saxpy, Grid{kOscillators}.by(256), x.data(), v.data(), kSlow, kOscillators);
  for (int i = 0; i < kSteps; ++i) {
    if (i == kSteps / 2) {  // replays in flight keep their width
      step.set<2>(kick, -kFast);
      step.set<2>(drift, kFast);
    }
    step.replay(queue);
  }
  queue.wait();
  return follows_the_host(x.data(), v.data());
}

}  // namespace

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  const bool right = simulate(gpu);
  std::printf("%s: %d replays of a step of 2 dispatches, %s the host's result\n",
              gpu.name().c_str(), kSteps, right ? "equal to" : "different from");
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "replay: %s\n", error.what());
  return 1;
}
