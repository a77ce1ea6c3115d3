#include "loop.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <uptempo/kernels/membrane.hpp>

namespace uptempo::launch_loop {
namespace {

constexpr uint32_t kStepsOfATurn = 100;

using Clock = std::chrono::steady_clock;

double us_of(Clock::duration spent) {
  return std::chrono::duration<double, std::micro>(spent).count();
}

uint32_t rounds_of(const Loop& loop) {
  return (loop.steps - kFirstSteps + kStepsOfATurn - 1) / kStepsOfATurn;
}
uint32_t steps_of(const WayInfo& way, const Loop& loop) {
  if (!way.is_slow) return loop.steps;
  return kFirstSteps +
         std::max(rounds_of(loop), (loop.steps - kFirstSteps) / 20);  // at least one in each turn
}

// The results that every way must reach.
struct Reference {
  explicit Reference(const Loop& loop) {
    observations.reserve(loop.steps);
    HostMembrane membrane;
    for (uint32_t step = 0; step < loop.steps; ++step) {
      drive(membrane, loop.kernels, step);
      membrane.observe();
      observations.push_back(membrane.observation());
      for (const WayInfo& way : kWays)
        if (step + 1 == steps_of(way, loop)) after.insert_or_assign(step + 1, membrane);
    }
  }
  std::vector<Observation> observations;
  std::map<uint32_t, HostMembrane> after;  // by number of steps at which some way ends
};

// Not ==, for which 0 and -0 are equal, and a NaN differs from itself.
template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

class Turns {
 public:
  Turns(const Agent& gpu, const Program& program, const Loop& loop, const Reference& reference,
        const WayInfo& way)
      : kernels_(loop.kernels),
        steps_(steps_of(way, loop)),
        turns_left_(rounds_of(loop)),
        reference_(reference),
        membrane_(gpu, program, way.way),
        row_{.way = way.way} {
    take(kFirstSteps);
  }

  void take_turn() {
    const uint32_t steps = (steps_ - row_.steps) / turns_left_--;
    const Counters counters = Counters::now();
    const Clock::time_point begin = Clock::now();
    const Clock::duration handing_over = take(steps);
    row_.us_per_step.push_back(us_of(Clock::now() - begin) / steps);
    row_.host_us_per_step.push_back(us_of(handing_over) / steps);
    row_.counters += Counters::now() - counters;
    row_.counted_steps += steps;
  }

  Row finish() {
    const HostMembrane& expected = reference_.after.at(row_.steps);
    row_.right_state = same_bits(membrane_.height(), expected.height()) &&
                       same_bits(membrane_.speed(), expected.speed());
    return row_;
  }

 private:
  // Runs `steps` steps. Returns the time spent submitting all kernels but the last of each step.
  Clock::duration take(uint32_t steps) {
    Clock::duration handing_over{};
    for (const uint32_t end = row_.steps + steps; row_.steps < end; ++row_.steps) {
      const Clock::time_point begin = Clock::now();
      drive(membrane_, kernels_, row_.steps);
      handing_over += Clock::now() - begin;
      membrane_.observe();
      // A simulator reads its observation, so the check is part of the step.
      if (!same_bits(membrane_.observation(), reference_.observations[row_.steps]))
        ++row_.wrong_observations;
    }
    return handing_over;
  }

  const uint32_t kernels_, steps_;
  uint32_t turns_left_;
  const Reference& reference_;
  DeviceMembrane membrane_;
  Row row_;
};

}  // namespace

std::vector<Row> run(const Agent& gpu, const Loop& loop) {
  const Program program(gpu, kernels::membrane());
  const Reference reference(loop);
  std::deque<Turns> turns;
  for (const WayInfo& info : kWays) turns.emplace_back(gpu, program, loop, reference, info);
  for (uint32_t round = 0; round < rounds_of(loop); ++round)
    for (Turns& turn : turns) turn.take_turn();
  std::vector<Row> rows;
  for (Turns& turn : turns) rows.push_back(turn.finish());
  return rows;
}

}  // namespace uptempo::launch_loop
