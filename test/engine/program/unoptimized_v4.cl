// The same kernel, compiled for code object version 4.
#include "unoptimized_v5.cl"
