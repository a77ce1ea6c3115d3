// A program that is compiled with -fno-exceptions: it includes all public headers, sets up, and
// then uses try_ forms, whose refusals it counts. It exits with 0 if every one is as expected.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#error "compile this program with -fno-exceptions"
#endif

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  ++failures;
}

template <class T>
void check_refused(const Tried<T>& tried, ErrorCode code, const char* what) {
  const bool is_expected = !tried && tried.code() == code && tried.error().code() == code;
  if (!is_expected)
    std::fprintf(stderr, "%s: expected %s, found %s\n", what, to_string(code).c_str(),
                 tried ? "a value" : tried.error().what());
  failures += !is_expected;
}

// x = 3 x + addend, `times` times, as the kernel chain_increment.
uint32_t chained(uint32_t x, uint32_t times, uint32_t addend) {
  for (uint32_t i = 0; i < times; ++i) x = 3 * x + addend;
  return x;
}

}  // namespace

int main() {
  const Deadline soon = Deadline::after(60s);
  Runtime runtime;
  const Agent gpu = runtime.gpu();
  const Program program{gpu, builtin_kernels::basics()};
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const auto any = program.kernel<Arguments>("chain_increment");
  const PinnedBuffer<uint32_t> x{gpu, 64};
  for (uint32_t i = 0; i < 64; ++i) x.data()[i] = i;
  const Grid grid = Grid{64}.by(64);

  Queue queue{gpu, {.packets = 256, .kernarg_bytes = 256 << 10}};
  BatchSubmitter batch{queue};
  const Prepared step = batch.prepare(chain, grid);
  check(static_cast<bool>(batch.try_dispatch(chain, grid, x.data(), 7u)), "try_dispatch");
  check(static_cast<bool>(step.try_dispatch(x.data(), 7u)), "Prepared::try_dispatch");
  const Tried<Completion> submitted = batch.try_submit();
  check(submitted && submitted->try_wait(soon), "try_submit and try_wait");

  check_refused(batch.try_dispatch(chain, Grid{0}, x.data(), 7u), ErrorCode::argument, "geometry");
  const std::array<std::byte, 4> few{};
  check_refused(batch.try_dispatch(any, grid, Arguments(few)), ErrorCode::argument, "arguments");
  uint32_t packets = 0;
  while (const auto added = batch.try_dispatch(chain, grid, x.data(), 7u)) ++packets;
  check_refused(batch.try_dispatch(chain, grid, x.data(), 7u), ErrorCode::kernargs, "kernargs");
  check(packets == batch.size() && packets >= 256, "a batch that fills the kernargs");
  check_refused(batch.try_submit(), ErrorCode::too_long, "a batch longer than the ring");
  batch.clear();

  Recording recording{queue};
  (void)recording.dispatch(chain, grid, x.data(), 7u);
  const Tried<Completion> replayed = recording.try_replay(queue);
  check(replayed && replayed->try_wait(soon), "try_replay");

  Streams streams{gpu};
  Stream stream{streams};
  check(static_cast<bool>(stream.try_launch(chain, grid, x.data(), 7u)), "try_launch");
  check_refused(stream.try_launch(chain, Grid{0}, x.data(), 7u), ErrorCode::argument,
                "the geometry of a launch");
  check(static_cast<bool>(stream.try_synchronize(soon)), "try_synchronize");
  for (uint32_t i = 0; i < 64; ++i)
    if (x.data()[i] != chained(i, 4, 7)) return check(false, "four steps on the device"), 1;

  // The templates of copies and of host arrays, which end what they have begun.
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> words{gpu, 64};
  std::vector<uint32_t> host(64);
  copier.fill(words, 9u);
  copier.copy(host, words);
  Launcher launcher{streams, chain};
  launcher.launch(stream, grid, in_out(host), 1u);
  for (const uint32_t word : host) check(word == 28, "a launch with a host array");

  Signal never{SignalKind::interrupt, 1};
  batch.after(never);
  check(static_cast<bool>(batch.try_dispatch(chain, grid, x.data(), 7u)), "a dispatch that waits");
  const Tried<Completion> held = batch.try_submit();
  check(static_cast<bool>(held), "a submission that waits");
  if (held) check_refused(held->try_wait(Deadline::after(1ms)), ErrorCode::deadline, "a wait");
  hsa_signal_store_screlease(never.handle(), 0);
  if (held) check(static_cast<bool>(held->try_wait(soon)), "the end of the wait");
  if (failures == 0) std::puts("all refusals are values");
  return failures != 0;
}
