// Names of C++ functions as the source has them.
//
// Thread safety: pure function. Allocates.
#pragma once

#include <string>

namespace uptempo::vgpu {

// "fill(int*)" for "_Z4fillPi". Returns any other name as it is, also "f", which is a type's name
// for __cxa_demangle().
std::string demangled(const std::string& symbol);

// A kernel's name for messages: printable, demangled, without the suffix ".kd" of its descriptor's
// symbol, and cut where it is longer than a line or two.
std::string shown_kernel(const std::string& symbol);

}  // namespace uptempo::vgpu
