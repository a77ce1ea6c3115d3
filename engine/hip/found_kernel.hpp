// A kernel of this process and the code object that holds it. Private to engine/hip. kernel.hpp has
// the rules and errors. Thread safety: as kernel.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <uptempo/hip/kernel.hpp>
#include <uptempo/hip/loaded_code.hpp>
#include <uptempo/program/metadata.hpp>

namespace uptempo::hip {

struct FoundKernel {
  LoadedCode code;
  KernelInfo info;
};

// Code objects that have been read, for kernels that are found one after the other. Meanwhile no
// module may be unloaded.
//
// Thread safety: one owner.
class ReadObjects {
 public:
  struct Entry {
    LoadedObject loaded;
    ProgramMetadata metadata;
  };
  // Reads the code object at the first call. Throws Error as read_loaded().
  const Entry& of(const LoadedCode& code, const std::string& kernel);

 private:
  std::map<std::pair<uint64_t, uint64_t>, Entry> entries_;  // by executable and address
};

// The name that HIP has for a __global__ function, given by its host address, or for a module's
// function. Loads the code of a __global__ function. Throws Error.
std::string kernel_name(const void* function);
std::string kernel_name(hipFunction_t function);

// Finds the kernel with this name on the current device. `function`: host address of its
// __global__ function, or null. `call`: for errors about the stack.
FoundKernel find_kernel(const std::string& name, const void* function, Beside beside,
                        PrivateBytes stack, ReadObjects& objects,
                        std::string_view call = "hip::kernel");

}  // namespace uptempo::hip
