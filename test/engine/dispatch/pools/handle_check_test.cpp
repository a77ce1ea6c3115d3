// Handles used after their objects were recycled. Compiled with handle checks in every build.
#include <csignal>
#include <vector>

#include "engine/runtime/detail/handle_check.hpp"
#include "engine/runtime/error.hpp"
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/hsa_double.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using namespace uptempo::test;

static_assert(detail::kHandleChecks);

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;

struct alignas(64) Line {
  std::byte bytes[64];
};

}  // namespace

TEST_CASE("a CommandRef is valid until its batch changes, and reports its use afterwards",
          "[handles]") {
  DoubleDevice device;
  const auto kernel = number_kernel();
  uint32_t data = 0;
  BatchSubmitter batch(device.queue(), {});
  CommandRef ref = batch.dispatch(kernel, Grid{1}, 1u);
  ref.reads(&data, 1).writes(&data, 1).without_barrier();
  ref.observed_by(Observer::system);
  SECTION("by a further dispatch") { batch.dispatch(kernel, Grid{1}, 2u); }
  SECTION("by a raw packet") { batch.raw(aql::to_packet(aql::BarrierAnd{})); }
  SECTION("by its submission") { batch.submit(); }
  SECTION("by clearing it") { batch.clear(); }
  const char* const expected = "its batch or recording has been used";
  CHECK(contains(error_of<Error>([&] { ref.reads(&data, 1); }), expected));
  CHECK(contains(error_of<Error>([&] { ref.touches_nothing(); }), expected));
  CHECK(contains(error_of<Error>([&] { ref.observed_by(Observer::agent); }), expected));
  CHECK(contains(error_of<Error>([&] { ref.fences(aql::FenceScope::none, aql::FenceScope::none); }),
                 expected));
  CHECK(contains(error_of<Error>([&] { ref.without_barrier(); }), expected));
}

TEST_CASE("the kernarg block of a finished dispatch is overwritten when the slab is free",
          "[handles]") {
  std::vector<Line> lines(2);
  KernargPool pool({lines.front().bytes, sizeof(Line) * 2}, sizeof(Line));
  KernargPool::Cursor cursor;
  std::byte* const block = pool.take(cursor, 64);
  *block = std::byte{1};
  const KernargPool::Slabs run = pool.publish(cursor);
  pool.drop(cursor);
  CHECK(*block == std::byte{1});
  pool.retire(run);
  CHECK(*block == std::byte{0xdb});
}

// The next test case runs these in processes of their own.
TEST_CASE("child: slabs twice", "[.child]") {
  std::vector<Line> lines(2);
  KernargPool pool({lines.front().bytes, sizeof(Line) * 2}, sizeof(Line));
  KernargPool::Cursor cursor;
  (void)pool.take(cursor, 64);
  const KernargPool::Slabs run = pool.publish(cursor);
  pool.drop(cursor);
  pool.retire(run);
  (void)pool.take(cursor, 64);  // the same slab under another owner
  pool.retire(run);
}
TEST_CASE("child: a signal twice", "[.child]") {
  SignalDouble one(1), two(1);
  const hsa_signal_t signals[] = {one.handle(), two.handle()};
  SignalPool pool(signals);
  const hsa_signal_t taken = pool.take(SignalKind::interrupt);
  (void)pool.take(SignalKind::interrupt);
  pool.give_back(taken);
  pool.give_back(taken);
}

TEST_CASE("an object that is returned twice ends the program with a message", "[handles]") {
  const auto sentence_of = [](const char* child) {
    const auto result = run_command({"/proc/self/exe", child});
    CHECK(result.exit_code == 128 + SIGABRT);
    return result.err;
  };
  CHECK(contains(sentence_of("child: slabs twice"),
                 "uptempo: kernarg slabs were given back twice: they have a new owner by now"));
  CHECK(contains(sentence_of("child: a signal twice"),
                 "uptempo: a pooled signal was given back twice"));
}
