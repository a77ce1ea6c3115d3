// Launchers over doubles: which launches write arguments, where, and that every kernel finds its
// own.
#include <uptempo/stream/launcher.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>

#include <uptempo/program/metadata.hpp>
#include <uptempo/runtime/counters.hpp>
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "tools/support/cost_meter.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

// number at 0, value at 8, then the requested hidden arguments. Space for the others is declared
// without a use, so that it is zero.
struct Hidden {
  bool queue = false;
  bool block_count = false;
};
constexpr uint32_t kQueueAt = 16, kBlockCountAt = 24;

Kernel<uint32_t, uint64_t> pair_kernel(Hidden hidden = {}) {
  DoubleKernel pair{.name = "pair",
                    .kernarg_bytes = 32,
                    .arguments = {argument(ArgumentKind::by_value, 0, 4),
                                  argument(ArgumentKind::by_value, 8, 8)}};
  using Kind = ArgumentKind;
  pair.arguments.push_back(
      argument(hidden.queue ? Kind::hidden_queue_ptr : Kind::hidden_none, kQueueAt, 8));
  pair.arguments.push_back(argument(
      hidden.block_count ? Kind::hidden_block_count_x : Kind::hidden_none, kBlockCountAt, 4));
  return kernel_of<uint32_t, uint64_t>(pair);
}

// Content of a kernel's block at its end.
struct Found {
  uint32_t number;
  uint64_t value, queue;
  uint32_t block_count;
  friend bool operator==(const Found&, const Found&) = default;
};

// In the order in which kernels ended, by grid size, which identifies their stream.
struct Journal {
  std::mutex mutex;
  std::map<uint32_t, std::vector<Found>> by_grid;

  void operator()(const hsa_kernel_dispatch_packet_t& packet) {
    const auto* const block = static_cast<const std::byte*>(packet.kernarg_address);
    Found found{};
    std::memcpy(&found.number, block, 4);
    std::memcpy(&found.value, block + 8, 8);
    std::memcpy(&found.queue, block + kQueueAt, 8);
    std::memcpy(&found.block_count, block + kBlockCountAt, 4);
    const std::lock_guard lock(mutex);
    by_grid[packet.grid_size_x].push_back(found);
  }
};

struct World {
  explicit World(StreamDevicesOptions options = {}, uint32_t queues = 4)
      : devices([&] {
          options.streams.hardware_queues = queues;
          options.at_end = [journal = journal](const hsa_kernel_dispatch_packet_t& packet) {
            (*journal)(packet);
          };
          return options;
        }()) {}
  std::shared_ptr<Journal> journal = std::make_shared<Journal>();
  StreamDevices devices;
};

std::vector<uint64_t> blocks_of(const std::vector<aql::Packet64>& packets) {
  std::vector<uint64_t> blocks;
  for (const aql::Packet64& packet : packets)
    if (aql::packet_type(packet.header()) == aql::PacketType::kernel_dispatch)
      blocks.push_back(reinterpret_cast<uint64_t>(
          aql::packet_as<hsa_kernel_dispatch_packet_t>(packet).kernarg_address));
  return blocks;
}
size_t distinct(const std::vector<uint64_t>& values) {
  return std::set(values.begin(), values.end()).size();
}

}  // namespace

TEST_CASE("equal arguments are written once", "[launcher]") {
  World world(paused(), 1);
  Stream a(world.devices);
  Launcher step(world.devices, pair_kernel(), 8);
  const Spent spent;
  for (int i = 0; i < 10; ++i) step.launch(a, Grid{1}, 7u, uint64_t{8});
  CHECK(spent().argument_misses == 1);
  CHECK(spent().argument_hits == 9);
  CHECK(spent().argument_bytes_saved == 9 * 32);
  CHECK(distinct(blocks_of(world.devices.ring(0))) == 1);
  world.devices.resume();
  a.synchronize();
  CHECK(world.journal->by_grid[1] == std::vector<Found>(10, {7, 8, 0, 0}));
}

