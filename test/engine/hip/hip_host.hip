// A HIP program that includes the public headers: hipcc compiles them and their templates, for the
// host and for the device. Memory of hipMalloc goes through kernels of Uptempo and of HIP in turn.
#include <hip/hip_runtime.h>

#include <uptempo/kernels/basics.hpp>
#include <uptempo/topology/topology.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <tuple>
#include <vector>

using namespace uptempo;

namespace {

constexpr uint32_t kLength = 256;

__global__ void add_one(uint32_t* words) { words[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

void require(hipError_t status, const char* call) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, hipGetErrorString(status));
  std::exit(1);
}

int failures = 0;

class Words {
 public:
  Words() { require(hipMalloc(&data_, kLength * sizeof(uint32_t)), "hipMalloc"); }
  ~Words() { require(hipFree(data_), "hipFree"); }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  uint32_t* data() const { return data_; }

  // Adds one to each word by a kernel of HIP, and expects first, first + 1, ...
  void check(const char* step, uint32_t first) {
    add_one<<<dim3(2), dim3(kLength / 2)>>>(data_);
    std::vector<uint32_t> host(kLength);
    require(hipMemcpy(host.data(), data_, kLength * sizeof(uint32_t), hipMemcpyDeviceToHost),
            "hipMemcpy");
    for (uint32_t i = 0; i < kLength; ++i) {
      if (host[i] == first + i) continue;
      std::printf("%s: word %u is %u instead of %u\n", step, i, host[i], first + i);
      ++failures;
      return;
    }
  }

 private:
  uint32_t* data_ = nullptr;
};

void run() {
  Words words;
  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  const Program program{gpu, builtin_kernels::basics()};
  const auto iota = program.kernel<uint32_t*, uint32_t, uint32_t>("iota");
  const Grid grid = Grid::blocks(dim3(4)).threads(dim3(kLength / 4));

  Queue queue{gpu};
  BatchSubmitter batch{queue};
  batch.dispatch(iota, grid, words.data(), 10u, 1u).writes(words.data(), kLength);
  batch.submit().wait();
  words.check("BatchSubmitter::dispatch", 11);

  batch.prepare(iota, grid).dispatch_each(3, [&](uint32_t i) noexcept {
    return std::tuple(words.data(), 20 + i, 1u);
  });
  batch.submit().wait();
  words.check("Prepared::dispatch_each", 23);

  uint32_t* address = words.data();
  uint32_t first = 30, step = 1;
  void* params[] = {&address, &first, &step};
  batch.dispatch(program.kernel<Arguments>("iota"), grid, params);
  batch.submit().wait();
  words.check("Kernel<Arguments>", 31);

  Recording recording{queue};
  const Node node = recording.dispatch(iota, grid, words.data(), 40u, 1u);
  recording.set<1>(node, 41u);
  recording.replay(queue).wait();
  words.check("Recording::replay", 42);

  Streams streams{gpu};
  Stream stream{streams};
  stream.launch(iota, grid, words.data(), 50u, 1u);
  stream.synchronize();
  words.check("Stream::launch", 51);
  Launcher launcher{streams, iota};
  launcher.launch(stream, grid, words.data(), 60u, 1u);
  stream.synchronize();
  words.check("Launcher::launch", 61);

  if (read_gpu_topology().front().simds == 0) {
    std::printf("topology: a GPU without SIMDs\n");
    ++failures;
  }
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
