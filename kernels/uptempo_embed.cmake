# Writes the C++ source that embeds BUNDLE and the header that declares NAMESPACE::NAME(). Run by uptempo_add_kernels.
# The label is made unique by the target's name, so that two targets of one program may embed kernels of one name.
string(MAKE_C_IDENTIFIER "uptempo_bundle_${TARGET}_${NAME}" label)
file(CONFIGURE OUTPUT "${HEADER}" @ONLY CONTENT [=[
// Generated from @NAME@.cl by uptempo_add_kernels.
#pragma once

#include <cstddef>
#include <span>

namespace @NAMESPACE@ {

/// The code objects of @NAME@.cl, a clang offload bundle in read-only memory; valid as long as the program runs.
std::span<const std::byte> @NAME@();

}  // namespace @NAMESPACE@
]=])
file(CONFIGURE OUTPUT "${SOURCE}" @ONLY CONTENT [=[
// Generated from @NAME@.cl by uptempo_add_kernels.
#include "kernels/@NAME@.hpp"

__asm__(
    ".pushsection .rodata\n"
    ".balign 4096\n"
    "@label@_begin:\n"
    ".incbin \"@BUNDLE@\"\n"
    "@label@_end:\n"
    ".balign 4\n"
    ".popsection\n");

extern "C" {
extern const std::byte begin_of_@label@[] __asm__("@label@_begin");
extern const std::byte end_of_@label@[] __asm__("@label@_end");
}

namespace @NAMESPACE@ {

std::span<const std::byte> @NAME@() { return {begin_of_@label@, end_of_@label@}; }

}  // namespace @NAMESPACE@
]=])