TEST_CASE("unless told otherwise, a launcher keeps arguments of 512 bytes and more", "[launcher]") {
  World world({}, 1);
  Stream a(world.devices);
  for (const uint32_t bytes : {504u, 512u}) {
    const auto kernel =
        kernel_of<Arguments>({.name = "bytes",
                              .kernarg_bytes = bytes,
                              .arguments = {argument(ArgumentKind::by_value, 0, bytes)}});
    Launcher step(world.devices, kernel);
    const std::vector<std::byte> given(bytes);
    const Spent spent;
    for (int i = 0; i < 5; ++i) step.launch(a, Grid{1}, std::span<const std::byte>(given));
    CAPTURE(bytes);
    CHECK(spent().argument_hits == (bytes < 512 ? 0 : 4));
    a.synchronize();
  }
}

TEST_CASE("a block that is being read is not written; other arguments use another block",
          "[launcher]") {
  World world(paused(), 1);
  Stream a(world.devices);
  Launcher step(world.devices, pair_kernel(), 3);
  const Spent spent;
  for (uint32_t i = 0; i < 20; ++i) step.launch(a, Grid{1}, i / 2, uint64_t{i / 2});
  // Three blocks of the handle serve two launches each; 14 launches use blocks of the queue.
  CHECK(spent().argument_hits == 3);
  CHECK(spent().argument_misses == 17);
  CHECK(distinct(blocks_of(world.devices.ring(0))) == 17);
  world.devices.resume();
  a.synchronize();
  for (uint32_t i = 0; i < 20; ++i)
    CHECK(world.journal->by_grid[1][i] == Found{i / 2, i / 2, 0, 0});
  // All are complete: one of the three is written again.
  world.devices.pause();
  const Spent again;
  for (int i = 0; i < 2; ++i) step.launch(a, Grid{1}, 100u, uint64_t{100});
  CHECK(again().argument_hits == 1);
  world.devices.resume();
  a.synchronize();
  CHECK(world.journal->by_grid[1][21] == Found{100, 100, 0, 0});
}

TEST_CASE("arguments that alternate are all kept", "[launcher]") {
  World world({}, 1);
  Stream a(world.devices);
  Launcher step(world.devices, pair_kernel(), 8);
  for (const uint32_t sets : {2u, 3u, 8u}) {
    const Spent spent;
    for (uint32_t i = 0; i < 50 * sets; ++i)
      step.launch(a, Grid{1}, 100 * sets + i % sets, uint64_t{1});
    a.synchronize();
    CAPTURE(sets);
    CHECK(spent().argument_misses <= 2 * sets);
  }
}

TEST_CASE("arguments that stop changing are skipped from the second equal launch on",
          "[launcher]") {
  World world({}, 1);
  Stream a(world.devices);
  Launcher step(world.devices, pair_kernel(), 8);
  for (uint32_t i = 0; i < 300; ++i) {
    step.launch(a, Grid{1}, i, uint64_t{i});
    if (i % 3 == 0) a.synchronize();
  }
  a.synchronize();
  const Spent spent;
  for (uint32_t i = 0; i < 50; ++i) step.launch(a, Grid{1}, 1000u, uint64_t{1});
  CHECK(spent().argument_misses == 1);
  CHECK(spent().argument_hits == 49);
  a.synchronize();
}

