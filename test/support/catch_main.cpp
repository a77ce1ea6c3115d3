// The main of every test binary with Catch2 2.x; 3.x brings its own.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
