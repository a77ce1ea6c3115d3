// Opens a peer's shared library in the program's directory and returns its only symbol.
//
// Thread safety: any thread.
// Lifetime: the library stays loaded.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "tools/vgpu/launch.hpp"

namespace uptempo::bench {

// Returns null and sets `missing` to the reason if that fails.
template <class Function>
Function open_peer(const char* library, const char* symbol, std::string& missing) {
  const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / library;
  if (missing = vgpu::distrust(file); !missing.empty()) return nullptr;
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = opened == nullptr ? nullptr : dlsym(opened, symbol);
  if (found == nullptr) missing = dlerror();
  return reinterpret_cast<Function>(found);
}

}  // namespace uptempo::bench
