// The interface of the test's plugins. Their host does not contain the library.
#pragma once

#include <cstddef>
#include <cstdint>

struct PluginUse {
  uint32_t budget = 0, in_use = 0, copies = 0;
  const void* address = nullptr;  // of a variable of the plugin
};

struct Plugin {
  void (*set_budget)(uint32_t interrupts);
  // Takes interrupt signals and keeps them. Returns false with the Error's text if there are too
  // few; what it has taken stays.
  bool (*take)(uint32_t count, char* text, size_t bytes);
  void (*give_back)();
  void (*use)(PluginUse& use);
  void (*describe)(char* text, size_t bytes);
};
