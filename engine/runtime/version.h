// The version of this library, for C and C++. Semantic versioning: before 1.0.0, a new minor
// version may change the C++ interface. The build reads the numbers from here.
#pragma once

#define UPTEMPO_VERSION_MAJOR 0
#define UPTEMPO_VERSION_MINOR 2
#define UPTEMPO_VERSION_PATCH 0

#define UPTEMPO_VERSION_TEXT(major, minor, patch) #major "." #minor "." #patch
#define UPTEMPO_VERSION_JOIN(major, minor, patch) UPTEMPO_VERSION_TEXT(major, minor, patch)
// "0.2.0"
#define UPTEMPO_VERSION \
  UPTEMPO_VERSION_JOIN(UPTEMPO_VERSION_MAJOR, UPTEMPO_VERSION_MINOR, UPTEMPO_VERSION_PATCH)
// 2000 for 0.2.0, to compare with: each number has three digits.
#define UPTEMPO_VERSION_NUMBER \
  (UPTEMPO_VERSION_MAJOR * 1000000u + UPTEMPO_VERSION_MINOR * 1000u + UPTEMPO_VERSION_PATCH)
