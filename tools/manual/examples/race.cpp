// A kernel with a data race, for `uptempo-vgpu --check races`.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>

using namespace uptempo;

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto reverse = program.kernel<uint32_t*>("reverse");
  Queue queue{gpu};
  PinnedBuffer<uint32_t> values{gpu, 256};
  for (uint32_t i = 0; i < 256; ++i) values[i] = i;

  BatchSubmitter batch{queue};
  batch.dispatch(reverse, Grid{256}.by(256), values.data());
  batch.submit().wait();
} catch (const Error& error) {
  std::fprintf(stderr, "race: %s\n", error.what());
  return 1;
}
