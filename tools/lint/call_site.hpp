// The place in the program from which a runtime's function was called.
//
// Thread safety: prepare_call_sites() once, before the other functions; these on any thread.
#pragma once

#include <cstdint>
#include <string>

namespace uptempo::lint {

// Finds the address ranges of this library, ROCr and HIP, and Python. Loads what backtrace() needs,
// which allocates memory.
void prepare_call_sites();

// The return address in the innermost frame outside of these ranges, with the thread's innermost
// Python call of the program's own (support::code_site()). The address is 0 if the nearest 24
// frames have none. Needs tens of microseconds in a HIP program; allocates nothing.
uint64_t call_site() noexcept;

// "main+0x2f (/path/program+0x112f)", without a symbol "(/path/program+0x112f)". The second part
// suits addr2line. For an address outside of all objects "0x...". A Python call follows: ", called
// by train at train.py:20". Nothing precedes it if the address is in the interpreter or ctypes.
std::string describe_site(uint64_t site);

}  // namespace uptempo::lint
