// A complete program over uptempo::engine with a kernel of its own.
#include <cstdint>
#include <cstdio>

#include <uptempo/kernels/triple.hpp>
#include <uptempo/uptempo.hpp>

int main() {
  using namespace uptempo;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::triple()};
  auto triple = program.kernel<uint32_t*>("triple");
  Queue queue{gpu};
  PinnedBuffer<uint32_t> values{gpu, 64};
  for (uint32_t i = 0; i < 64; ++i) values[i] = i + 1;

  BatchSubmitter batch{queue};
  batch.dispatch(triple, Grid{64}.by(64), values.data());
  batch.submit().wait();

  std::printf("%u %u %u %u\n", values[0], values[1], values[2], values[3]);
  return values[63] == 192 ? 0 : 1;
}
