// A JIT: an expression of the command line becomes a kernel.
#include <uptempo/uptempo.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace uptempo;

//! [compile]
// Compiles HIP source for a GPU. Returns the bytes that hipcc made.
std::vector<char> compile(const std::string& source, const std::string& target) {
  std::ofstream("jit.hip") << source;
  const std::string command =
      "HIP_PLATFORM=amd hipcc --genco -O2 --offload-arch=" + target + " jit.hip -o jit.co";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  std::ifstream code("jit.co", std::ios::binary);
  return {std::istreambuf_iterator<char>(code), {}};
}
//! [compile]

int main(int argc, char** argv) try {
  const std::string expression = argc > 1 ? argv[1] : "2 * x[i] + a";
  //! [launch]
  Runtime runtime;
  Agent gpu = runtime.gpu();
  const std::string source = R"(#include <hip/hip_runtime.h>
extern "C" __global__ void jit(float* y, const float* x, float a, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = )" + expression +
                             ";\n}\n";
  const std::vector<char> code = compile(source, gpu.name());  // must outlive the Program
  Program program{gpu, std::as_bytes(std::span(code))};
  Kernel<Arguments> jit = program.kernel<Arguments>("jit");  // arguments at run time

  uint32_t n = 1000;
  float a = 1;
  PinnedBuffer<float> x{gpu, n}, y{gpu, n};
  for (uint32_t i = 0; i < n; ++i) x[i] = float(i);
  float *px = x.data(), *py = y.data();
  const void* params[] = {&py, &px, &a, &n};  // as for hipModuleLaunchKernel

  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(jit, Grid::blocks((n + 255) / 256).threads(256), params);
  batch.submit().wait();
  //! [launch]
  for (const uint32_t i : {0u, 1u, n - 1}) std::printf("y[%u] = %g\n", i, y[i]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "jit: %s\n", error.what());
  return 1;
}
