// A plugin with a copy of the library of its own, none of whose symbols it exports.
#include "plugin.hpp"

#include <uptempo/uptempo.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Held {
  uptempo::Runtime runtime;
  std::vector<uptempo::Signal> signals;
};
std::unique_ptr<Held> held;

void set_budget(uint32_t interrupts) { uptempo::set_signal_budget({.interrupts = interrupts}); }

bool take(uint32_t count, char* text, size_t bytes) {
  if (!held) held = std::make_unique<Held>();
  try {
    for (uint32_t i = 0; i < count; ++i) held->signals.emplace_back();
    return true;
  } catch (const uptempo::Error& error) {
    std::strncpy(text, error.what(), bytes - 1);
    return false;
  }
}

void give_back() { held.reset(); }

void use(PluginUse& use) {
  const uptempo::SignalUse all = uptempo::signal_use();
  use = {.budget = all.budget, .in_use = all.in_use, .copies = all.copies, .address = &held};
}

void describe(char* text, size_t bytes) {
  std::strncpy(text, held->runtime.describe().c_str(), bytes - 1);
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const Plugin uptempo_test_plugin{set_budget, take, give_back, use, describe};
