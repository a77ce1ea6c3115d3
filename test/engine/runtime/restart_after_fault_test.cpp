// A second Runtime after a GPU memory fault, in a process without another user of HSA.
#include <uptempo/kernels/basics.hpp>

#include <uptempo/uptempo.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

// Waits for a dispatch that accesses an address without memory, and returns the Error.
std::string fault() {
  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  const Program program(gpu, builtin_kernels::basics());
  Queue queue(gpu, {.drain_timeout = 100ms});
  BatchSubmitter batch(queue);
  batch.dispatch(program.kernel<uint32_t*, uint32_t>("fill"), Grid{64},
                 reinterpret_cast<uint32_t*>(0x7000), 1u);
  const Completion completion = batch.submit();
  return test::error_of<Error>([&] { (void)completion.wait(Deadline::after(60s)); });
}

}  // namespace

// ROCr reports one fault per initialisation, and 6.1 stays initialised.
TEST_CASE("a second Runtime reports faults again, or cannot be created", "[runtime]") {
  CHECK(test::contains(fault(), "0x7000"));
  std::string second;
  try {
    second = fault();
  } catch (const Error& error) {
    CHECK(test::contains(error.what(), "continue in a new process"));
    return;
  }
  CHECK(test::contains(second, "0x7000"));
}
