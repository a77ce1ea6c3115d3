// KernelNames: names of kernels by the address in their packets (kernel_object). Private.
//
// Programs add the kernels that they have looked up. Their names stay after the program has been
// unloaded, marked as such, because a hung packet may still name them; the last kMostUnloaded of
// them are kept. Kernels that others have loaded, as HIP does, are found in ROCr's list of
// executables; those that hip::kernel has found are also added, because errors call nothing of HSA.
// They stay until another kernel has their address.
//
// Thread safety: every function may be called from any thread.
// Cost: a lock and a map; not for the submit path.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace uptempo::detail {

class KernelNames {
 public:
  static constexpr size_t kMostUnloaded = 256;

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
    uint64_t unloaded;  // place in the order of unloading; 0: loaded
  };
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;
  uint64_t unloads_ = 0;
  size_t unloaded_ = 0;  // entries
};

// As KernelNames::find(), and then looks through all executables that ROCr has loaded for the
// agent. Empty if there is none with this kernel. Takes ROCr's loader lock.
std::string name_of_kernel(uint64_t object, hsa_agent_t agent);

}  // namespace uptempo::detail
