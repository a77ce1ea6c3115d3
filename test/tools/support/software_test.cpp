#include "tools/support/software.hpp"

#include <sys/utsname.h>

#include <cstdlib>

#include <uptempo/runtime/runtime.hpp>
#include "test/support/catch.hpp"
#include "test/support/environment.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

TEST_CASE_METHOD(
    test::OnDevice,
    "software: the runtime's version is that of its library, the kernel's that of uname") {
  const support::Software software = support::describe_software();
  uint16_t major = 0;
  REQUIRE(hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major) == HSA_STATUS_SUCCESS);
  CHECK(software.hsa_version.starts_with(std::to_string(major) + '.'));
  CHECK(software.rocr_library.starts_with("libhsa-runtime64.so."));
  utsname system{};
  REQUIRE(uname(&system) == 0);
  CHECK(software.kernel == system.release);
  CHECK(support::operating_system() ==
        std::string(system.sysname) + ' ' + system.release + ' ' + system.machine);
}

TEST_CASE(
    "software: environment variables with one of the prefixes are found, whatever their value") {
  const test::Environment environment{{"UPTEMPO_TEST_A", "1=2"},
                                      {"UPTEMPO_TEST_B", ""},
                                      {"UPTEMPO_OTHER_C", "x"},
                                      {"NOT_UPTEMPO_TEST_D", "x"}};
  const auto found = support::environment_of({"UPTEMPO_TEST_", "UPTEMPO_OTHER_"});
  CHECK(found == std::map<std::string, std::string>{
                     {"UPTEMPO_TEST_A", "1=2"}, {"UPTEMPO_TEST_B", ""}, {"UPTEMPO_OTHER_C", "x"}});
  CHECK(support::environment_of({}).empty());
}
