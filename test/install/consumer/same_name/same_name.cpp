#include <cstdio>

#include <uptempo/kernels/util.hpp>
#include "add.hpp"
#include "run.hpp"

int main() {
  std::printf("%u %u %u\n", add_to_zero(kernels::util()), add_to_zero(tens::code()),
              add_to_zero(hundreds::code()));
}
