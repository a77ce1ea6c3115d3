// Catch2 2.13 (Debian 12) and 3.x under one include. Matchers, generators and BENCHMARK differ between the two: tests stay with
// TEST_CASE, SECTION, CHECK, REQUIRE, CAPTURE, INFO and the approximations below.
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
