// A program that slows down before a queue is full.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

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
  auto wait_until_set = program.kernel<uint32_t*>("wait_until_set");
  PinnedBuffer<uint32_t> values{gpu, n}, flag{gpu, 1};
  for (uint32_t& value : values) value = 0;
  flag[0] = 0;

  //! [full]
  Queue queue{gpu, {.publications = 2}};  // two unfinished submissions at a time
  BatchSubmitter batch{queue};
  batch.dispatch(wait_until_set, Grid{1}.by(1), flag.data());
  batch.submit();
  batch.dispatch(advance, Grid{n}.by(64), values.data(), 1u);
  batch.submit();

  batch.dispatch(advance, Grid{n}.by(64), values.data(), 1u);
  const Tried<Completion> tried = batch.try_submit();  // no room now; the batch keeps its packets
  const bool was_full = !tried && tried.code() == ErrorCode::timeline;
  const bool is_high = queue.pressure().high();
  //! [full]

  //! [deadline]
  bool gave_up = false;
  try {
    batch.submit(Deadline::after(50ms));
  } catch (const Error& error) {  // names what is full, its size and its use
    std::printf("%s\n", error.what());
    gave_up = is_exhausted(error.code());
  }
  //! [deadline]

  *static_cast<volatile uint32_t*>(flag.data()) = 1;  // the kernel ends
  //! [later]
  batch.submit().wait();  // the same packets; waits for room
  //! [later]
  const bool right = was_full && is_high && gave_up && values[0] == 4;
  std::printf("%s results\n", right ? "right" : "wrong");
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "pressure: %s\n", error.what());
  return 1;
}
