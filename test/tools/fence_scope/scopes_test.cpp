#include "fence_scope/scopes.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/catch.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;
using aql::Barrier;
using aql::FenceScope;

namespace {

// A device that sorts whenever the barrier bit is set, fences or not.
ScopesReport report_of(uint32_t iterations, bool correct_with_barrier = true) {
  return {.device = "AMD Instinct MI210 (gfx90a)",
          .is_virtual = true,
          .length = 32768,
          .kernels = 120,
          .iterations = iterations,
          .seed = 1,
          .variants = measure(iterations, [&](const aql::HeaderFlags& interior) {
            return sort::Iteration{
                .us = 100, .counts = {}, .correct = interior.barrier == Barrier::on && correct_with_barrier};
          })};
}

}  // namespace

TEST_CASE("all 18 combinations of barrier bit, acquire and release are tried, each once") {
  const auto all = variants();
  REQUIRE(all.size() == 18);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) CHECK_FALSE(all[i] == all[j]);
}

TEST_CASE("the memory model promises a result only with the barrier bit and both scopes at agent or wider") {
  size_t promised = 0;
  for (const aql::HeaderFlags& flags : variants()) promised += guaranteed(flags) ? 1 : 0;
  CHECK(promised == 4);
  CHECK(guaranteed({Barrier::on, FenceScope::agent, FenceScope::agent}));
  CHECK_FALSE(guaranteed({Barrier::off, FenceScope::system, FenceScope::system}));
  CHECK_FALSE(guaranteed({Barrier::on, FenceScope::none, FenceScope::agent}));
  CHECK_FALSE(guaranteed({Barrier::on, FenceScope::agent, FenceScope::none}));
}

TEST_CASE("a wrong result breaks a promise only where one was made") {
  for (const VariantResult& result : report_of(1).variants) CHECK_FALSE(result.broken_promise());
  size_t broken = 0;
  for (const VariantResult& result : report_of(1, false).variants) broken += result.broken_promise() ? 1 : 0;
  CHECK(broken == 4);
}

TEST_CASE("the table tells a promised result from a lucky one, and fits 80 columns") {
  const std::string text = table(report_of(3));
  CHECK(text.find("right, by luck") != std::string::npos);
  CHECK(text.find("wrong, as it may") != std::string::npos);
  CHECK(text.find("WRONG") == std::string::npos);
  CHECK(text.find("virtual GPU time") != std::string::npos);
  CHECK(table(report_of(3, false)).find("WRONG") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

TEST_CASE("the JSON holds one entry for each variant with its flags, times, counts and verdict") {
  const auto out = nlohmann::json::parse(json(report_of(4)).dump());
  CHECK(out["device"] == "AMD Instinct MI210 (gfx90a)");
  CHECK(out["virtual_gpu"] == true);
  REQUIRE(out["variants"].size() == 18);
  const auto& last = out["variants"][17];
  CHECK(last["barrier"] == false);
  CHECK(last["acquire"] == "system");
  CHECK(last["release"] == "system");
  CHECK(last["us_per_iteration"] == 100);
  CHECK(last["correct"] == false);
  CHECK(last["wrong_iterations"] == 4);
  CHECK(last["guaranteed"] == false);
  for (const char* count :
       {"barrier_bits", "doorbells", "system_acquires", "system_releases", "completion_signals"})
    CHECK(last["counts"][count].is_number_unsigned());
}
