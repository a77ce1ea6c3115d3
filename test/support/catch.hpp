// One include for Catch2 2.13 (Debian 12) and 3.x. Matchers and BENCHMARK differ between the two,
// so tests use only TEST_CASE, TEST_CASE_METHOD, SECTION, GENERATE, CHECK, REQUIRE, CAPTURE, INFO
// and the approximations below.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
namespace uptempo::test {
using Catch::Approx;
}
#else
#include <catch2/catch.hpp>
namespace uptempo::test {
using ::Approx;
}
#endif
