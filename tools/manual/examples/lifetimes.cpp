// Objects that may be destroyed early, and memory that the library frees in time.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>
#include <optional>
#include <utility>

using namespace uptempo;

int main() try {
  constexpr uint32_t n = 256;
  std::optional<Runtime> runtime{std::in_place};
  Agent gpu = runtime->gpu();
  std::optional<Program> program{std::in_place, gpu, kernels::steps()};
  auto advance = program->kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  PinnedBuffer<uint32_t> values{gpu, n};
  for (uint32_t& value : values) value = 0;

  //! [early]
  program.reset();  // the Kernel keeps the code loaded
  Queue queue{gpu};
  Completion done;
  {
    BatchSubmitter batch{queue};
    batch.dispatch(advance, Grid{n}.by(64), values.data(), 1u);
    done = batch.submit();
    batch.dispatch(advance, Grid{n}.by(64), values.data(), 1u);
  }  // the submitted dispatch runs; the other one is dropped
  done.wait();
  //! [early]
  bool right = values[0] == 1;

  //! [free]
  Streams streams{gpu};
  Event copied;
  {
    Stream stream{streams};
    DeviceBuffer<uint32_t> scratch{gpu, n};
    stream.fill(scratch, 5u);
    stream.launch(advance, Grid{n}.by(64), scratch.data(), 1u);
    stream.copy(values, scratch);
    copied = stream.record();
    stream.free_after_work(std::move(scratch));  // once the work above is complete
  }                                              // the stream's work continues
  copied.wait();
  //! [free]
  right = right && values[0] == 16;

  //! [end]
  runtime.reset();  // ends HSA: queues, buffers and kernels are invalid from here on
  bool refused = false;
  try {
    queue.pressure();
  } catch (const Error&) {
    refused = true;  // no crash
  }
  //! [end]
  std::printf("%s results\n", right && refused ? "right" : "wrong");
  return right && refused ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "lifetimes: %s\n", error.what());
  return 1;
}
