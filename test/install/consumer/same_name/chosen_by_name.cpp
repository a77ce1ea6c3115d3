#include <cstdio>

#include <uptempo/kernels/util.hpp>
#include "run.hpp"

int main() {
  std::printf("%u %u\n", add_to_zero(kernels::consumer_tens::util()),
              add_to_zero(kernels::consumer_hundred_steps::util()));
}
