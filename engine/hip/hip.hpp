// Public headers of uptempo::hip: what a HIP program needs to dispatch its own kernels, on its own
// memory and beside its own streams, with Uptempo. An optional library, built where HIP is
// installed; uptempo/uptempo.hpp and the library uptempo::engine know nothing of HIP.
#pragma once

#include <uptempo/hip/device.hpp>
#include <uptempo/hip/graph.hpp>
#include <uptempo/hip/graph_exec.hpp>
#include <uptempo/hip/kernel.hpp>
#include <uptempo/hip/wait.hpp>
