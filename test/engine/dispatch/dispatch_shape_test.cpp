// The kernarg words that all dispatches of one kernel and grid share: everything but explicit
// arguments.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include <uptempo/dispatch/detail/dispatch_shape.hpp>
#include <uptempo/program/metadata.hpp>
#include <uptempo/runtime/error.hpp>
#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using namespace uptempo::detail;

namespace {

// Explicit arguments of 1 to 16 bytes with gaps between, then hidden ones: blocks like a
// compiler's, and less regular ones.
KernelMetadata random_kernel(std::mt19937& random) {
  KernelMetadata kernel;
  kernel.name = "random";
  kernel.kernarg_alignment = 8;
  uint32_t at = 0;
  const auto add = [&](ArgumentKind kind, uint32_t size) {
    at = (at + size - 1) / size * size;
    kernel.arguments.push_back({.kind = kind,
                                .kind_name = "any",
                                .offset = at,
                                .size = size,
                                .name = {},
                                .type_name = {}});
    at += size;
  };
  for (auto i = random() % 6; i > 0; --i) {
    add(ArgumentKind::by_value, 1u << random() % 5);
    if (random() % 4 == 0) at += static_cast<uint32_t>(random() % 9);
  }
  if (random() % 4 != 0) {
    at = (at + 7) / 8 * 8;
    add(ArgumentKind::hidden_block_count_x, 4);
    add(ArgumentKind::hidden_group_size_x, 2);
    add(ArgumentKind::hidden_none, 8);
    add(ArgumentKind::hidden_grid_dims, 2);
    add(ArgumentKind::hidden_queue_ptr, 8);
  }
  // In version 5, most of the segment follows the last argument.
  const uint32_t sizes_after[] = {0, 4, 8, 190};
  kernel.kernarg_size = at + sizes_after[random() % std::size(sizes_after)];
  return kernel;
}

KernelInfo info_of(const KernelMetadata& metadata) {
  return {.name = metadata.name,
          .object = 0x1000,
          .max_workgroup_size = 1024,
          .arguments = ArgumentLayout(metadata, false)};
}

const QueueFacts kFacts{.queue_address = 0x123456789abcdef0};

}  // namespace

TEST_CASE(
    "implicit words and explicit arguments fill the block up to the last argument, whatever "
    "it held before, and leave the rest",
    "[dispatch_shape]") {
  std::mt19937 random(3);
  size_t words = 0;
  for (int round = 0; round < 2000; ++round) {
    const KernelMetadata metadata = random_kernel(random);
    const KernelInfo info = info_of(metadata);
    const Grid grid = Grid{static_cast<uint32_t>(random() % 1000 + 16), 2}.by(16, 2);
    DispatchShapes shapes(kFacts, aql::HeaderFlags{});
    const DispatchShape& shape = shapes.of(info, grid);
    const size_t bytes = (metadata.kernarg_size + size_t{7}) / 8 * 8;
    REQUIRE(shape.block_bytes == KernargPool::block_bytes(metadata.kernarg_size));
    std::vector<std::byte> block(bytes + 8), expected(bytes + 8);
    for (std::byte& byte : block) byte = static_cast<std::byte>(random());
    uint32_t end = 0;  // of the last argument
    for (const ArgumentMetadata& argument : metadata.arguments)
      end = std::max(end, argument.offset + argument.size);
    const auto rest = static_cast<ptrdiff_t>((end + size_t{7}) / 8 * 8);
    const std::vector<std::byte> guard(block.begin() + rest, block.end());
    info.arguments.fill_hidden(expected.data(), grid, kFacts);
    shape.put_implicit(block.data());
    words += shape.implicit.size();
    for (const ArgumentMetadata& argument : metadata.arguments) {
      if (is_hidden(argument.kind)) continue;
      for (uint32_t i = 0; i < argument.size; ++i)
        block[argument.offset + i] = expected[argument.offset + i] =
            static_cast<std::byte>(random());
    }
    CAPTURE(round, metadata.kernarg_size);
    REQUIRE(std::memcmp(block.data(), expected.data(), end) == 0);
    REQUIRE(std::equal(guard.begin(), guard.end(), block.begin() + rest));
  }
  CHECK(words > 2000);
}

TEST_CASE("a shape belongs to one kernel and one grid, and a copied kernel has another shape",
          "[dispatch_shape]") {
  std::mt19937 random(4);
  const KernelInfo info = info_of(random_kernel(random));
  const KernelInfo copy = info;
  DispatchShapes shapes(kFacts, aql::HeaderFlags{});
  const DispatchShape& shape = shapes.of(info, Grid{64});
  CHECK(shape.key == DispatchShape::Key(info, Grid{64}));
  CHECK(shape.key != DispatchShape::Key(info, Grid{64}.by(32)));
  CHECK(shape.key != DispatchShape::Key(info, Grid{128}));
  CHECK(shape.key != DispatchShape::Key(info, Grid{64}.lds(1)));
  CHECK(shape.key != DispatchShape::Key(copy, Grid{64}));
  CHECK(&shapes.of(info, Grid{128}) == &shape);
  CHECK(shape.key == DispatchShape::Key(info, Grid{128}));
}

TEST_CASE("an invalid shape leaves the cached one unchanged", "[dispatch_shape]") {
  std::mt19937 random(5);
  const KernelInfo info = info_of(random_kernel(random));
  DispatchShapes shapes(kFacts, aql::HeaderFlags{});
  const DispatchShape& shape = shapes.of(info, Grid{64});
  CHECK_THROWS_AS(shapes.of(info, Grid{4096}.by(2048)), Error);
  CHECK(shape.key == DispatchShape::Key(info, Grid{64}));
}

TEST_CASE("kernels that share a cache entry are distinguished", "[dispatch_shape]") {
  std::mt19937 random(6);
  DispatchShapes shapes(kFacts, aql::HeaderFlags{});
  std::vector<KernelInfo> kernels;
  for (uint64_t i = 0; i < 200; ++i) {
    kernels.push_back(info_of(random_kernel(random)));
    kernels.back().object = 64 * i;
  }
  for (int round = 0; round < 2000; ++round) {
    const KernelInfo& kernel = kernels[random() % kernels.size()];
    const Grid grid{static_cast<uint32_t>(64 * (random() % 2 + 1))};
    const auto packet =
        aql::packet_as<hsa_kernel_dispatch_packet_t>(shapes.of(kernel, grid).packet);
    REQUIRE(packet.kernel_object == kernel.object);
    REQUIRE(packet.grid_size_x == grid.items.x);
  }
}
