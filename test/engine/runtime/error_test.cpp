#include <uptempo/runtime/error.hpp>

#include <string>

#include "test/support/catch.hpp"

using uptempo::Error;

TEST_CASE("an error's sentence has no control characters of names, and its facts have all bytes") {
  const Error error({.status = HSA_STATUS_ERROR_INVALID_SYMBOL_NAME,
                     .call = "Program::kernel",
                     .asked = "a\x1b[2J\xff",
                     .found = "nothing",
                     .remedy = "rename it"});
  CHECK(std::string(error.what()) ==
        "Program::kernel: a\\x1b[2J\\xff: nothing; rename it "
        "(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME)");
  CHECK(error.asked() == "a\x1b[2J\xff");
}
