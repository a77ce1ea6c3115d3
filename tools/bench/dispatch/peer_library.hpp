// A peer's shared library, beside the program, and its only symbol.
//
// Thread safety: any thread. The library stays loaded.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace uptempo::bench {

// Null, and `missing` says why.
template <class Function>
Function open_peer(const char* library, const char* symbol, std::string& missing) {
  const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / library;
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = opened == nullptr ? nullptr : dlsym(opened, symbol);
  if (found == nullptr) missing = dlerror();
  return reinterpret_cast<Function>(found);
}

}  // namespace uptempo::bench
