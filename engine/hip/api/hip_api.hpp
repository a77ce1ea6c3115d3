// HIP's functions. For GCC, HIP's headers define __noinline__, which libstdc++ 16 uses as the name
// of an attribute in <format>. So <format> comes first.
#pragma once

#if __has_include(<format>)
#include <format>
#endif

#include <hip/hip_runtime_api.h>
