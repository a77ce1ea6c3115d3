// Names of kernels by their kernel object, taken where an executable is frozen.
//
// Thread safety: any thread; functions may block, so never call them where a doorbell is rung.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace uptempo::lint {

class KernelNames {
 public:
  // `symbol`: "_Z3addPj.kd". If the object had other names before, it gets up to four of them.
  void add(uint64_t kernel_object, const std::string& symbol);
  // The demangled name, a PacketKind in angle brackets, or "kernel object 0x...".
  std::string name(uint64_t kernel) const;

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, std::vector<std::string>> names_;  // one more than are shown
};

// Returns the text unchanged if it is not a mangled name.
std::string demangle(const std::string& symbol);

}  // namespace uptempo::lint
