#include "tools/graphs/original.hpp"

#include <dlfcn.h>

namespace uptempo::graphs {

void* original_address(const char* name) noexcept { return dlsym(RTLD_NEXT, name); }

}  // namespace uptempo::graphs
