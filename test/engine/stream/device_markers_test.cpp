// Markers are submitted only where there is work. Counted outside the engine: packets that the
// virtual GPU completed, and events that the driver gave out.
#include <dlfcn.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <deque>
#include <optional>

#include <uptempo/vgpu/query.h>
#include "test/support/catch.hpp"
#include "test/support/holdings.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

struct Packets {
  uint64_t dispatches = 0, others = 0;
  friend bool operator==(const Packets&, const Packets&) = default;
};

// Completed packets of all queues so far. Hardware has no such counter, so the engine's own count
// is used there.
Packets completed() {
  const auto query =
      reinterpret_cast<uptempo_vgpu_packets_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_packets"));
  uptempo_vgpu_packet_counts counts{};
  if (query != nullptr && query(&counts) == 0) return {counts.dispatches, counts.others};
  return {.dispatches = Counters::now().packets};
}

}  // namespace

TEST_CASE_METHOD(
    test::OnDevice,
    "launches on a legacy default stream and finish take the same packets with 0 to 64 idle "
    "streams",
    "[device][stream][markers]") {
  const Program program(gpu, builtin_kernels::basics());
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  for (const uint32_t idle : {0u, 1u, 8u, 32u, 64u}) {
    CAPTURE(idle);
    const PinnedBuffer<uint32_t> values(gpu, 64);
    std::ranges::fill(values.span(), 0u);
    Streams streams(gpu, {.legacy_default = true});
    Stream& stream = streams.default_stream();
    std::deque<Stream> others;
    for (uint32_t i = 0; i < idle; ++i) {  // each has worked, and is idle since
      others.emplace_back(streams).launch(chain, Grid{64}, values.data(), 0u);
      streams.synchronize();
    }
    streams.synchronize();
    const Packets before = completed();
    for (uint32_t i = 0; i < 100; ++i) stream.launch(chain, Grid{64}, values.data(), i);
    streams.synchronize();
    for (uint32_t i = 0; i < 10; ++i) {
      stream.launch(chain, Grid{64}, values.data(), i);
      streams.synchronize();
      streams.synchronize();  // no work is left to finish
    }
    const Packets after = completed();
    CHECK(after.dispatches - before.dispatches == 110);
    CHECK(after.others - before.others == 11);
  }
}

TEST_CASE_METHOD(test::OnDevice,
                 "ten thousand records and waits take no more signals than the first",
                 "[device][stream][markers]") {
  const Program program(gpu, builtin_kernels::basics());
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const PinnedBuffer<uint32_t> values(gpu, 64);
  std::ranges::fill(values.span(), 1u);
  Streams streams(gpu);
  std::deque<Stream> all;
  for (int i = 0; i < 6; ++i) all.emplace_back(streams);
  uint32_t expected = 1;
  Event last;
  std::optional<test::Holdings> before;
  uint64_t created = 0;
  for (uint32_t step = 0; step < 10'000; ++step) {
    Stream& stream = all[step % all.size()];
    stream.after(last);
    stream.launch(chain, Grid{64}, values.data(), step);
    last = stream.record();
    expected = expected * 3 + step;
    if (step != 100) continue;
    streams.synchronize();
    before = test::holdings();
    created = Counters::now().signals_created;
  }
  streams.synchronize();
  CHECK(std::ranges::count(values.span(), expected) == 64);
  CHECK(Counters::now().signals_created == created);
  CHECK(test::holdings() == before);
}
