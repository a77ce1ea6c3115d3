#include "tools/support/software.hpp"

#include <sys/utsname.h>

#include <cstdlib>

#include "engine/runtime/runtime.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;

TEST_CASE("software: the runtime's version is that of its library, the kernel's that of uname") {
  const Runtime runtime;
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
  setenv("UPTEMPO_TEST_A", "1=2", 1);
  setenv("UPTEMPO_TEST_B", "", 1);
  setenv("UPTEMPO_OTHER_C", "x", 1);
  setenv("NOT_UPTEMPO_TEST_D", "x", 1);
  const auto found = support::environment_of({"UPTEMPO_TEST_", "UPTEMPO_OTHER_"});
  CHECK(found == std::map<std::string, std::string>{
                     {"UPTEMPO_TEST_A", "1=2"}, {"UPTEMPO_TEST_B", ""}, {"UPTEMPO_OTHER_C", "x"}});
  CHECK(support::environment_of({}).empty());
}
