// The litmus corpus: every shape, over every suitable kind of memory and every choice of the scopes
// that carry its data.
//
// rules.hpp defines the allowed outcomes.
#pragma once

#include <vector>

#include "tools/litmus/litmus.hpp"

namespace uptempo::litmus {

// Names are unique: "shape/memory/release/acquire", without parts that the shape does not vary.
std::vector<Test> corpus();

}  // namespace uptempo::litmus
