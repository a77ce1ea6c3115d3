// SAXPY on a GPU: y += a x, compared with the host's result.
#include <uptempo/kernels/saxpy.hpp>  // made from saxpy.cl by uptempo_add_kernels
#include <uptempo/uptempo.hpp>

#include <cstdio>

using namespace uptempo;

int main() try {
  constexpr uint32_t n = 1000;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::saxpy()};  // the code for this GPU
  auto saxpy = program.kernel<float*, const float*, float, uint32_t>("saxpy");
  Queue queue{gpu};
  PinnedBuffer<float> x{gpu, n}, y{gpu, n};  // host memory that the GPU reaches, too
  for (uint32_t i = 0; i < n; ++i) x[i] = float(i), y[i] = 1;

  BatchSubmitter batch{queue};
  batch.dispatch(saxpy, Grid{n}.by(256), y.data(), x.data(), 2.0f, n);
  batch.submit().wait();

  for (uint32_t i = 0; i < n; ++i) {
    if (y[i] == 1 + 2 * float(i)) continue;
    std::printf("y[%u] is %g, not %g\n", i, y[i], 1 + 2 * float(i));
    return 1;
  }
  std::printf("%s: %u right results\n", gpu.name().c_str(), n);
} catch (const Error& error) {
  std::fprintf(stderr, "saxpy: %s\n", error.what());
  return 1;
}
