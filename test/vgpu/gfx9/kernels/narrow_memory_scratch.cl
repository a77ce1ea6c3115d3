// The same kernels, compiled with private memory reached by SCRATCH instructions.
#include "narrow_memory.cl"
