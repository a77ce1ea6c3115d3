// The facts of an Error, and the same without exceptions.
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>

using namespace uptempo;

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, kernels::steps()};
  //! [catch]
  try {
    program.kernel<float*, uint32_t>("advance");  // its first argument is uint*
    return 1;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    std::printf("code:   %s\n", to_string(error.code()).c_str());
    std::printf("call:   %s\n", error.call().c_str());
    std::printf("asked:  %s\n", error.asked().c_str());
    std::printf("found:  %s\n", error.found().c_str());
    std::printf("remedy: %s\n", error.remedy().c_str());
    std::printf("status: %s\n", status_name(error.status()).c_str());
  }
  //! [catch]

  //! [tried]
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");
  PinnedBuffer<uint32_t> values{gpu, 256};
  const Grid too_large = Grid{4096}.by(4096);
  if (const auto packet = batch.try_dispatch(advance, too_large, values.data(), 1u)) {
    return 1;
  } else if (is_exhausted(packet.code())) {
    // No room now; nothing has changed.
  } else {
    std::printf("%s\n", packet.error().what());
  }
  //! [tried]
} catch (const Error& error) {
  std::fprintf(stderr, "errors: %s\n", error.what());
  return 1;
}
