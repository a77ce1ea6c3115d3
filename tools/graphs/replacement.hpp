// This library's function in place of one of HIP's, for programs that ask for addresses.
//
// Thread safety: any thread.
#pragma once

namespace uptempo::graphs {

// Returns this library's function if it replaces the one at this address, otherwise the address.
// Functions of another libamdhip64 than the one that this library calls are not replaced.
void* replacement(void* address) noexcept;

}  // namespace uptempo::graphs
