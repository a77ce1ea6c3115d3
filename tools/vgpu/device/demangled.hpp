// Names of C++ functions as the source has them.
//
// Thread safety: pure function. Allocates.
#pragma once

#include <string>

namespace uptempo::vgpu {

// "fill(int*)" for "_Z4fillPi". Returns any other name as it is, also "f", which is a type's name
// for __cxa_demangle().
std::string demangled(const std::string& symbol);

}  // namespace uptempo::vgpu
