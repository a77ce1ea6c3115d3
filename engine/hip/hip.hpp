// Public headers of uptempo::hip: what a HIP program needs to dispatch its own kernels, on its own
// memory and beside its own streams, with Uptempo. An optional library, built where HIP is
// installed; engine/uptempo.hpp and the library uptempo::engine know nothing of HIP.
#pragma once

#include "engine/hip/device.hpp"
#include "engine/hip/graph.hpp"
#include "engine/hip/graph_exec.hpp"
#include "engine/hip/kernel.hpp"
#include "engine/hip/wait.hpp"
