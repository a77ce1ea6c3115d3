// sort_vs_pocl as a user runs it. PoCL is a test dependency (Debian: pocl-opencl-icd).
#include <nlohmann/json.hpp>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"
#include "tools/support/device.hpp"

using nlohmann::json;
using uptempo::test::run_command;

TEST_CASE("both sides sort, in interleaved pairs, and the ratio has its interval") {
  const auto result =
      run_command({SORT_VS_POCL, "--length", "1024", "--pairs", "20", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json out = json::parse(result.out);
  CHECK(out["verified"] == true);
  CHECK(out["virtual_gpu"] == true);
  CHECK(out["pairs"] == 20);
  CHECK(out["kernels"] == 55);
  CHECK(out["peer"].get<std::string>().starts_with("PoCL "));
  for (const char* figure : {"uptempo_us", "pocl_us", "ratio"}) {
    CHECK(out[figure]["median"].get<double>() > 0);
    CHECK(out[figure]["low"] <= out[figure]["median"]);
    CHECK(out[figure]["high"] >= out[figure]["median"]);
  }
}

TEST_CASE("the curve compares on one core first, and on all cores last") {
  const auto result =
      run_command({SORT_VS_POCL, "--curve", "--length", "256", "--pairs", "20", "--json", "-"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json curve = json::parse(result.out)["curve"];
  REQUIRE(!curve.empty());
  CHECK(curve.front()["cores"] == 1);
  CHECK(curve.back()["cores"] == uptempo::support::usable_cores());
  for (const json& point : curve) {
    CHECK(point["verified"] == true);
    CHECK(point["pairs"] == 20);
  }
}

TEST_CASE("a ratio above the limit ends with 1") {
  const auto result =
      run_command({SORT_VS_POCL, "--length", "256", "--pairs", "20", "--max-ratio", "0.0001"});
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("above --max-ratio") != std::string::npos);
}

TEST_CASE("without PoCL it ends with 77 and one sentence that names the package to install") {
  const auto result =
      run_command({"/usr/bin/env", "OCL_ICD_VENDORS=/no/such/folder", SORT_VS_POCL});
  CHECK(result.exit_code == 77);
  CHECK(result.err.find("pocl-opencl-icd") != std::string::npos);
  CHECK(result.err.find('\n') == result.err.size() - 1);
}

TEST_CASE("too few pairs for an interval, and lengths that are no power of two, are refused") {
  CHECK(run_command({SORT_VS_POCL, "--pairs", "19"}).exit_code == 2);
  CHECK(run_command({SORT_VS_POCL, "--length", "1000"}).exit_code == 2);
}
