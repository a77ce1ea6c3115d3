// Begins the definition of a function with the symbol of one that HIP's headers declare differently
// between releases, or not at all.
#pragma once

#define UPTEMPO_FUNCTION(symbol, name, ...)     \
  hipError_t name(__VA_ARGS__) __asm__(symbol); \
  hipError_t name(__VA_ARGS__)
