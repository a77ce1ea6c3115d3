// The simulation on the host. The device is compared with it, so these tests check that it is
// meaningful.
#include "samples/launch_loop/membrane.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "test/support/catch.hpp"

using namespace uptempo::launch_loop;

namespace {

HostMembrane after(uint32_t steps, uint32_t kernels = 60) {
  HostMembrane membrane;
  for (uint32_t step = 0; step < steps; ++step) {
    drive(membrane, kernels, step);
    membrane.observe();
  }
  return membrane;
}

// Records the kernels of a step.
struct Names {
  std::string all;
  std::set<float> winds;
  void actuate(const Field&) { all += 'a'; }
  void wind(float strength) {
    all += 'w';
    winds.insert(strength);
  }
  void tension() { all += 't'; }
  void hold() { all += 'h'; }
  void drift() { all += 'd'; }
};

// A step without one of its kernels.
struct Without : HostMembrane {
  explicit Without(uint32_t kernel) : left(kernel) {}
  void actuate(const Field& actions) {
    if (left-- != 0) HostMembrane::actuate(actions);
  }
  void wind(float strength) {
    if (left-- != 0) HostMembrane::wind(strength);
  }
  void tension() {
    if (left-- != 0) HostMembrane::tension();
  }
  void hold() {
    if (left-- != 0) HostMembrane::hold();
  }
  void drift() {
    if (left-- != 0) HostMembrane::drift();
  }
  uint32_t left;
};

}  // namespace

TEST_CASE("a step has the documented kernels, and winds of different strengths") {
  Names names;
  drive(names, 60, 5);
  CHECK(names.all.size() + 1 == 60);
  CHECK(names.all.starts_with("awtdhtdwtdhtdw"));
  CHECK(std::ranges::count(names.all, 'w') == 10);
  CHECK(std::ranges::count(names.all, 'h') == 10);
  CHECK(names.winds.size() == 10);
  Names fewest;
  drive(fewest, kLeastKernels, 0);
  CHECK(fewest.all == "a");
}

TEST_CASE("the membrane keeps moving, within bounds, and its edge rests") {
  for (const uint32_t steps : {1u, 100u, 2000u}) {
    const HostMembrane membrane = after(steps);
    for (uint32_t point = 0; point < kPoints; ++point) {
      const bool edge = point / kWidth % (kWidth - 1) == 0 || point % kWidth % (kWidth - 1) == 0;
      CAPTURE(steps, point);
      CHECK((membrane.height()[point] == 0) == edge);
      CHECK((membrane.speed()[point] == 0) == edge);
      CHECK(std::isnormal(membrane.height()[point]) != edge);
      CHECK(std::abs(membrane.height()[point]) < 100);
    }
    for (uint32_t row = 1; row + 1 < kWidth; ++row) CHECK(membrane.observation()[2 * row + 1] > 0);
  }
  CHECK(after(2000).height() != after(1999).height());
}

TEST_CASE("a kernel that is missing from a step changes the state") {
  const HostMembrane before = after(20);
  HostMembrane whole = before;
  drive(whole, 60, 20);
  for (uint32_t kernel = 0; kernel < 59; ++kernel) {
    Without without(kernel);
    static_cast<HostMembrane&>(without) = before;
    drive(without, 60, 20);
    CAPTURE(kernel);
    CHECK((without.height() != whole.height() || without.speed() != whole.speed()));
  }
}
