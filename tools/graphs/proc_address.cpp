// hipGetProcAddress, by which programs of HIP 6 look functions up: returns this library's function
// where it has one.
#include <cstdint>

#include <uptempo/hip/api/hip_api.hpp>
#include "tools/graphs/original.hpp"
#include "tools/graphs/replacement.hpp"
#include "tools/graphs/symbol_name.hpp"

using namespace uptempo::graphs;

extern "C" {

UPTEMPO_FUNCTION("hipGetProcAddress", get_proc_address, const char* symbol, void** function,
                 int version, uint64_t flags, void* result) {
  const hipError_t status =
      UPTEMPO_CALL_AS(get_proc_address, symbol, function, version, flags, result);
  if (status == hipSuccess && function != nullptr && *function != nullptr)
    *function = replacement(*function);
  return status;
}

}  // extern "C"
