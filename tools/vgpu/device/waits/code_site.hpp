// Names the place of an instruction of the program.
//
// Thread safety: any thread. Takes no lock of the dynamic linker: it reads /proc/self/maps.
#pragma once

#include <cstdint>
#include <string>

namespace uptempo::vgpu {

// Example: "a.out+0x1234", the file's name and the offset in it, as addr2line and objdump expect
// for shared objects. Where no file is mapped: the address, "0x7f0000001234".
std::string code_site(uint64_t instruction);

}  // namespace uptempo::vgpu
