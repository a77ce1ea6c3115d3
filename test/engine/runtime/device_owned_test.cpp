// Handles that reach a session while it ends, or after its end.
#include <uptempo/runtime/owned.hpp>

#include <hsa/hsa.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/runtime.hpp>
#include <uptempo/runtime/session.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

// The handles released so far, in order.
std::vector<uint64_t> released;

void release(uint64_t handle) noexcept { released.push_back(handle); }

// The session whose end adopts one more handle, and what adopting it threw.
std::shared_ptr<Session> ending;
std::string refusal;

void adopt_another(uint64_t handle) noexcept {
  released.push_back(handle);
  refusal = error_of([] { const Owned late(ending, Owned::Kind::memory, 8, &release); });
}

// Keeps HSA initialised, as another library in the process does.
struct OtherUser {
  OtherUser() { REQUIRE(hsa_init() == HSA_STATUS_SUCCESS); }
  ~OtherUser() { CHECK(hsa_shut_down() == HSA_STATUS_SUCCESS); }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;
};

}  // namespace

TEST_CASE("a handle adopted after the end of its session is refused and released once",
          "[session]") {
  std::optional<OtherUser> other;
  if (GENERATE(true, false)) other.emplace();
  released.clear();
  std::optional<Runtime> runtime(std::in_place);
  const std::shared_ptr<Session> session = Session::current();
  const Owned early(session, Owned::Kind::memory, 1, &release);
  runtime.reset();
  CHECK(released == std::vector<uint64_t>{1});
  const std::string error =
      error_of([&] { const Owned late(session, Owned::Kind::memory, 7, &release); });
  CAPTURE(error);
  CHECK(contains(error, "the Runtime was destroyed"));
  CHECK(released == std::vector<uint64_t>{1, 7});
  // Neither does a later session release it.
  { const Runtime again; }
  CHECK(released == std::vector<uint64_t>{1, 7});
}

TEST_CASE("a handle adopted while its session ends is refused and released once", "[session]") {
  released.clear();
  std::optional<Runtime> runtime(std::in_place);
  ending = Session::current();
  const Owned last(ending, Owned::Kind::memory, 1, &adopt_another);
  runtime.reset();
  ending.reset();
  CHECK(contains(refusal, "the Runtime was destroyed"));
  CHECK(released == std::vector<uint64_t>{1, 8});
}

TEST_CASE("a handle adopted without a Runtime is refused and released", "[session]") {
  released.clear();
  CHECK(contains(error_of([] { const Owned none(Owned::Kind::memory, 9, &release); }),
                 "no Runtime exists"));
  CHECK(released == std::vector<uint64_t>{9});
}

TEST_CASE("a handle of an initialisation of HSA that is over is not released in the next one",
          "[session]") {
  released.clear();
  std::optional<Runtime> runtime(std::in_place);
  const std::shared_ptr<Session> session = Session::current();
  runtime.reset();
  uint16_t major = 0;
  const bool remains = hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major) ==
                       HSA_STATUS_SUCCESS;  // ROCr 6.1 stays initialised
  const OtherUser next;
  CHECK_THROWS_AS(Owned(session, Owned::Kind::memory, 7, &release), Error);
  CHECK(released.size() == (remains ? 1 : 0));
}
