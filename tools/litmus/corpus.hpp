// The litmus corpus: every shape, over every suitable kind of memory and every choice of the scopes
// that carry its data.
//
// Which outcomes are allowed is in rules.hpp.
#pragma once

#include <vector>

#include "tools/litmus/litmus.hpp"

namespace uptempo::litmus {

// Names are unique: "shape/memory/release/acquire", without parts that the shape does not vary.
std::vector<Test> corpus();

}  // namespace uptempo::litmus
