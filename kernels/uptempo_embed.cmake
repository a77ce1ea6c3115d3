# Writes the C++ source that embeds code objects, the header that declares NAMESPACE::NAME(), and the
# header for C. Run by uptempo_add_kernels. ENTRIES lists the code objects as
# "<bundle entry ID>=<file>". IDENTITY names the project and the target. It makes function and label
# unique, so that two targets of one program may embed kernels with the same name.
#
# The assembler writes the bundle (Clang documentation, "Bundled Code Object Layout"): magic string,
# number of entries; for each entry the offset, the size, the length of its ID, and the ID; then the
# code objects. The first entry is the host's, which the format requires; it is empty.
set(label "uptempo_bundle_${IDENTITY}_${NAME}")
set(host host-x86_64-unknown-linux)
string(LENGTH "${host}" length)
set(table ".quad ${label}_host - ${label}_begin, 0, ${length}" ".ascii \"${host}\"")
set(objects ".balign 4096" "${label}_host:")
set(count 1)
foreach(entry IN LISTS ENTRIES)
  string(REGEX MATCH "^([^=]*)=(.*)$" entry "${entry}")
  set(id "${CMAKE_MATCH_1}")
  set(file "${CMAKE_MATCH_2}")
  string(LENGTH "${id}" length)
  set(begin "uptempo_object_${count}_of_${IDENTITY}_${NAME}")
  set(end "uptempo_end_${count}_of_${IDENTITY}_${NAME}")
  list(APPEND table ".quad ${begin} - ${label}_begin, ${end} - ${begin}, ${length}" ".ascii \"${id}\"")
  list(APPEND objects ".balign 4096" "${begin}:" ".incbin \"${file}\"" "${end}:")
  math(EXPR count "${count} + 1")
endforeach()
set(assembly "")
foreach(line IN ITEMS ".ascii \"__CLANG_OFFLOAD_BUNDLE__\"" ".quad ${count}" ${table} ${objects})
  string(REPLACE "\"" "\\\"" line "${line}")
  string(APPEND assembly "    \"${line}\\n\"\n")
endforeach()
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
#if __has_include_next(<uptempo/kernels/@NAME@.hpp>)
#include_next <uptempo/kernels/@NAME@.hpp>
#endif
#endif
]=])
file(CONFIGURE OUTPUT "${C_HEADER}" @ONLY CONTENT [=[
// Generated from @NAME@.cl by uptempo_add_kernels, for C.
#ifndef KERNELS_OF_@IDENTITY@_@NAME@_H
#define KERNELS_OF_@IDENTITY@_@NAME@_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Returns the code objects of @NAME@.cl, and their size in bytes: a clang offload bundle in
// read-only memory, valid while the program runs.
const void* kernels_of_@IDENTITY@_@NAME@(size_t* bytes);

static inline const void* kernels_@NAME@(size_t* bytes) {
  return kernels_of_@IDENTITY@_@NAME@(bytes);
}

#ifdef __cplusplus
}
#endif

#endif
]=])
file(CONFIGURE OUTPUT "${SOURCE}" @ONLY CONTENT [=[
// Generated from @NAME@.cl by uptempo_add_kernels.
#include <uptempo/kernels/@NAME@.hpp>

#include <uptempo/kernels/@NAME@.h>

__asm__(
    ".pushsection .rodata\n"
    ".balign 4096\n"
    "@label@_begin:\n"
@assembly@    "@label@_end:\n"
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

const void* kernels_of_@IDENTITY@_@NAME@(size_t* bytes) {
  *bytes = static_cast<size_t>(end_of_@label@ - begin_of_@label@);
  return begin_of_@label@;
}
]=])
