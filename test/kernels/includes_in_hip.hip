#include <hip/hip_runtime.h>

#include "included.h"

extern "C" __global__ void store_included(unsigned* word) { *word = INCLUDED_VALUE; }
