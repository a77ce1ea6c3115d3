// Copies and fills as recorded dispatches: random boxes against the host, and the choice between
// the kernels.
#include <uptempo/uptempo.hpp>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <uptempo/stream/copy/transfer_kernels.hpp>
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace uptempo::detail;

namespace {

struct Device : test::OnDevice {
  TransferKernels kernels = load_transfer_kernels(gpu);
  TransferGrids grids{gpu.properties().compute_units};
};

// A box inside memory of `room` bytes.
struct Shape {
  size_t width, height, depth, to, from, to_pitch = 0, from_pitch = 0, to_slice = 0, from_slice = 0;
};

Shape random_shape(std::mt19937_64& random, size_t room) {
  const auto below = [&](size_t limit) { return random() % limit; };
  for (;;) {
    Shape s{.width = below(90),
            .height = below(6),
            .depth = below(4),
            .to = below(20),
            .from = below(20)};
    // A third each: contiguous, rows apart, everything apart.
    const uint64_t kind = below(3);
    s.to_pitch = s.width + (kind > 0 ? below(9) : 0);
    s.from_pitch = s.width + (kind > 0 ? below(9) : 0);
    s.to_slice = s.to_pitch * s.height + (kind > 1 ? below(9) : 0);
    s.from_slice = s.from_pitch * s.height + (kind > 1 ? below(9) : 0);
    if (s.depth * std::max(s.to_slice, s.from_slice) + 40 <= room) return s;
  }
}

}  // namespace

TEST_CASE("recorded transfers copy and fill any box, and nothing else", "[device][stream][copy]") {
  Device device;
  constexpr size_t kRoom = 2048, kBoxes = 60;
  std::mt19937_64 random(3);
  const PinnedBuffer<uint8_t> from{device.gpu, kRoom}, to{device.gpu, kBoxes * kRoom};
  const std::span<uint8_t> source(from.data(), from.size()), target(to.data(), to.size());
  for (uint8_t& byte : source) byte = static_cast<uint8_t>(random());
  std::memset(target.data(), 0xee, target.size());
  std::vector<uint8_t> expected(target.begin(), target.end());

  Queue queue{device.gpu};
  Recording recording{queue};
  for (size_t box = 0; box < kBoxes; ++box) {
    Shape s = random_shape(random, kRoom);
    const bool fills = box % 3 == 0;
    if (fills) {
      s.depth = 1;
      s.width -= s.width % 4;
    }
    const TransferBox given{.to = to.data() + box * kRoom + s.to,
                            .from = fills ? nullptr : from.data() + s.from,
                            .width_bytes = s.width,
                            .height = s.height,
                            .depth = s.depth,
                            .to_pitch = s.to_pitch,
                            .from_pitch = s.from_pitch,
                            .to_slice_pitch = s.to_slice,
                            .from_slice_pitch = s.from_slice};
    const uint64_t word = 0x0403020104030201 + box * 0x0000000100000001;
    const TransferDispatch dispatch =
        fills ? fill_dispatch(device.kernels, device.grids, given, {word, word})
              : copy_dispatch(device.kernels, device.grids, given);
    recording.dispatch(dispatch.kernel, dispatch.grid, dispatch.arguments());
    for (size_t slice = 0; slice < s.depth; ++slice)
      for (size_t row = 0; row < s.height; ++row)
        for (size_t i = 0; i < s.width; ++i)
          expected[box * kRoom + s.to + slice * s.to_slice + row * s.to_pitch + i] =
              fills ? static_cast<uint8_t>(word >> (i % 8 * 8))
                    : source[s.from + slice * s.from_slice + row * s.from_pitch + i];
  }
  recording.replay(queue).wait();
  size_t wrong = 0;
  while (wrong < expected.size() && target[wrong] == expected[wrong]) ++wrong;
  INFO("box " << wrong / kRoom << ", byte " << wrong % kRoom);
  CHECK(wrong == expected.size());
}

TEST_CASE("a transfer takes the kernel with the fewest arguments", "[device][stream][copy]") {
  const Device device;
  const auto kernel_of = [&](const TransferBox& box) {
    return copy_dispatch(device.kernels, device.grids, box).kernel.name();
  };
  CHECK(kernel_of({.width_bytes = 100}) == "copy_bytes");
  CHECK(kernel_of({.width_bytes = 10, .height = 3, .to_pitch = 10, .from_pitch = 10}) ==
        "copy_bytes");
  CHECK(kernel_of({.width_bytes = 10, .height = 3, .to_pitch = 10, .from_pitch = 12}) ==
        "copy_rows");
  TransferBox box{.width_bytes = 10,
                  .height = 3,
                  .depth = 2,
                  .to_pitch = 16,
                  .from_pitch = 12,
                  .to_slice_pitch = 48,
                  .from_slice_pitch = 36};
  CHECK(kernel_of(box) == "copy_rows");
  box.to_slice_pitch = 64;
  CHECK(kernel_of(box) == "copy_slices");
  box.height = 1;
  CHECK(kernel_of(box) == "copy_rows");
  box.depth = 0;
  CHECK(kernel_of(box) == "copy_bytes");
}
