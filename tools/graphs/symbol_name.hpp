// Functions with the symbol of one that HIP's headers declare differently between releases, or not
// at all.
#pragma once

#include "tools/graphs/original.hpp"

// Begins the definition.
#define UPTEMPO_FUNCTION(symbol, name, ...)     \
  hipError_t name(__VA_ARGS__) __asm__(symbol); \
  constexpr const char* name##_symbol = symbol; \
  hipError_t name(__VA_ARGS__)

// HIP's own function of that symbol, looked up once.
#define UPTEMPO_REPLACED(name)                                        \
  ([]() noexcept {                                                    \
    static const auto real = original<decltype(name)>(name##_symbol); \
    return real;                                                      \
  }())
#define UPTEMPO_CALL_AS(name, ...) call_original(UPTEMPO_REPLACED(name), __VA_ARGS__)
