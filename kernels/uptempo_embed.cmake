# Writes the C++ source that embeds BUNDLE and the header that declares NAMESPACE::NAME(). Run by
# uptempo_add_kernels. IDENTITY names the project and the target. It makes function and label
# unique, so that two targets of one program may embed kernels with the same name.
set(label "uptempo_bundle_${IDENTITY}_${NAME}")
file(CONFIGURE OUTPUT "${HEADER}" @ONLY CONTENT [=[
// Generated from @NAME@.cl by uptempo_add_kernels.
#pragma once

#include <cstddef>
#include <span>

namespace @NAMESPACE@ {
inline namespace @IDENTITY@ {

/// The code objects of @NAME@.cl: a clang offload bundle in read-only memory, valid while the
/// program runs.
std::span<const std::byte> @NAME@();

}  // namespace @IDENTITY@
}  // namespace @NAMESPACE@

// A user of several targets with a @NAME@.cl gets each @NAME@(). Without this, the order of the
// include directories would select one.
#if !defined(UPTEMPO_KERNELS_OF_@IDENTITY@)
#pragma GCC system_header  // -Wpedantic would warn of #include_next
#if __has_include_next("kernels/@NAME@.hpp")
#include_next "kernels/@NAME@.hpp"
#endif
#endif
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
inline namespace @IDENTITY@ {

std::span<const std::byte> @NAME@() { return {begin_of_@label@, end_of_@label@}; }

}  // namespace @IDENTITY@
}  // namespace @NAMESPACE@
]=])
