#include <uptempo/runtime/error.hpp>

#include <hsa/hsa_ext_amd.h>

#include <array>
#include <string>
#include <utility>

#include "test/support/catch.hpp"

using namespace uptempo;

TEST_CASE("an error's sentence has no control characters of names, and its facts have all bytes") {
  const Error error({.code = ErrorCode::program,
                     .status = HSA_STATUS_ERROR_INVALID_SYMBOL_NAME,
                     .call = "Program::kernel",
                     .asked = "a\x1b[2J\xff",
                     .found = "nothing",
                     .remedy = "rename it"});
  CHECK(std::string(error.what()) ==
        "Program::kernel: a\\x1b[2J\\xff: nothing; rename it "
        "(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME)");
  CHECK(error.asked() == "a\x1b[2J\xff");
}

TEST_CASE("the numbers and names of error codes are stable") {
  // Written out, because programs and other languages store the numbers.
  const std::array<std::pair<uint32_t, const char*>, 16> codes{{{1, "argument"},
                                                                {2, "misuse"},
                                                                {3, "unavailable"},
                                                                {4, "program"},
                                                                {5, "file"},
                                                                {6, "memory"},
                                                                {7, "ring"},
                                                                {8, "kernargs"},
                                                                {9, "timeline"},
                                                                {10, "signals"},
                                                                {11, "limit"},
                                                                {12, "deadline"},
                                                                {13, "too_long"},
                                                                {14, "failed"},
                                                                {15, "device_lost"},
                                                                {16, "hsa"}}};
  for (const auto& [number, name] : codes) {
    CHECK(to_string(ErrorCode{number}) == name);
    CHECK(is_exhausted(ErrorCode{number}) == (number >= 6 && number <= 11));
  }
  CHECK(to_string(ErrorCode{0}) == "code 0");
  CHECK(to_string(ErrorCode{17}) == "code 17");
}

TEST_CASE("a refused HSA call has a code that its status implies") {
  const auto [status, code] = GENERATE(
      table<int, ErrorCode>({{HSA_STATUS_ERROR_INVALID_ARGUMENT, ErrorCode::argument},
                             {HSA_STATUS_ERROR_NOT_INITIALIZED, ErrorCode::misuse},
                             {HSA_STATUS_ERROR_INVALID_QUEUE_CREATION, ErrorCode::unavailable},
                             {HSA_STATUS_ERROR_INVALID_CODE_OBJECT, ErrorCode::program},
                             {HSA_STATUS_ERROR_INVALID_FILE, ErrorCode::file},
                             {HSA_STATUS_ERROR_OUT_OF_RESOURCES, ErrorCode::memory},
                             {HSA_STATUS_ERROR_MEMORY_FAULT, ErrorCode::device_lost},
                             {HSA_STATUS_ERROR, ErrorCode::hsa},
                             {0x4321, ErrorCode::hsa}}));
  CAPTURE(status);
  try {
    check(static_cast<hsa_status_t>(status), "hsa_call");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(to_string(error.code()) == to_string(code));
    CHECK(static_cast<int>(error.status()) == status);
  }
}
