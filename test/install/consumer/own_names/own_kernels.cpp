// Uses the kernels of this program and Uptempo's built-in ones in one file.
#include <kernels/basics.hpp>
#include <kernels/bitonic_sort.hpp>

#include "engine/uptempo.hpp"

namespace my {}

using namespace uptempo;
using namespace my;

int main() {
  const auto own = kernels::bitonic_sort();
  return own.empty() || own.data() == builtin_kernels::basics().data();
}
