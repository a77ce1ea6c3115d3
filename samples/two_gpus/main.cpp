// One array on two GPUs. In each step every element becomes the sum of its neighbours; each GPU
// computes its half. After a step, each GPU copies its edge into the other's halo: the cell beside
// that one's half. Events order the steps of both on the devices; the host waits once, at the end.
//
// It needs two GPUs, which must be able to access each other's memory. On virtual ones:
//
//   uptempo-vgpu --gpus 2 -- two_gpus
//   uptempo-vgpu --gpus gfx90a,gfx908 -- two_gpus
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace uptempo;

namespace {

constexpr uint32_t kHalf = 32768, kSteps = 20;  // sums of 20 steps are exact in a float

using Add = Kernel<float*, const float*, const float*, uint32_t>;

// Half of the array on one GPU, twice: a step reads one copy and writes the other. Each copy is
// [halo] [kHalf elements] [halo].
struct Half {
  // `both`: the GPU of this half, and the other one, which writes the halo.
  Half(std::span<const Agent> both, bool is_left)
      : streams(both.front()),
        stream(streams),
        add(Program(both.front(), builtin_kernels::basics())
                .kernel<float*, const float*, const float*, uint32_t>("vector_add")),
        copies{DeviceBuffer<float>{both, kHalf + 2}, DeviceBuffer<float>{both, kHalf + 2}},
        owner(both.front()),
        edge(is_left ? kHalf : 1),
        halo(is_left ? kHalf + 1 : 0) {}

  Streams streams;
  Stream stream;
  Add add;
  std::array<DeviceBuffer<float>, 2> copies;
  Agent owner;
  size_t edge, halo;  // elements beside the other half
  Event sent;         // after the copy of the edge
};

void step(Half& half, const Half& other, uint32_t number) {
  // The other GPU has sent its edge, and has read the halo that this step's copy overwrites.
  half.stream.after(other.sent);
  const DeviceBuffer<float>&from = half.copies[number % 2], &to = half.copies[1 - number % 2];
  half.stream.launch(half.add, Grid{kHalf}.by(256), to.data() + 1, from.data(), from.data() + 2,
                     kHalf);
  half.stream.copy(CopyTarget::peer(other.owner, other.copies[1 - number % 2].data() + other.halo,
                                    sizeof(float)),
                   CopySource::device(to.data() + half.edge, sizeof(float)));
}

bool run(const Runtime& runtime) {
  const std::array<Agent, 2> left_first{runtime.gpus()[0], runtime.gpus()[1]};
  const std::array<Agent, 2> right_first{left_first[1], left_first[0]};
  std::array<Half, 2> halves{Half{left_first, true}, Half{right_first, false}};

  std::vector<float> expected(2 * kHalf + 2);
  for (uint32_t i = 0; i < 2 * kHalf; ++i) expected[i + 1] = static_cast<float>(i % 7);
  for (size_t h = 0; h < 2; ++h) {
    // The outermost cells stay 0. Inner halos begin with the other half's edge.
    halves[h].stream.fill(halves[h].copies[1], 0.0f);
    halves[h].stream.copy(halves[h].copies[0],
                          std::span<const float>(expected).subspan(h * kHalf, kHalf + 2));
    halves[h].sent = halves[h].stream.record();
  }
  for (uint32_t number = 0; number < kSteps; ++number) {
    for (size_t h = 0; h < 2; ++h) step(halves[h], halves[1 - h], number);
    for (Half& half : halves) half.sent = half.stream.record();
  }
  std::vector<float> found(2 * kHalf);
  for (size_t h = 0; h < 2; ++h)
    halves[h].stream.copy(
        std::span(found).subspan(h * kHalf, kHalf),
        CopySource::device(halves[h].copies[kSteps % 2].data() + 1, kHalf * sizeof(float)));
  for (Half& half : halves) half.stream.synchronize();

  std::vector<float> before = expected;
  for (uint32_t number = 0; number < kSteps; ++number) {
    before.swap(expected);
    for (size_t i = 1; i <= 2 * kHalf; ++i) expected[i] = before[i - 1] + before[i + 1];
  }
  const bool right = std::equal(found.begin(), found.end(), expected.begin() + 1);
  std::printf("%u steps of %u values on %s and %s, %s\n", kSteps, 2 * kHalf,
              name_and_node(left_first[0]).c_str(), name_and_node(left_first[1]).c_str(),
              right ? "equal to the host's result" : "DIFFERENT from the host's result");
  return right;
}

void require_two_gpus(const Runtime& runtime) {
  if (runtime.gpus().size() < 2)
    throw std::runtime_error(
        "this machine has one GPU, and two are needed; uptempo-vgpu --gpus 2 gives the program two "
        "virtual ones");
  for (size_t i = 0; i < 2; ++i)
    if (!can_reach(runtime.gpus()[i], runtime.gpus()[1 - i]))
      throw std::runtime_error(name_and_node(runtime.gpus()[i]) + " cannot access memory of " +
                               name_and_node(runtime.gpus()[1 - i]));
}

}  // namespace

int main() try {
  const Runtime runtime;
  require_two_gpus(runtime);
  return run(runtime) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "two_gpus: %s\n", error.what());
  return 1;
}
