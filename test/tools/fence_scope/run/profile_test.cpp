// Tests the model: it reproduces the figures that it was fitted to, and orders fences by their
// cost.
#include "tools/fence_scope/run/profile.hpp"

#include "test/support/catch.hpp"
#include "tools/fence_scope/sequence/workloads.hpp"
#include "tools/support/program.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;

namespace {

Sequence sort_of(uint64_t keys) {
  return make_workload("bitonic-sort", {.bytes_per_kernel = keys * 4});
}

double us(const Profile& profile, const Sequence& sequence, const Headers& headers,
          const HostSide& host = {}) {
  return model_time(profile, sequence, headers, host).us;
}

}  // namespace

TEST_CASE("fiji restates the six published figures, to the microsecond", "[profile]") {
  const double published[] = {1943, 1906, 1869, 1665, 1221, 1137};
  const Sequence sort = sort_of(32768);
  REQUIRE(sort.steps.size() == 120);
  REQUIRE(published_ladder().size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    const PublishedRung& rung = published_ladder()[i];
    CAPTURE(rung.name);
    const ModelTime time = model_time(find_profile("fiji"), sort, rung.headers(120), rung.host);
    CHECK(std::abs(time.us - published[i]) < 0.5);
    CHECK(rung.us == published[i]);
    CHECK(time.restated);
    CHECK(time.profile == "fiji");
  }
}

TEST_CASE("times that the profile was not fitted to are predictions", "[profile]") {
  const PublishedRung& best = published_ladder().back();
  const Sequence sort = sort_of(32768), shorter = sort_of(16384);
  const Profile& fiji = find_profile("fiji");
  CHECK_FALSE(model_time(fiji, shorter, best.headers(shorter.steps.size()), best.host).restated);
  CHECK_FALSE(model_time(fiji, sort, best.headers(120)).restated);
  Headers other = best.headers(120);
  other[60].release = FenceScope::none;
  CHECK_FALSE(model_time(fiji, sort, other, best.host).restated);
  CHECK_FALSE(model_time(find_profile("mi210"), sort, best.headers(120), best.host).restated);
}

TEST_CASE("a wider fence or a barrier bit never costs less, on any device and workload",
          "[profile]") {
  for (const Profile& profile : profiles()) {
    for (const Workload& workload : workloads()) {
      CAPTURE(profile.name, workload.name);
      const Sequence sequence = make_workload(workload.name);
      const auto with = [&](aql::HeaderFlags flags) {
        return us(profile, sequence, Headers(sequence.steps.size(), flags));
      };
      for (const Barrier barrier : {Barrier::off, Barrier::on}) {
        double narrower = 0;
        for (const FenceScope scope : {FenceScope::none, FenceScope::agent, FenceScope::system}) {
          const double acquire = with({barrier, scope, FenceScope::none});
          const double release = with({barrier, FenceScope::none, scope});
          CHECK(with({barrier, scope, scope}) >= std::max(acquire, release));
          CHECK(with({barrier, scope, scope}) >= narrower);
          CHECK(with({Barrier::on, scope, scope}) >= with({Barrier::off, scope, scope}));
          narrower = with({barrier, scope, scope});
        }
      }
    }
  }
}

TEST_CASE("more kernels, and more bytes in each, take longer", "[profile]") {
  for (const Profile& profile : profiles()) {
    const auto chain = [&](uint32_t kernels, uint64_t bytes) {
      const Sequence sequence = make_workload(
          "chain", {.kernels = kernels, .bytes_per_kernel = bytes, .working_set_bytes = 4 * bytes});
      return us(profile, sequence, everywhere(sequence));
    };
    CHECK(chain(20, 4096) > chain(10, 4096));
    CHECK(chain(10, 1 << 20) > chain(10, 4096));
  }
}

TEST_CASE("the costs on the host add up", "[profile]") {
  const Sequence sort = sort_of(1024);
  const Headers headers = everywhere(sort);
  for (const Profile& profile : profiles()) {
    const double alone = us(profile, sort, headers);
    CHECK(us(profile, sort, headers, {.signals_created = 2}) - alone ==
          Approx(2 * profile.signal_creation));
    CHECK(us(profile, sort, headers, {.kernargs_allocated = 1}) - alone ==
          Approx(profile.kernarg_allocation));
    CHECK(us(profile, sort, headers, {.waits_after_each = true}) > alone);
    const HostSide pinned{.copies = 2, .copy_bytes = 1 << 20, .pinned = true};
    HostSide pageable = pinned;
    pageable.pinned = false;
    CHECK(us(profile, sort, headers, pageable) > us(profile, sort, headers, pinned));
    CHECK(us(profile, sort, headers, pinned) > alone);
  }
}

TEST_CASE("independent kernels overlap without barrier bits", "[profile]") {
  const Sequence sequence = make_workload("independent");
  const Headers off(sequence.steps.size(), {Barrier::off, FenceScope::none, FenceScope::none});
  Headers on = off;
  for (aql::HeaderFlags& flags : on) flags.barrier = Barrier::on;
  for (const Profile& profile : profiles())
    CHECK(us(profile, sequence, on) > us(profile, sequence, off));
}

TEST_CASE("an unknown profile is refused, and the error names the known ones", "[profile]") {
  CHECK_THROWS_WITH(find_profile("vega"),
                    "there is no profile 'vega'; use one of fiji, mi210, mi300x");
  CHECK_THROWS_AS(model_time(find_profile("fiji"), sort_of(1024), {}), std::invalid_argument);
}
