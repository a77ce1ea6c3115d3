// When the watchdog reports, with times that the test makes.
#include "kfd/report/hang_watch.hpp"

#include "test/support/catch.hpp"

using namespace std::chrono_literals;

namespace uptempo::vgpu::kfd {
namespace {

class Looks {
 public:
  bool at(std::chrono::milliseconds time, uint64_t completed, bool has_work) {
    return watch_.look(HangWatch::Time(1h + time), completed, [&] {
      ++questions;
      return has_work;
    });
  }
  int questions = 0;

 private:
  HangWatch watch_{1s};
};

TEST_CASE("the watchdog reports a hang once, when its time is over", "[watchdog]") {
  Looks look;
  CHECK_FALSE(look.at(0ms, 7, true));
  CHECK_FALSE(look.at(999ms, 7, true));
  CHECK(look.at(1000ms, 7, true));
  CHECK_FALSE(look.at(1100ms, 7, true));
  CHECK_FALSE(look.at(90'000ms, 7, true));
}

TEST_CASE("the watchdog reports again after something has completed", "[watchdog]") {
  Looks look;
  look.at(0ms, 7, true);
  CHECK(look.at(1500ms, 7, true));
  CHECK_FALSE(look.at(1600ms, 8, true));
  CHECK_FALSE(look.at(2599ms, 8, true));
  CHECK(look.at(2600ms, 8, true));
}

TEST_CASE("the watchdog reports no idle GPU, and counts from the last idle look", "[watchdog]") {
  Looks look;
  for (int second = 0; second < 10; ++second) CHECK_FALSE(look.at(second * 1000ms, 7, false));
  CHECK_FALSE(look.at(9500ms, 7, true));
  CHECK_FALSE(look.at(9999ms, 7, true));
  CHECK(look.at(10'000ms, 7, true));
  // Idle, then a hang of other work, with nothing completed between them (a cancelled queue).
  CHECK_FALSE(look.at(10'100ms, 7, false));
  CHECK_FALSE(look.at(11'000ms, 7, true));
  CHECK(look.at(11'100ms, 7, true));
}

TEST_CASE("the watchdog asks for work only while nothing completes", "[watchdog]") {
  Looks look;
  for (uint64_t completed = 0; completed < 5; ++completed)
    look.at(completed * 5000ms, completed, true);
  CHECK(look.questions == 0);
  look.at(20'100ms, 4, true);
  CHECK(look.questions == 1);
}

}  // namespace
}  // namespace uptempo::vgpu::kfd
