// Uses the kernels of this program and Uptempo's built-in ones in one file.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/bitonic_sort.hpp>

#include <uptempo/uptempo.hpp>

namespace my {}

using namespace uptempo;
using namespace my;

int main() {
  const auto own = kernels::bitonic_sort();
  return own.empty() || own.data() == builtin_kernels::basics().data();
}
