// The role of a queue's reader among threads.
#include "tools/lint/reader_role.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "test/support/catch.hpp"

namespace {

using uptempo::lint::ReaderRole;
using Taken = ReaderRole::Taken;

}  // namespace

TEST_CASE("the first thread owns the role until another one wants it") {
  ReaderRole role;
  REQUIRE(role.is_owned());  // the kernel has membarrier()
  CHECK(role.take_owned() == Taken::no);
  CHECK(role.take() == Taken::by_owner);
  CHECK(role.take() == Taken::no);  // in a signal handler
  std::thread([&] { CHECK(role.take() == Taken::no); }).join();
  CHECK(!role.is_owned());
  role.give_back(Taken::by_owner);
  CHECK(role.take_owned() == Taken::no);
  CHECK(role.take() == Taken::shared);
  std::thread([&] { CHECK(role.take() == Taken::no); }).join();
  role.give_back(Taken::shared);
  std::thread([&] { CHECK(role.take() == Taken::shared); }).join();
}

TEST_CASE("one thread at a time has the role") {
  const bool biased = GENERATE(true, false);
  for (int round = 0; round < 300; ++round) {
    ReaderRole role(biased);
    CHECK(role.is_owned() == biased);
    int inside = 0;  // plain: only the role protects it
    uint64_t counted = 0;
    std::atomic<uint64_t> taken{0}, overlaps{0};
    const auto use = [&](int times) {
      for (int i = 0; i < times; ++i) {
        const Taken got = role.take();
        if (got == Taken::no) continue;
        if (++inside != 1) ++overlaps;
        ++counted;
        --inside;
        role.give_back(got);
        ++taken;
      }
    };
    use(1);  // this thread is the owner
    std::vector<std::thread> others;
    for (int i = 0; i < 2; ++i) others.emplace_back(use, 100);
    use(1000);
    for (std::thread& other : others) other.join();
    REQUIRE(overlaps == 0);
    REQUIRE(counted == taken);
    REQUIRE(role.take() != Taken::no);  // it was given back
  }
}