TEST_CASE("arguments given at run time are skipped if they are equal, whatever is between them",
          "[launcher]") {
  World world({}, 1);
  Stream a(world.devices);
  Launcher step(world.devices, Kernel<Arguments>::of(pair_kernel().shared_info()), 8);
  std::array<uint64_t, 2> packed{};  // number in the low half of the first
  void* params[] = {&packed[0], &packed[1]};
  const Spent spent;
  for (uint64_t i = 0; i < 10; ++i) {
    packed = {7 | i << 32, 8};
    if (i % 2 == 0) {
      step.launch(a, Grid{1}, std::as_bytes(std::span(packed)));
    } else {
      step.launch(a, Grid{1}, params);
    }
  }
  CHECK(spent().argument_misses == 1);
  CHECK(spent().argument_hits == 9);
  packed[1] = 9;
  step.launch(a, Grid{1}, params);
  packed[0] = 10;
  step.launch(a, Grid{1}, std::as_bytes(std::span(packed)));
  CHECK(spent().argument_misses == 3);
  CHECK(contains(error_of<Error>([&] { step.launch(a, Grid{1}, std::span(params).first(1)); }),
                 "pointers to 1 arguments"));
  a.launch(step.kernel(), Grid{1}, params);
  CHECK(contains(error_of<Error>([&] {
                   a.launch(step.kernel(), Grid{1}, std::as_bytes(std::span(packed)).first(15));
                 }),
                 "15 bytes of packed arguments: the kernel takes 16 bytes"));
  a.synchronize();
  std::vector<Found> expected(10, {7, 8, 0, 0});
  expected.insert(expected.end(), {{7, 9, 0, 0}, {10, 9, 0, 0}, {10, 9, 0, 0}});
  CHECK(world.journal->by_grid[1] == expected);
}

TEST_CASE("LDS arrays given at run time are part of the comparison", "[launcher]") {
  World world(paused(), 1);
  Stream a(world.devices);
  const auto kernel =
      kernel_of<Arguments>({.name = "arrays",
                            .kernarg_bytes = 32,
                            .arguments = {argument(ArgumentKind::by_value, 0, 4),
                                          argument(ArgumentKind::dynamic_shared_pointer, 4, 4),
                                          argument(ArgumentKind::dynamic_shared_pointer, 8, 4)},
                            .group_segment_bytes = 20,
                            .max_group_segment_bytes = 256});
  Launcher step(world.devices, kernel, 8);
  const auto words = [](uint32_t first, uint32_t second) {
    return std::bit_cast<std::array<std::byte, 12>>(std::array<uint32_t, 3>{7, first, second});
  };
  const Spent spent;
  step.launch(a, Grid{1}, words(40, 24));  // 20, rounded up to 32; 72, rounded up to 80; 104
  step.launch(a, Grid{1}, words(40, 24));
  CHECK(spent().argument_hits == 1);
  step.launch(a, Grid{1}, words(40, 28));  // the same offsets, another group segment
  step.launch(a, Grid{1}, words(64, 24));
  a.launch(kernel, Grid{1}, words(8, 24));
  CHECK(spent().argument_misses == 2);
  const auto too_much = [&](auto&& launch) {
    CHECK(contains(error_of<Error>(launch), "the sum is 272; the limit is 256"));
  };
  too_much([&] { step.launch(a, Grid{1}, words(40, 192)); });
  too_much([&] { a.launch(kernel, Grid{1}, words(40, 192)); });
  std::vector<uint32_t> segments;
  for (const aql::Packet64& packet : world.devices.ring(0))
    if (aql::packet_type(packet.header()) == aql::PacketType::kernel_dispatch)
      segments.push_back(packet.group_segment_size());
  CHECK(segments == std::vector<uint32_t>{104, 104, 108, 120, 72});
  world.devices.resume();
  a.synchronize();
  std::vector<std::array<uint32_t, 2>> offsets;  // bytes 4 to 7 are not in the journal
  for (const Found& found : world.journal->by_grid[1])
    offsets.push_back({found.number, static_cast<uint32_t>(found.value)});
  CHECK(offsets ==
        std::vector<std::array<uint32_t, 2>>{{7, 80}, {7, 80}, {7, 80}, {7, 96}, {7, 48}});
}

