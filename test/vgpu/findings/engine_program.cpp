// A program of Uptempo with one mistake, which the first argument names.
//
//   read    a batch reads what an earlier dispatch writes, and does not declare it
//   stream  a Stream reads what another one writes, without an Event between them
//   leak    a buffer and the Runtime are never destroyed
//   race    a kernel in HIP's language reads LDS without a barrier
#include <uptempo/kernels/findings.hpp>
#include <uptempo/kernels/findings_race.hpp>
#include <uptempo/uptempo.hpp>

#include <cstdint>
#include <string>

using namespace uptempo;

namespace {

constexpr uint32_t kCount = 64;
namespace kernels = uptempo::vgpu::test::kernels;

void run(const std::string& mistake) {
  const Runtime runtime;
  const Agent gpu = runtime.gpu();
  const Program program{gpu, kernels::findings()};
  const auto fill = program.kernel<uint32_t*, uint32_t>("_Z4fillPjj");
  const auto add = program.kernel<const uint32_t*, uint32_t*>("_Z3addPKjPj");
  const DeviceBuffer<uint32_t> words{gpu, kCount}, sums{gpu, kCount}, others{gpu, kCount};
  const Grid grid = Grid{kCount}.by(kCount);
  if (mistake == "read") {
    Queue queue{gpu};
    BatchSubmitter batch{queue};
    batch.dispatch(fill, grid, words.data(), 1u).writes(words.data(), kCount);
    batch.dispatch(add, grid, words.data(), sums.data()).writes(sums.data(), kCount);
    // The last packet waits for all others.
    batch.dispatch(fill, grid, others.data(), 1u).writes(others.data(), kCount);
    batch.submit().wait();
  } else if (mistake == "stream") {
    Streams streams{gpu, {.hardware_queues = 2}};
    Stream one{streams}, other{streams};
    one.launch(fill, grid, words.data(), 1u);
    other.launch(add, grid, words.data(), sums.data());
    other.synchronize();
    one.synchronize();
  } else if (mistake == "race") {
    const Program races{gpu, kernels::findings_race()};
    const auto rotate = races.kernel<uint32_t*>("rotate");
    Queue queue{gpu};
    BatchSubmitter batch{queue};
    batch.dispatch(rotate, Grid::blocks(1).threads(256), words.data());
    batch.submit().wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string mistake = argv[1];
  if (mistake == "leak") {
    const auto* const runtime = new Runtime;
    return (new DeviceBuffer<uint32_t>{runtime->gpu(), kCount})->data() == nullptr ? 1 : 0;
  }
  run(mistake);
  return 0;
}
