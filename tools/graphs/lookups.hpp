// Notices who looks functions of HIP's graphs up by name. Pointers from dlsym() lead to HIP's own
// functions, past this library.
#pragma once

#include <string>
#include <vector>

namespace uptempo::graphs {

// One sentence for each object of the process that looked such a function up.
std::vector<std::string> looked_up();

}  // namespace uptempo::graphs