TEST_CASE("a changed byte of any argument is detected", "[launcher]") {
  World world({}, 1);
  Stream a(world.devices);
  Launcher step(world.devices, pair_kernel(), 8);
  std::vector<Found> expected;
  const auto launch = [&](uint32_t number, uint64_t value) {
    step.launch(a, Grid{1}, number, value);
    expected.push_back({number, value, 0, 0});
  };
  launch(5, 6);
  for (unsigned bit = 0; bit < 16; ++bit) launch(5 ^ 1u << bit, 6);
  for (unsigned bit = 0; bit < 64; ++bit) launch(5, 6 ^ uint64_t{1} << bit);
  launch(5, 6);
  a.synchronize();
  CHECK(world.journal->by_grid[1] == expected);
}

TEST_CASE("a block serves every queue, unless a hidden argument contains the queue", "[launcher]") {
  for (const bool names_queue : {false, true}) {
    World world(paused(), 2);
    Stream a(world.devices), b(world.devices);
    REQUIRE(hardware_queue(a) != hardware_queue(b));
    const auto kernel = pair_kernel({.queue = names_queue});
    REQUIRE(kernel.info().arguments.names_queue() == names_queue);
    Launcher step(world.devices, kernel, 8);
    for (int i = 0; i < 6; ++i) {
      step.launch(a, Grid{1}, 7u, uint64_t{8});
      step.launch(b, Grid{2}, 7u, uint64_t{8});
    }
    const auto in_a = blocks_of(world.devices.ring_of(a)),
               in_b = blocks_of(world.devices.ring_of(b));
    CHECK(distinct(in_a) == 1);
    CHECK(distinct(in_b) == 1);
    CHECK((in_a[0] == in_b[0]) == !names_queue);
    world.devices.resume();
    a.synchronize();
    b.synchronize();
    const auto address = [&](const Stream& stream) {
      return names_queue ? reinterpret_cast<uint64_t>(hardware_queue(stream)) : 0;
    };
    CHECK(world.journal->by_grid[1] == std::vector<Found>(6, {7, 8, address(a), 0}));
    CHECK(world.journal->by_grid[2] == std::vector<Found>(6, {7, 8, address(b), 0}));
  }
}

TEST_CASE("another grid uses a block only if no hidden argument depends on it", "[launcher]") {
  for (const bool depends : {false, true}) {
    World world(paused(), 1);
    Stream a(world.devices);
    Launcher step(world.devices, pair_kernel({.block_count = depends}), 8);
    const Spent spent;
    for (uint32_t i = 0; i < 12; ++i) step.launch(a, Grid{64 * (1 + i % 3)}, 7u, uint64_t{8});
    CHECK(distinct(blocks_of(world.devices.ring(0))) == (depends ? 3 : 1));
    CHECK(spent().argument_misses == (depends ? 3 : 1));
    world.devices.resume();
    a.synchronize();
    for (uint32_t count = 1; count <= 3; ++count)
      CHECK(world.journal->by_grid[64 * count] ==
            std::vector<Found>(4, {7, 8, 0, depends ? count : 0}));
  }
}

TEST_CASE("dynamic LDS is part of the arguments, and of every packet", "[launcher]") {
  const auto kernel = kernel_of<uint32_t, LocalBytes, LocalBytes>(
      {.name = "local",
       .kernarg_bytes = 16,
       .arguments = {argument(ArgumentKind::by_value, 0, 4),
                     argument(ArgumentKind::dynamic_shared_pointer, 4, 4),
                     argument(ArgumentKind::dynamic_shared_pointer, 8, 4)},
       .group_segment_bytes = 20});
  World world(paused(), 1);
  Stream a(world.devices);
  Launcher step(world.devices, kernel, 8);
  const Spent spent;
  for (int i = 0; i < 2; ++i) step.launch(a, Grid{1}, 1u, LocalBytes{100}, LocalBytes{64});
  step.launch(a, Grid{1}, 1u, LocalBytes{100}, LocalBytes{128});  // the same block, and more LDS
  step.launch(a, Grid{1}, 1u, LocalBytes{200}, LocalBytes{64});
  CHECK(spent().argument_hits == 2);
  std::vector<uint32_t> segments;
  for (const aql::Packet64& packet : world.devices.ring(0))
    segments.push_back(aql::packet_as<hsa_kernel_dispatch_packet_t>(packet).group_segment_size);
  CHECK(segments ==
        std::vector<uint32_t>{32 + 112 + 64, 32 + 112 + 64, 32 + 112 + 128, 32 + 208 + 64});
  world.devices.resume();
  a.synchronize();
}

