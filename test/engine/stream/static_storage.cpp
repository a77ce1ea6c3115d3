// A program under test, not a test: streams and the objects they use in static storage, where they
// outlive the Runtime and main(). Exit code 0: the results are right, and nothing is left after all
// destructors. Exit code 1: otherwise; stderr has the reason.
#include <unistd.h>
#include <uptempo/kernels/basics.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <optional>
#include <sstream>

#include "test/support/holdings.hpp"

using namespace uptempo;

namespace {

constexpr uint32_t kCount = 256;

void fail(const char* what) {
  std::fprintf(stderr, "static_storage: %s\n", what);
  _exit(1);
}

// Holdings of a process in which a Runtime was created and destroyed.
std::optional<test::Holdings> before;

// Destroyed after all the others.
struct Judge {
  ~Judge() {
    if (!last_event || !last_event->ready()) fail("an event does not outlive everything else");
    const test::Holdings after = test::holdings();
    if (after == *before) return;
    std::ostringstream text;
    text << after << ", was " << *before;
    fail(text.str().c_str());
  }
  std::optional<Event> last_event;
};
Judge judge;

std::optional<Program> program;
std::optional<PinnedBuffer<uint32_t>> values;
std::optional<Streams> streams;
std::deque<Stream> all;
std::optional<TimedEvent> timed;
std::optional<Signal> gate;

void run() {
  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  program.emplace(gpu, builtin_kernels::basics());
  values.emplace(gpu, kCount);
  streams.emplace(gpu);
  for (int i = 0; i < 5; ++i) all.emplace_back(*streams);
  timed.emplace();
  gate.emplace(SignalKind::interrupt, 0);

  const auto chain = program->kernel<uint32_t*, uint32_t>("chain_increment");
  std::ranges::fill(values->span(), 1u);
  uint32_t expected = 1;
  Event last;
  for (uint32_t step = 0; step < 50; ++step) {
    Stream& stream = all[step % all.size()];
    stream.after(last);
    stream.launch(chain, Grid{kCount}.by(64), values->data(), step);
    last = stream.record();
    expected = expected * 3 + step;
  }
  all.front().after(last);
  all.front().after(*gate);
  all.front().record(*timed);
  streams->synchronize();
  if (std::ranges::count(values->span(), expected) != kCount) fail("the results are wrong");
  judge.last_event = last;
}

}  // namespace

int main() {
  { const Runtime runtime; }
  before = test::holdings();
  run();
  return 0;
}
