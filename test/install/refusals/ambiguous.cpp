// Two libraries export a function of this name.
#include "kernels/util.hpp"

int main() { return kernels::util().empty(); }
