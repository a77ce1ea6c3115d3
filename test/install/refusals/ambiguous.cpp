// Two libraries export a function of this name.
#include <uptempo/kernels/util.hpp>

int main() { return kernels::util().empty(); }
