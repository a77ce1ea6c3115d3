#include "included.h"

kernel void store_included(global unsigned* word) { *word = INCLUDED_VALUE; }
