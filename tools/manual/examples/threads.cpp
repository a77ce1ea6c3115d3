// Four threads submit to one hardware queue; a fifth waits for all of them.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <array>
#include <cstdio>
#include <thread>
#include <vector>

using namespace uptempo;

int main() try {
  constexpr uint32_t n = 256, steps = 20;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  PinnedBuffer<uint32_t> values{gpu, 4 * n};
  for (uint32_t& value : values) value = 0;

  //! [threads]
  SharedQueue shared{gpu};
  std::array<Completion, 4> last;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Queue mine = shared.producer();  // this thread's: nothing here is shared but the ring
      BatchSubmitter batch{mine};
      for (uint32_t i = 0; i < steps; ++i)
        batch.dispatch(advance, Grid{n}.by(64), values.data() + t * n, i);
      last[t] = batch.submit();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Completion& each : last) each.wait();  // any thread may wait
  //! [threads]

  uint32_t expected = 0;
  for (uint32_t i = 0; i < steps; ++i) expected = 3 * expected + i;
  bool right = true;
  for (const uint32_t value : values) right = right && value == expected;
  std::printf("%s results\n", right ? "right" : "wrong");
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "threads: %s\n", error.what());
  return 1;
}
