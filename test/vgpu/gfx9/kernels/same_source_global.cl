// The same kernels, compiled by LLVM's second instruction selector.
#include "same_source.cl"
