// A wrong declaration, for `uptempo-vgpu --check fences`.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>

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

  //! [mistake]
  BatchSubmitter batch{queue};
  batch.dispatch(advance, Grid{n}.by(64), a.data(), 1u).reads(a.data(), n).writes(a.data(), n);
  batch.dispatch(add, Grid{n}.by(64), sums.data(), a.data(), b.data())
      .reads(b.data(), n)  // mistake: it reads `a`, too
      .writes(sums.data(), n);
  batch.dispatch(advance, Grid{n}.by(64), b.data(), 1u).reads(b.data(), n).writes(b.data(), n);
  batch.submit().wait();
  //! [mistake]
} catch (const Error& error) {
  std::fprintf(stderr, "missing_fence: %s\n", error.what());
  return 1;
}
