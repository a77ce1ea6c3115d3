#include "tools/bench/sort_vs_pocl/comparison.hpp"

#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"

using namespace uptempo::bench;
using uptempo::test::Approx;

TEST_CASE("both sides run once in each pair, and alternate in going first") {
  std::string order;
  compare(
      4,
      [&] {
        order += 'u';
        return 1.0;
      },
      [&] {
        order += 'p';
        return 1.0;
      });
  CHECK(order == "uppuuppu");
}

TEST_CASE("the ratio is the median of the pairs' ratios, which one disturbed pair does not move") {
  Comparison comparison{.ours_us = {10, 20, 30, 5000, 40}, .peer_us = {10, 10, 10, 10, 20}};
  CHECK(comparison.ratio().median == 2);
  CHECK(comparison.ours().median == 30);
  CHECK(comparison.peer().median == 10);
}

TEST_CASE("the report names both devices, and gives the comparison as JSON and in words") {
  std::vector<double> ours(20, 300.0), peer(20, 200.0);
  const SortComparisonReport report{.device = "AMD Instinct MI210 (gfx90a)",
                                    .is_virtual = true,
                                    .peer_device = "pthread-x",
                                    .peer_version = "3.1",
                                    .length = 32768,
                                    .kernels = 120,
                                    .cores = 2,
                                    .comparison = {ours, peer}};
  const std::string text = table(report);
  CHECK(text.find("pthread-x") != std::string::npos);
  CHECK(text.find("Uptempo / PoCL: 1.50 (95 % interval 1.50 .. 1.50)") != std::string::npos);
  const auto out = nlohmann::json::parse(json(report).dump());
  CHECK(out["pairs"] == 20);
  CHECK(out["ratio"]["median"].get<double>() == Approx(1.5));
  CHECK(out["uptempo_us"]["median"] == 300);
  CHECK(out["pocl_us"]["median"] == 200);
  CHECK(out["virtual_gpu"] == true);
}