TEST_CASE("a grid's dynamic group memory is in every packet, with skipping and without",
          "[launcher]") {
  const auto make = [](bool hidden) {
    DoubleKernel kernel{.name = "local",
                        .kernarg_bytes = 16,
                        .arguments = {argument(ArgumentKind::by_value, 0, 4),
                                      argument(ArgumentKind::dynamic_shared_pointer, 4, 4)},
                        .group_segment_bytes = 20,
                        .max_group_segment_bytes = 216};
    if (hidden) kernel.arguments.push_back(argument(ArgumentKind::hidden_dynamic_lds_size, 8, 4));
    return kernel_of<uint32_t, LocalBytes>(kernel);
  };
  for (const bool hidden : {false, true}) {
    CAPTURE(hidden);
    const auto kernel = make(hidden);
    World world(paused(), 1);
    Stream a(world.devices);
    Launcher step(world.devices, kernel, 8), written(world.devices, kernel, 0);
    const Spent spent;
    const auto launch = [&](uint32_t lds, uint32_t local) {
      step.launch(a, Grid{1}.lds(lds), 1u, LocalBytes{local});
    };
    launch(100, 64);
    launch(100, 64);
    launch(108, 64);  // the array keeps its place
    launch(0, 64);
    launch(109, 64);
    written.launch(a, Grid{1}.lds(100), 1u, LocalBytes{64});
    a.launch(kernel, Grid{1}.lds(100), 1u, LocalBytes{88});
    CHECK(spent().argument_hits == (hidden ? 1 : 2));

    std::vector<std::array<uint32_t, 3>> seen;  // group segment, array's offset, hidden argument
    for (const aql::Packet64& packet : world.devices.ring(0)) {
      const auto dispatch = aql::packet_as<hsa_kernel_dispatch_packet_t>(packet);
      std::array<uint32_t, 3> words{};
      std::memcpy(words.data(), dispatch.kernarg_address, sizeof words);
      seen.push_back({dispatch.group_segment_size, words[1], words[2]});
    }
    const auto size = [&](uint32_t bytes) { return hidden ? bytes : 0; };
    CHECK(seen == std::vector<std::array<uint32_t, 3>>{{192, 128, size(100)},
                                                       {192, 128, size(100)},
                                                       {192, 128, size(108)},
                                                       {96, 32, size(0)},
                                                       {208, 144, size(109)},
                                                       {192, 128, size(100)},
                                                       {216, 128, size(100)}});
    for (auto* const handle : {&step, &written}) {
      const auto refused = [&](uint32_t lds, uint32_t local) {
        return error_of<Error>([&] { handle->launch(a, Grid{1}.lds(lds), 1u, LocalBytes{local}); });
      };
      CHECK(contains(refused(100, 89), "the sum is 217; the limit is 216"));
      CHECK(contains(refused(197, 0), "the limit is 216"));
    }
    CHECK(contains(error_of<Error>([&] { a.launch(kernel, Grid{1}.lds(100), 1u, LocalBytes{89}); }),
                   "dispatch of 'local': 197 bytes of dynamic group memory (100 of Grid::lds"));
    const auto plain =
        kernel_of<>({.name = "plain", .group_segment_bytes = 20, .max_group_segment_bytes = 216});
    CHECK(contains(
        error_of<Error>([&] { a.launch(plain, Grid{1}.lds(197)); }),
        "dispatch of 'plain': 197 bytes of dynamic group memory: with 20 bytes of static group "
        "memory the sum is 217; the limit is 216"));
    CHECK(world.devices.ring(0).size() == seen.size());
    world.devices.resume();
    a.synchronize();
  }
}

