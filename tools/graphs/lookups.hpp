// dlsym() of the process: a program that looks HIP's functions up in a library gets
// this library's. Notices who gets a function of HIP's graphs past this library, which is possible
// in another libamdhip64.
#pragma once

#include <string>
#include <vector>

namespace uptempo::graphs {

// One sentence for each object of the process that got such a function.
std::vector<std::string> looked_up();

}  // namespace uptempo::graphs
