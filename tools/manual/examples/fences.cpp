// Declared accesses, and the fences that the planner leaves out.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>
#include <vector>

using namespace uptempo;

int main() try {
  constexpr uint32_t n = 256;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  auto add = program.kernel<uint32_t*, const uint32_t*, const uint32_t*>("add");
  Queue queue{gpu};
  DeviceBuffer<uint32_t> a{gpu, n}, b{gpu, n}, sums{gpu, n};
  Copier copier{gpu};
  copier.fill(a, 0u);
  copier.fill(b, 0u);

  //! [declared]
  const Grid grid = Grid{n}.by(64);
  BatchSubmitter batch{queue};
  batch.dispatch(advance, grid, a.data(), 1u).reads(a.data(), n).writes(a.data(), n);
  batch.dispatch(advance, grid, b.data(), 2u).reads(b.data(), n).writes(b.data(), n);
  batch.dispatch(add, grid, sums.data(), a.data(), b.data())
      .reads(a.data(), n)
      .reads(b.data(), n)
      .writes(sums.data(), n);
  batch.submit().wait();
  std::printf("%s\n", batch.explain().c_str());
  //! [declared]

  std::vector<uint32_t> host(n);
  copier.copy(host, sums);
  for (const uint32_t sum : host)
    if (sum != 3) return 1;
} catch (const Error& error) {
  std::fprintf(stderr, "fences: %s\n", error.what());
  return 1;
}
