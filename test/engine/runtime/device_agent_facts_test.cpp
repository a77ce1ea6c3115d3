// The facts of an agent that decide its memory model and how kernel arguments reach its memory.
#include <uptempo/kernels/basics.hpp>

#include <algorithm>
#include <vector>

#include <uptempo/fences/fence_planner.hpp>
#include <uptempo/runtime/agent.hpp>
#include "test/engine/runtime/replaced_agent.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;

TEST_CASE("an MI300A is told from an MI300X by ROCr's answer or by its link to the host",
          "[device]") {
  {
    const ReplacedDevice discrete{{.name = "gfx942"}};
    CHECK_FALSE(discrete.gpu.properties().is_apu);
    CHECK_FALSE(discrete.gpu.properties().xgmi_to_host);
    CHECK(memory_model(discrete.gpu).name == "gfx942");
    CHECK(detail::overwrites_on(&discrete.gpu) == detail::Overwrites::handed_over);
  }
  {
    const ReplacedDevice apu{{.name = "gfx942", .is_apu = true}};
    CHECK(apu.gpu.properties().is_apu);
    CHECK(memory_model(apu.gpu).name == "gfx942 APU");
  }
  const ReplacedDevice linked{{.name = "gfx942", .xgmi_to_host = true}};
  CHECK(linked.gpu.properties().xgmi_to_host);
  CHECK(memory_model(linked.gpu).name == "gfx942 APU");
  const Streams streams{linked.gpu};
  CHECK(contains(streams.describe(), "at system scope, because L2 may hold old kernargs"));
}

TEST_CASE("queues say when their target's memory model is not proved", "[device]") {
  const ReplacedDevice device{{.name = "gfx1100"}};
  const Queue queue{device.gpu, {.packets = 64}};
  CHECK(contains(queue.describe(),
                 "memory model gfx110x, not proved on hardware, so that every fence is kept"));
  CHECK(detail::overwrites_on(&device.gpu) == detail::Overwrites::handed_over);
}

TEST_CASE("kernel arguments in device memory are not flushed over xGMI", "[device][kernargs]") {
  const ReplacedDevice device{{.xgmi_to_host = true}};
  const Program program{device.gpu, builtin_kernels::basics()};
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const PinnedBuffer<uint32_t> values{device.gpu, 64};
  std::ranges::fill(values.span(), 5u);
  Queue queue{device.gpu, {.packets = 64, .kernargs = KernargPlacement::device}};
  REQUIRE(queue.kernargs().is_on_device());
  CHECK(queue.kernargs().reason ==
        "asked for, and the host reaches device memory; coherent over xGMI");
  CHECK(contains(queue.describe(), "in the GPU's memory, which needs no flush"));
  const Counters before = Counters::now();
  BatchSubmitter batch{queue};
  batch.dispatch(chain, Grid{64}, values.data(), 1u);
  batch.submit().wait();
  Recording recording{queue};
  recording.dispatch(chain, Grid{64}, values.data(), 2u);
  recording.replay(queue).wait();
  Streams streams{device.gpu, {.queue = {.kernargs = KernargPlacement::device}}};
  Stream stream{streams};
  stream.launch(chain, Grid{64}, values.data(), 3u);
  stream.synchronize();
  const Counters spent = Counters::now() - before;
  CHECK(spent.hdp_flushes + spent.kernarg_read_backs == 0);
  CHECK(std::ranges::count(values.span(), ((5u * 3 + 1) * 3 + 2) * 3 + 3) == 64);
  CHECK(contains(streams.describe(), "host stores to device memory are coherent over xGMI"));
}
