// Names of the environment variables by which the launcher passes its options to the library, and
// their defaults. The launcher and the library include this file; it includes nothing.
#pragma once

#include <cstddef>

namespace uptempo::graphs {

inline constexpr const char* kAtLeastVariable = "UPTEMPO_GRAPHS_AT_LEAST";
inline constexpr const char* kTimesVariable =
    "UPTEMPO_GRAPHS_TIMES";  // measure calls, if it is set
inline constexpr const char* kJsonVariable = "UPTEMPO_GRAPHS_JSON";
// The process that the launcher became. Others are its children, which inherit LD_PRELOAD.
inline constexpr const char* kProcessVariable = "UPTEMPO_GRAPHS_PROCESS";

// Graphs with fewer nodes stay with HIP. README.md says how this number was measured.
inline constexpr size_t kDefaultAtLeast = 48;

}  // namespace uptempo::graphs