TEST_CASE(
    "with any work in flight, every kernel finds its own arguments, with skipping and without",
    "[launcher][stress]") {
  constexpr uint32_t launches = 3000, streams_count = 6;
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    for (const bool skips : {true, false}) {
      StreamDevicesOptions options;
      options.device = {.seed = seed, .barriers_step_aside = seed % 2 == 0};
      World world(options, 3);
      std::deque<Stream> streams;
      for (uint32_t i = 0; i < streams_count; ++i) streams.emplace_back(world.devices);
      // The second kernel has hidden workgroup counts; the third is destroyed and created again
      // with launches in flight.
      std::array<std::unique_ptr<Launcher<uint32_t, uint64_t>>, 3> handles;
      const auto make = [&](uint32_t which) {
        handles[which] = std::make_unique<Launcher<uint32_t, uint64_t>>(
            world.devices, pair_kernel({.block_count = which == 1}), skips ? 1 + 3 * which : 0);
      };
      for (uint32_t i = 0; i < handles.size(); ++i) make(i);
      std::mt19937_64 random(seed);
      std::map<uint32_t, std::vector<Found>> expected;
      uint32_t number = 0;
      const Spent spent;
      for (uint32_t i = 0; i < launches; ++i) {
        const auto which = static_cast<uint32_t>(random() % streams_count);
        const size_t handle = random() % handles.size();
        if (random() % 8 == 0) number = static_cast<uint32_t>(random() % 5);
        const uint64_t value = random() % 6 == 0 ? random() : 1;
        const uint32_t items = 64 * (which + 1);
        handles[handle]->launch(streams[which], Grid{items}, number, value);
        expected[items].push_back({number, value, 0, handle == 1 ? which + 1 : 0});
        if (random() % 32 == 0) streams[which].synchronize();
        if (random() % 16 == 0) streams[random() % streams_count].after(streams[which].record());
        if (random() % 64 == 0) make(2);
      }
      for (Stream& stream : streams) stream.synchronize();
      CAPTURE(seed, skips);
      REQUIRE(world.journal->by_grid == expected);
      CHECK((spent().argument_hits != 0) == skips);
    }
  }
}

TEST_CASE("a launcher is destroyed with launches in flight, which find their arguments",
          "[launcher]") {
  World world(paused(), 2);
  Stream a(world.devices), b(world.devices);
  for (uint32_t i = 0; i < 20; ++i) {
    Launcher step(world.devices, pair_kernel(), 8);
    step.launch(a, Grid{1}, i, uint64_t{i});
    step.launch(b, Grid{2}, i, uint64_t{i});
  }
  world.devices.resume();
  a.synchronize();
  b.synchronize();
  for (uint32_t i = 0; i < 20; ++i) {
    CHECK(world.journal->by_grid[1][i] == Found{i, i, 0, 0});
    CHECK(world.journal->by_grid[2][i] == Found{i, i, 0, 0});
  }
}

TEST_CASE("a launcher outlives stream and Streams", "[launcher]") {
  World world;
  {
    Stream a(world.devices);
    Launcher step(world.devices, pair_kernel(), 8);
    step.launch(a, Grid{1}, 1u, uint64_t{2});
    world.devices.destroy_streams();
    step.launch(a, Grid{1}, 3u, uint64_t{4});
  }
  CHECK(world.journal->by_grid[1] == std::vector<Found>{{1, 2, 0, 0}, {3, 4, 0, 0}});
}

