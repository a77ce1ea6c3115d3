// A second Runtime on a driver without RUNTIME_ENABLE, on which ROCr 6.4 cannot start again. On
// other drivers it works with every ROCr (device_test.cpp).
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/runtime.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;

TEST_CASE("a second Runtime works, or the Error names what the driver lacks", "[runtime]") {
  { const Runtime first; }
  try {
    const Runtime second;
    CHECK(second.gpu().is_gpu());
  } catch (const Error& error) {
    CHECK(test::contains(error.what(), "RUNTIME_ENABLE"));
  }
}
