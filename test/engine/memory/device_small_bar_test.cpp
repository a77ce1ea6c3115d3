// A machine without a large BAR (uptempo-vgpu --bar small): what needs the host's access to device
// memory falls back to host memory and says why, or throws.
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

constexpr uint32_t kCount = 256;

struct SmallBar : test::OnDevice {
  Program basics{gpu, builtin_kernels::basics()};
  Kernel<uint32_t*, uint32_t> chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  Copier copier{gpu};
  std::string reason =
      "the host cannot write to device memory of " + gpu.name() + ": it has no large BAR";

  DeviceBuffer<uint32_t> values(uint32_t start) {
    DeviceBuffer<uint32_t> buffer{gpu, kCount};
    copier.fill(buffer, start);
    return buffer;
  }
  bool all_are(const DeviceBuffer<uint32_t>& buffer, uint32_t expected) {
    return test::download(copier, buffer) == std::vector<uint32_t>(kCount, expected);
  }
};

}  // namespace

TEST_CASE_METHOD(SmallBar,
                 "arguments asked into device memory stay in host memory, with the reason",
                 "[small-bar]") {
  Queue queue{gpu, {.kernargs = KernargPlacement::device}};
  CHECK(queue.kernargs().asked == KernargPlacement::device);
  CHECK(queue.kernargs().placement == KernargPlacement::host);
  CHECK(queue.kernargs().reason == reason);
  CHECK(test::contains(queue.describe(), reason));
  const DeviceBuffer<uint32_t> buffer = values(5);
  const Counters before = Counters::now();
  BatchSubmitter batch{queue};
  batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), 1u);
  batch.dispatch(chain, Grid{kCount}.by(64), buffer.data(), 2u);
  batch.submit().wait();
  CHECK((Counters::now() - before).hdp_flushes == 0);
  CHECK((Counters::now() - before).kernarg_read_backs == 0);
  CHECK(all_are(buffer, (5 * 3 + 1) * 3 + 2));
}

TEST_CASE_METHOD(SmallBar, "streams and recordings keep their arguments in host memory, too",
                 "[small-bar]") {
  const QueueOptions options{.kernargs = KernargPlacement::device};
  Streams streams{gpu, {.queue = options}};
  CHECK(streams.kernargs().placement == KernargPlacement::host);
  CHECK(test::contains(streams.describe(), reason));
  const DeviceBuffer<uint32_t> buffer = values(5);
  Stream stream{streams};
  stream.launch(chain, Grid{kCount}.by(64), buffer.data(), 1u);
  stream.synchronize();
  CHECK(all_are(buffer, 5 * 3 + 1));

  Queue queue{gpu, options};
  Recording recording{queue};
  recording.dispatch(chain, Grid{kCount}.by(64), buffer.data(), 2u);
  recording.replay(queue).wait();
  CHECK(all_are(buffer, (5 * 3 + 1) * 3 + 2));
}

TEST_CASE_METHOD(SmallBar, "the host's access to device memory is refused by name", "[small-bar]") {
  CHECK_FALSE(host_can_reach(gpu));
  const DeviceBuffer<uint32_t> buffer = values(5);
  const std::string said = test::error_of([&] { allow_host_access(gpu, buffer.data()); });
  CAPTURE(said);
  CHECK(test::contains(said, gpu.name()));
  CHECK(test::contains(said, "the host"));
}
