// Programs, kernels, grids and arguments in C (engine/program/program.hpp, arguments.hpp,
// grid.hpp).
#ifndef UPTEMPO_C_PROGRAM_H
#define UPTEMPO_C_PROGRAM_H

#include <uptempo/c/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uptempo_program_options {
  size_t size;
  // Not 0: the library does not copy the bytes. They must live until program, kernels, batches and
  // recordings with these kernels are destroyed.
  uint64_t borrows_code;
} uptempo_program_options;

// Loads code for an agent: an AMDGPU ELF file, as Triton (.hsaco) and comgr make them, or a clang
// offload bundle, plain or compressed, as `hipcc --genco` makes it. Fails if no code object matches
// the agent's ISA, with the reason for each. Any thread.
UPTEMPO_API uptempo_status uptempo_program_create(const uptempo_agent* agent, const void* code,
                                                  size_t code_bytes,
                                                  const uptempo_program_options* options,
                                                  uptempo_program** program);
// The same from a file, whose bytes the program keeps: `borrows_code` is ignored. Also fails if it
// cannot be read.
UPTEMPO_API uptempo_status uptempo_program_create_from_file(const uptempo_agent* agent,
                                                            const char* path,
                                                            const uptempo_program_options* options,
                                                            uptempo_program** program);
// Kernels keep the code loaded. The last of program and kernels unloads it, which must not happen
// before its dispatches have completed.
UPTEMPO_API uptempo_status uptempo_program_destroy(uptempo_program* program);

typedef struct uptempo_program_info {
  size_t size;
  const char* target;  // "gfx90a": of the code object in use. Belongs to the program
  size_t kernel_count;
} uptempo_program_info;

// Any thread.
UPTEMPO_API uptempo_status uptempo_program_get_info(const uptempo_program* program,
                                                    uptempo_program_info* info);
// Returns a kernel's symbol, which belongs to the program. Fails for an index that does not exist.
// Any thread.
UPTEMPO_API uptempo_status uptempo_program_kernel_name(const uptempo_program* program, size_t index,
                                                       const char** name);

// Returns a variable by its symbol: `__device__` in HIP, `global` outside of functions in OpenCL C.
// Address on the device, for kernels and copies (uptempo_device), and size. Every program has its
// own, which lives as long as the code. Fails for a name that the program does not have, for a
// kernel's, and after the end of the Runtime. Any thread.
UPTEMPO_API uptempo_status uptempo_program_global(const uptempo_program* program, const char* name,
                                                  void** address, size_t* bytes);

// A kind of explicit argument.
typedef enum uptempo_argument_kind UPTEMPO_ENUM_TYPE {
  UPTEMPO_ARGUMENT_VALUE = 0,
  UPTEMPO_ARGUMENT_ADDRESS = 1,
  UPTEMPO_ARGUMENT_LOCAL = 2,  // an LDS array (`local T*`): given as its size in bytes, a uint32_t
} uptempo_argument_kind;

typedef struct uptempo_argument {
  size_t size;
  uptempo_argument_kind kind;
  uint32_t bytes;
  uint32_t offset;     // from the begin of the packed arguments
  uint32_t alignment;  // as given to uptempo_kernel_create(); uptempo_kernel_argument() returns 0
} uptempo_argument;

typedef struct uptempo_kernel_options {
  size_t size;
  // Private memory of a work-item in bytes, for a kernel with a dynamic stack: one that recurses or
  // calls through pointers (PrivateBytes of program.hpp).
  uint64_t private_bytes;
  // The arguments that the caller will give, to be compared with the kernel's in number, kind, size
  // and, unless 0, alignment. Offsets are ignored. NULL: no comparison.
  const uptempo_argument* arguments;
  size_t argument_count;
} uptempo_kernel_options;

// Returns a kernel. `name` is its symbol, or its name in a C++ source:
// "scale<double>(double*, double)", or "scale<double>" if there is one such kernel. Fails for an
// unknown name (the error lists the known ones), for arguments that differ, and for hidden
// arguments that the library does not have. Any thread.
UPTEMPO_API uptempo_status uptempo_kernel_create(const uptempo_program* program, const char* name,
                                                 const uptempo_kernel_options* options,
                                                 uptempo_kernel** kernel);

// A kernel that another loader has loaded: an hsa_executable of the caller's, HIP, or a runtime of
// its own (engine/program/kernel_object.hpp). Either `metadata`, or the fields after it.
typedef struct uptempo_loaded_kernel {
  size_t size;
  // The kernel descriptor's address on the device (HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT).
  uint64_t object;
  const char* name;
  // The contents of the code object's note NT_AMDGPU_METADATA, which have a kernel of this name.
  const void* metadata;
  size_t metadata_bytes;
  // Explicit arguments, in ascending order of their offsets. Hidden arguments read as zero.
  const uptempo_argument* arguments;
  size_t argument_count;
  uint32_t kernarg_bytes;               // with the hidden arguments
  uint32_t group_bytes;                 // static LDS of a workgroup
  uint32_t private_bytes;               // static, of a work-item
  uint32_t max_workgroup_size;          // 0: the agent's
  uint32_t required_workgroup_size[3];  // 0: any
  uint32_t whole_workgroups;            // not 0: no workgroup of a grid may be partial
  // With `metadata`, too: private memory of a kernel with a dynamic stack, as in
  // uptempo_kernel_options.
  uint32_t stack_bytes;
  // With `metadata`, too. Not 0: the kernel cannot call the host, although its metadata declare
  // buffers for that. Otherwise such a kernel is refused.
  uint32_t calls_no_host;
} uptempo_loaded_kernel;

