// main() of every test binary with Catch2 2.x. Catch2 3.x has its own.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
