// Gives a function the symbol of one that HIP's headers declare differently between releases, or
// not at all.
#pragma once

#define UPTEMPO_SYMBOL(name) __asm__(name)
