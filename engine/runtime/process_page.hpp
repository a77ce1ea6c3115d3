// Memory that all copies of this library in a process share: plugins that each contain its static
// archives, whose variables are apart even where they have the same names.
//
// The page is an anonymous mapping with a name in /proc/self/maps, by which later copies find it.
// This needs no exported symbol, no environment variable and no file. It ends with the process, and
// the child of a fork has a copy of its own.
//
// Thread safety: any thread. Two copies that call at once get the same page, because the dynamic
// loader's lock is held meanwhile.
// Cost: reads /proc/self/maps. Keep the result.
#pragma once

#include <cstddef>

namespace uptempo::detail {

inline constexpr size_t kProcessPageBytes = 4096;

// The process's page of that name, at first with zero bytes. Null if the system grants none. Never
// unmapped. `name`: without spaces; another one for each layout.
void* process_page(const char* name) noexcept;

}  // namespace uptempo::detail