TEST_CASE("in steady state a launcher neither allocates nor makes a system call nor takes a signal",
          "[launcher][cost]") {
  World world({}, 1);
  Stream a(world.devices);
  Launcher same(world.devices, pair_kernel(), 8), turns(world.devices, pair_kernel(), 8),
      other(world.devices, pair_kernel(), 8);
  uint32_t number = 0;
  const auto step = [&] {
    for (uint32_t i = 0; i < 4; ++i) {
      same.launch(a, Grid{1}, 7u, uint64_t{8});
      turns.launch(a, Grid{1}, i % 2, uint64_t{8});
      other.launch(a, Grid{1}, ++number, uint64_t{8});
    }
  };
  for (int i = 0; i < 10; ++i) {
    step();
    a.synchronize();
  }
  for (const Deadline limit = soon();;) {  // waiting for room may sleep: the device must keep up
    const Spent spent;
    const support::Cost cost = support::cost_of(step);
    CHECK(cost.allocations == 0);
    if (support::sees_system_calls())
      CHECK(cost.locks == 12);  // the queue's lock, once for each launch; a sanitizer hides both
    CHECK(spent().signals_created == 0);
    CHECK(spent().kernarg_allocations == 0);
    CHECK(spent().host_waits == 0);
    if (cost.system_calls == 0 || limit.passed()) {
      CHECK(cost.system_calls == 0);
      break;
    }
    a.synchronize();
    std::this_thread::sleep_for(1ms);
  }
  a.synchronize();
}

TEST_CASE("a launcher refuses streams of other Streams", "[launcher]") {
  World world({}, 1), others({}, 1);
  Stream foreign(others.devices);
  for (const uint32_t blocks : {8u, 0u}) {
    Launcher step(world.devices, pair_kernel(), blocks);
    const std::string text =
        error_of<Error>([&] { step.launch(foreign, Grid{1}, 1u, uint64_t{2}); });
    CAPTURE(blocks, text);
    CHECK(contains(text, "kernel 'pair'"));
    CHECK(contains(text, "belongs to other Streams"));
  }
}

TEST_CASE("a refused launch leaves the prepared blocks unchanged", "[launcher]") {
  World world({}, 1);
  Stream a(world.devices);
  Launcher step(world.devices, pair_kernel(), 8);
  step.launch(a, Grid{1}, 1u, uint64_t{2});
  CHECK_THROWS_AS(step.launch(a, Grid{4096}.by(2048), 1u, uint64_t{2}), Error);
  CHECK_THROWS_AS(step.launch(a, Grid{4096}.by(2048), 3u, uint64_t{4}), Error);
  const Spent spent;
  step.launch(a, Grid{1}, 1u, uint64_t{2});
  CHECK(spent().argument_hits == 1);
  a.synchronize();
  CHECK(world.journal->by_grid[1] == std::vector<Found>(2, {1, 2, 0, 0}));
}

TEST_CASE("when a queue fails, blocks that its launches may read are never written again",
          "[launcher]") {
  World world(paused(), 2);
  Stream a(world.devices), b(world.devices);
  Launcher step(world.devices, pair_kernel(), 1);
  step.launch(b, Grid{1}, 1u, uint64_t{2});
  world.devices.device_of(b).fail(HSA_STATUS_ERROR_INVALID_ISA);
  CHECK(contains(error_of<Error>([&] { step.launch(b, Grid{1}, 1u, uint64_t{2}); }),
                 "HSA_STATUS_ERROR_INVALID_ISA"));
  world.devices.device_of(a).resume();
  for (uint32_t i = 0; i < 10; ++i) {
    step.launch(a, Grid{2}, 1u, uint64_t{2});
    step.launch(a, Grid{2}, 3u, uint64_t{4});
    a.synchronize();
  }
  // The only block keeps its content, so every other launch writes to other memory.
  std::vector<Found> expected;
  for (uint32_t i = 0; i < 10; ++i) expected.insert(expected.end(), {{1, 2, 0, 0}, {3, 4, 0, 0}});
  CHECK(world.journal->by_grid[2] == expected);
}
