// Records dispatches once, replays them, and patches arguments between replays.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>
#include <utility>

using namespace uptempo;

int main() try {
  constexpr uint32_t n = 256;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  Queue queue{gpu};
  PinnedBuffer<uint32_t> values{gpu, n};
  for (uint32_t& value : values) value = 0;

  //! [record]
  Recording step{queue};
  Node first = step.dispatch(advance, Grid{n}.by(64), values.data(), 1u);
  Node second = step.dispatch(advance, Grid{n}.by(64), values.data(), 1u);
  step.replay(queue).wait();  // 0 becomes 3 (3 x 0 + 1) + 1 = 4
  //! [record]
  if (values[0] != 4) return 1;

  //! [patch]
  step.set<1>(second, 5u);    // argument 1 is `addend`; from the next replay on
  step.replay(queue);         // 4 becomes 3 (3 x 4 + 1) + 5 = 44
  step.set<1>(second, 0u);    // the replay in flight keeps its 5
  step.replay(queue).wait();  // 44 becomes 3 (3 x 44 + 1) + 0 = 399
  //! [patch]
  if (values[0] != 399) return 1;

  //! [replace]
  step.set_grid(first, Grid{n / 2}.by(64));  // the first half of the values only
  auto copy = step.replace(second, advance, Grid{n}.by(64), values.data(), 2u);  // `second` ends
  step.replay(queue).wait();
  //! [replace]
  const bool right = values[0] == 3 * (3 * 399 + 1) + 2 && values[n - 1] == 3 * 399 + 2;

  auto spread = program.kernel<uint32_t*, const uint32_t*>("spread");  // sums of both neighbours
  PinnedBuffer<uint32_t> buffers[]{{gpu, n}, {gpu, n}};
  for (uint32_t& value : buffers[0]) value = 1;
  //! [swap]
  uint32_t *now = buffers[0].data(), *next = buffers[1].data();
  Recording turn{queue};
  Node sums = turn.dispatch(spread, Grid{n}.by(64), next, now).reads(now, n).writes(next, n);
  Node grown = turn.dispatch(advance, Grid{n}.by(64), next, 1u).reads(next, n).writes(next, n);
  for (int i = 0; i < 4; ++i) {
    turn.replay(queue);  // begins when the one before it is complete
    std::swap(now, next);
    turn.set<0>(sums, next);  // the declared ranges move with the addresses
    turn.set<1>(sums, now);
    turn.set<0>(grown, next);
  }
  queue.wait();  // 1 has become 3 (1 + 1) + 1 = 7, then 43, 259 and 1555
  //! [swap]
  if (now[0] != 1555 || now[n - 1] != 1555) return 1;

  //! [save]
  Bindings memory;
  memory.add("values", values);  // a file holds names, no addresses
  save_recording(step, "step.recording", memory);
  const auto loaded = load_recording(queue, "step.recording", {program}, memory);
  loaded->set<1>(loaded->node<uint32_t*, uint32_t>(copy.index()), 7u);
  loaded->replay(queue).wait();
  //! [save]
  const bool loaded_right = values[n - 1] == 3 * (3 * 399 + 2) + 7;
  std::printf("%s results\n", right && loaded_right ? "right" : "wrong");
  return right && loaded_right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "recording: %s\n", error.what());
  return 1;
}