// Returns a kernel whose code the caller keeps loaded until its dispatches have completed. Compares
// the struct with the descriptor where ROCr has loaded it. Fails for an address or an agent that is
// not the kernel's, for metadata that cannot be right, and for services of the host. Any thread,
// but not while another thread unloads the code.
UPTEMPO_API uptempo_status uptempo_kernel_from_object(const uptempo_agent* agent,
                                                      const uptempo_loaded_kernel* loaded,
                                                      uptempo_kernel** kernel);

// As uptempo_program_destroy(). Recordings keep their kernels.
UPTEMPO_API uptempo_status uptempo_kernel_destroy(uptempo_kernel* kernel);

typedef struct uptempo_kernel_info {
  size_t size;
  const char* name;          // the symbol. Belongs to the kernel
  uint64_t object;           // the packet's kernel_object
  uint64_t hsa_agent;        // the agent that it is loaded for
  size_t argument_count;     // explicit ones
  uint32_t packed_bytes;     // of the explicit arguments, without padding at the end
  uint32_t kernarg_bytes;    // with the hidden arguments
  uint32_t group_bytes;      // static LDS of a workgroup
  uint32_t private_bytes;    // of a work-item
  uint32_t max_group_bytes;  // static and dynamic
  uint32_t max_workgroup_size;
  uint32_t required_workgroup_size[3];  // 0: any
  uint32_t whole_workgroups;            // not 0: no workgroup of a grid may be partial
} uptempo_kernel_info;

// Both: any thread. uptempo_kernel_argument() fails for an index that does not exist.
UPTEMPO_API uptempo_status uptempo_kernel_get_info(const uptempo_kernel* kernel,
                                                   uptempo_kernel_info* info);
UPTEMPO_API uptempo_status uptempo_kernel_argument(const uptempo_kernel* kernel, size_t index,
                                                   uptempo_argument* argument);

// The shape of a dispatch. The dispatch compares it with kernel and agent. In batches, the grids of
// uptempo_grid_of() are the quickest: those with a 0 that stands for another number are converted.
typedef struct uptempo_grid {
  size_t size;
  uint32_t items[3];      // work-items, as in HSA; y and z: 0 counts as 1
  uint32_t workgroup[3];  // work-items; y and z: 0 counts as 1
  uint32_t dimensions;    // 1 to 3; 0: as many as `items` needs that are above 1
  uint32_t lds_bytes;     // dynamic LDS of a workgroup: HIP's `extern __shared__`
} uptempo_grid;

// A grid of `x` work-items in workgroups of `workgroup`.
static inline uptempo_grid uptempo_grid_of(uint32_t x, uint32_t workgroup) {
  uptempo_grid grid = {sizeof(uptempo_grid), {x, 1, 1}, {workgroup, 1, 1}, 1, 0};
  return grid;
}
// A grid of blocks of threads, as HIP and CUDA count. If a dimension has more than 2^32 - 1
// work-items, `items[0]` becomes 0, which dispatches refuse.
static inline uptempo_grid uptempo_grid_of_blocks(uint32_t blocks_x, uint32_t blocks_y,
                                                  uint32_t blocks_z, uint32_t threads_x,
                                                  uint32_t threads_y, uint32_t threads_z) {
  const uint64_t x = (uint64_t)blocks_x * threads_x, y = (uint64_t)blocks_y * threads_y,
                 z = (uint64_t)blocks_z * threads_z;
  const uint32_t fits = x <= UINT32_MAX && y <= UINT32_MAX && z <= UINT32_MAX && y != 0 && z != 0;
  uptempo_grid grid = {sizeof(uptempo_grid),
                       {fits ? (uint32_t)x : 0, (uint32_t)y, (uint32_t)z},
                       {threads_x, threads_y, threads_z},
                       0,
                       0};
  return grid;
}

// The explicit arguments of one dispatch, by value. They are read during the call only.
typedef struct uptempo_arguments {
  const void* data;
  uint32_t count;        // of bytes or of pointers
  uint32_t by_pointers;  // 0: packed bytes
} uptempo_arguments;

// As a number of pointers: as many as the kernel has arguments. The library cannot check that. A
// larger number is refused by the call that takes the arguments.
#define UPTEMPO_AS_DECLARED UINT32_MAX

// Packed bytes: the arguments at the offsets of the kernel's metadata, which are those of a C
// struct with the parameters as members. With or without the struct's padding at the end. This is
// the buffer of HIP_LAUNCH_PARAM_BUFFER_POINTER.
static inline uptempo_arguments uptempo_packed(const void* bytes, size_t size) {
  uptempo_arguments arguments = {
      bytes, size < UPTEMPO_AS_DECLARED ? (uint32_t)size : UPTEMPO_AS_DECLARED - 1, 0};
  return arguments;
}
// Pointers: the i-th points to the value of the i-th argument, as the kernelParams of
// hipModuleLaunchKernel and cuLaunchKernel.
static inline uptempo_arguments uptempo_params(void* const* params, size_t count) {
  uptempo_arguments arguments = {
      params, count <= UPTEMPO_AS_DECLARED ? (uint32_t)count : UPTEMPO_AS_DECLARED - 1, 1};
  return arguments;
}

#ifdef __cplusplus
}
#endif

#endif
