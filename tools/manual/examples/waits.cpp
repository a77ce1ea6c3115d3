// Ways to wait: Completion, Event, TimedEvent, Signal.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

using namespace uptempo;
using namespace std::chrono_literals;

int main() try {
  constexpr uint32_t n = 256;
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  PinnedBuffer<uint32_t> memory{gpu, n};
  uint32_t* const values = memory.data();
  for (uint32_t& value : memory) value = 0;
  const Grid grid = Grid{n}.by(64);
  bool right = true;

  //! [completion]
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(advance, grid, values, 1u);
  const Completion done = batch.submit();
  if (!done.wait(Deadline::after(10s))) return 1;  // or done.wait(), or done.ready()
  //! [completion]
  right = right && values[0] == 1;

  //! [notifier]
  CompletionNotifier notifier{64};  // at most 64 completions at a time
  batch.dispatch(advance, grid, values, 1u);
  notifier.watch(batch.submit(), 17);  // 17: a number of the program's, for take()
  pollfd ready{.fd = notifier.fd(), .events = POLLIN, .revents = 0};
  poll(&ready, 1, 10'000);
  uint64_t count = 0;
  if (read(notifier.fd(), &count, sizeof count) != sizeof count) return 1;
  while (const auto notice = notifier.take()) right = right && notice->tag == 17 && !notice->failed;
  //! [notifier]
  right = right && values[0] == 4;

  //! [event]
  Streams streams{gpu};
  Stream one{streams}, two{streams};
  one.launch(advance, grid, values, 1u);
  two.after(one.record());  // on the device; the host does not wait
  two.launch(advance, grid, values, 2u);
  two.synchronize();
  //! [event]
  right = right && values[0] == 41;

  //! [timed]
  TimedEvent begin, end;
  one.record(begin);
  one.launch(advance, grid, values, 1u);
  one.record(end);
  end.wait();
  const std::chrono::nanoseconds took = elapsed(begin, end);
  //! [timed]
  right = right && took > 0ns;

  //! [signal]
  const Signal halo{SignalKind::interrupt, 1};  // 1: not yet
  Queue other{gpu};                             // often of another GPU
  BatchSubmitter left{queue}, right_half{other};
  left.dispatch(advance, grid, values, 1u);
  left.complete_with(halo);
  right_half.after(halo);
  right_half.dispatch(advance, grid, values, 2u);
  left.submit();
  right_half.submit().wait();
  //! [signal]
  right = right && values[0] == 3 * (3 * (3 * 41 + 1) + 1) + 2;

  std::printf("%s results\n", right ? "right" : "wrong");
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "waits: %s\n", error.what());
  return 1;
}
