// libFuzzer's entry point for one target, which the build names UPTEMPO_FUZZ_TARGET.
#include "test/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uptempo::fuzz::UPTEMPO_FUZZ_TARGET({data, size});
  return 0;
}
