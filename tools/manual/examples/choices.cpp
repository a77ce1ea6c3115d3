// The same work by each of the calls that launch kernels.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>
#include <tuple>
#include <vector>

using namespace uptempo;

int main() try {
  constexpr uint32_t n = 256, steps = 8;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  auto add = program.kernel<uint32_t*, const uint32_t*, const uint32_t*>("add");
  Queue queue{gpu};
  PinnedBuffer<uint32_t> memory{gpu, n};
  uint32_t* const values = memory.data();
  const Grid grid = Grid{n}.by(64);

  uint32_t expected = 0;
  bool right = true;
  const auto check = [&] {
    for (uint32_t i = 0; i < steps; ++i) expected = 3 * expected + i;
    for (uint32_t i = 0; i < n; ++i) right = right && values[i] == expected;
  };
  for (uint32_t& value : memory) value = 0;

  //! [dispatch]
  BatchSubmitter batch{queue};
  for (uint32_t i = 0; i < steps; ++i) batch.dispatch(advance, grid, values, i);
  batch.submit().wait();
  //! [dispatch]
  check();

  //! [prepared]
  const Prepared step = batch.prepare(advance, grid);
  for (uint32_t i = 0; i < steps; ++i) step.dispatch(values, i);
  batch.submit().wait();
  //! [prepared]
  check();

  //! [dispatch_each]
  step.dispatch_each(steps, [&](uint32_t i) noexcept { return std::tuple(values, i); });
  batch.submit().wait();
  //! [dispatch_each]
  check();

  //! [recording]
  Recording recording{queue};
  for (uint32_t i = 0; i < steps; ++i) recording.dispatch(advance, grid, values, i);
  recording.replay(queue).wait();
  //! [recording]
  check();

  //! [stream]
  Streams streams{gpu};
  Stream stream{streams};
  for (uint32_t i = 0; i < steps; ++i) stream.launch(advance, grid, values, i);
  stream.synchronize();
  //! [stream]
  check();

  //! [launcher]
  std::vector<uint32_t> a(n, 1), b(n, 2), sums(n);
  Launcher launcher{streams, add};
  launcher.launch(stream, grid, out(sums), in(a), in(b));  // copies in, launches, copies out
  //! [launcher]
  for (const uint32_t sum : sums) right = right && sum == 3;

  std::printf("%s results\n", right ? "right" : "wrong");
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "choices: %s\n", error.what());
  return 1;
}
