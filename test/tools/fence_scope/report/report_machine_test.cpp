#include "tools/fence_scope/command_line.hpp"

#include "test/support/catch.hpp"
#include "test/support/environment.hpp"

using namespace uptempo;
using namespace uptempo::fence_scope;

TEST_CASE("a report names its device, the versions, and the runtime's variables") {
  const test::Environment environment{
      {"HSA_TEST_OF_REPORTS", "1"}, {"ROCR_TEST_OF_REPORTS", "2"}, {"OTHER_TEST_OF_REPORTS", "3"}};
  char name[] = "test", *argv[] = {name, nullptr};
  const support::Device device = support::open_device("virtual", 1, argv);
  Report report;
  describe_machine(report, device);
  CHECK(report.device == device.name());
  CHECK(report.target.starts_with("gfx"));
  CHECK(report.time_kind == TimeKind::virtual_gpu);
  CHECK(report.versions.at("kernel driver") == "uptempo-vgpu");
  CHECK(report.versions.at("rocr").starts_with("libhsa-runtime64.so."));
  for (const auto& [part, version] : report.versions) CHECK(!version.empty());
  CHECK(report.environment.at("HSA_TEST_OF_REPORTS") == "1");
  CHECK(report.environment.at("ROCR_TEST_OF_REPORTS") == "2");
  CHECK(!report.environment.contains("OTHER_TEST_OF_REPORTS"));
}
