// Names of kernels. Private.
//
// A kernel is found by its symbol or by its name in a C++ source:
//
//   symbol                        "_Z5scaleIdEvPT_S0_", or "axpy" if it is extern "C"
//   C++ name, with parameters     "scale<double>(double*, double)", as the demangler prints them
//   C++ name without parameters   "scale<double>"
//
// A symbol has precedence, then a name with parameters.
//
// KernelNames: the names by the address in their packets (kernel_object). Programs add the kernels
// that they have looked up, and kernel_info() those of other loaders. Their names stay after their
// owner's end (the program, the last copy of the kernel_info() result), marked as such,
// because a hung packet may still name them; beyond kMost of them, the next unloading removes them.
// Kernels that others have loaded, as HIP does, are found in ROCr's list of executables; those that
// hip::kernel has found are also added, because errors call nothing of HSA. They stay until another
// kernel has their address.
//
// Thread safety: every function may be called from any thread.
// Cost of KernelNames: a lock and a map; not for the submit path.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uptempo {

// Returns the C++ name of a symbol with its parameters, without the return type of a template, or
// the symbol itself if it is not a mangled name.
std::string cpp_name(const std::string& symbol);

// Returns the indices of the symbols that the name refers to: none, one, or several overloads.
std::vector<size_t> kernels_named(std::string_view name, std::span<const std::string> symbols);

namespace detail {

class KernelNames {
 public:
  static constexpr size_t kMost = 256;

  // The names of the process. Never destroyed.
  static KernelNames& of_process();

  // `owner` is the one that unloads the kernel. Replaces another kernel at this address.
  void add(uint64_t object, std::string_view name, const void* owner);
  // The owner's kernels are being unloaded.
  void unload(const void* owner) noexcept;
  // Returns the name, with " (unloaded)" after the end of its owner. Empty if no program of this
  // library has looked the kernel up. Calls nothing of HSA.
  std::string find(uint64_t object) const;

 private:
  struct Entry {
    std::string name;
    const void* owner;
    bool unloaded = false;
  };
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;
};

// As KernelNames::find(), and then looks through all executables that ROCr has loaded for the
// agent. Empty if there is none with this kernel. Takes ROCr's loader lock.
std::string name_of_kernel(uint64_t object, hsa_agent_t agent);

}  // namespace detail
}  // namespace uptempo
