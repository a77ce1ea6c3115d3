// Parts of a test case in processes of their own, for work that ends the use of HSA in its process:
// ROCr reports one GPU memory fault until it is shut down, and ROCr 6.1 never is (runtime.hpp).
//
//   TEST_CASE_METHOD(OnDevice, "a fault names the address") {
//     in_own_process("", [&] { ... });
//   }
#pragma once

#include <cstdlib>
#include <string>

#include "test/support/catch.hpp"
#include "tools/support/command.hpp"

namespace uptempo::test {

// Starts this program again with the current test case alone. There `body` runs, and no other part
// of the case. Fails if an assertion fails there. The parts of a case have different names.
template <class Body>
void in_own_process(const std::string& part, Body&& body) {
  constexpr const char* kPart = "UPTEMPO_TEST_PART";
  if (const char* const chosen = std::getenv(kPart)) {
    if (chosen == part) body();
    return;
  }
  const std::string name = Catch::getResultCapture().getCurrentTestName();
  const auto result = run_command({"/proc/self/exe", '"' + name + '"'},
                                  {.environment = {std::string(kPart) + '=' + part}});
  CAPTURE(part, result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("All tests passed") != std::string::npos);
}

}  // namespace uptempo::test
