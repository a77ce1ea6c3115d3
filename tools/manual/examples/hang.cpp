// A kernel that waits for a flag which is set late, and what the host learns meanwhile.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <chrono>
#include <cstdio>

using namespace uptempo;
using namespace std::chrono_literals;

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  auto wait_until_set = program.kernel<uint32_t*>("wait_until_set");
  PinnedBuffer<uint32_t> flag{gpu, 1};
  flag[0] = 0;

  //! [deadline]
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(wait_until_set, Grid{1}.by(1), flag.data());
  batch.submit();
  try {
    queue.drain(Deadline::after(3s));
  } catch (const Error& error) {  // names the submission, its line and its kernels
    std::printf("%s\n%s\n", error.what(), queue.report().c_str());
  }
  //! [deadline]

  *static_cast<volatile uint32_t*>(flag.data()) = 1;
  queue.wait();
} catch (const Error& error) {
  std::fprintf(stderr, "hang: %s\n", error.what());
  return 1;
}
