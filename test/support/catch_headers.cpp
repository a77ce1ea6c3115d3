// The program of precompiled test headers (uptempo_test_headers() in UptempoTest.cmake). It has no
// test of its own.
#include "test/support/catch.hpp"
