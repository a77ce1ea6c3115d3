// The litmus corpus: every shape, over every kind of memory that it makes sense for and every choice of the scopes that carry its data.
//
// Nothing here says what is allowed: rules.hpp does.
#pragma once

#include <vector>

#include "tools/litmus/litmus.hpp"

namespace uptempo::litmus {

// Names are "shape/memory/release/acquire", without the parts that a shape has no choice of. Unique.
std::vector<Test> corpus();

}  // namespace uptempo::litmus
