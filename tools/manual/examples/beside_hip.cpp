// Uptempo's launches between HIP's copies, in the order of a HIP stream.
#include <uptempo/hip/hip.hpp>
#include <uptempo/kernels/steps.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace uptempo;

void require(hipError_t status) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "beside_hip: %s\n", hipGetErrorString(status));
  std::exit(1);
}

int main() try {
  constexpr uint32_t n = 256;
  constexpr size_t bytes = n * sizeof(uint32_t);
  uint32_t* values = nullptr;
  hipStream_t hip_stream = nullptr;
  require(hipMalloc(reinterpret_cast<void**>(&values), bytes));
  require(hipStreamCreateWithFlags(&hip_stream, hipStreamNonBlocking));
  std::vector<uint32_t> host(n, 1);

  //! [after]
  Runtime runtime;
  Agent gpu = hip::agent(runtime, 0);  // of HIP's device 0
  Program program{gpu, kernels::steps()};
  auto advance = program.kernel<uint32_t*, uint32_t>("advance");  // values = 3 values + addend
  Queue queue{gpu};

  require(hipMemcpyAsync(values, host.data(), bytes, hipMemcpyHostToDevice, hip_stream));
  hip::after(queue, hip_stream);  // the queue's later work follows the copy
  BatchSubmitter batch{queue};
  for (uint32_t i = 0; i < 100; ++i) batch.dispatch(advance, Grid{n}.by(64), values, i);
  batch.submit();
  hip::after(hip_stream, queue);  // the stream's later work follows the batch
  require(hipMemcpyAsync(host.data(), values, bytes, hipMemcpyDeviceToHost, hip_stream));
  require(hipStreamSynchronize(hip_stream));
  //! [after]

  uint32_t expected = 1;
  for (uint32_t i = 0; i < 100; ++i) expected = 3 * expected + i;
  for (const uint32_t value : host)
    if (value != expected) return 1;
  std::printf("right results\n");
} catch (const Error& error) {
  std::fprintf(stderr, "beside_hip: %s\n", error.what());
  return 1;
}
