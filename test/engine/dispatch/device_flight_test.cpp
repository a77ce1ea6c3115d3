// The flight recorder on a device: names of kernels, errors of faults, and the end of hung work.
#include <hsa/hsa_ext_amd.h>
#include <sys/resource.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/own_process.hpp"
#include "tools/support/command.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::contains;
using uptempo::test::error_of;
using uptempo::test::in_own_process;
using uptempo::test::OnDevice;

std::string here(uint32_t line) { return std::string(__FILE__) + ':' + std::to_string(line); }

uint32_t number_of(hsa_agent_t agent, hsa_amd_agent_info_t attribute) {
  uint32_t number = 0;
  REQUIRE(hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(attribute), &number) ==
          HSA_STATUS_SUCCESS);
  return number;
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "a report names loaded and unloaded kernels, also those of others",
                 "[flight]") {
  Queue queue{gpu};
  PinnedBuffer<uint32_t> words{gpu, 64};
  BatchSubmitter batch{queue};
  {
    const Program program{gpu, builtin_kernels::basics()};
    const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
    batch.dispatch(fill, Grid{64}, words.data(), 7u);
    batch.dispatch(fill, Grid{32}, words.data(), 8u);
    batch.submit().wait();
    const std::string loaded = queue.report();
    CAPTURE(loaded);
    CHECK(contains(loaded, "submission 1 at " + here(__LINE__ - 3) + ": complete"));
    CHECK(contains(loaded,
                   "packet 0: kernel_dispatch barrier acquire=system release=agent "
                   "kernel=fill grid=[64,1,1] workgroup=[64,1,1]"));
    CHECK(contains(loaded,
                   "packet 1: kernel_dispatch barrier acquire=agent release=system "
                   "kernel=fill grid=[32,1,1] workgroup=[32,1,1] completion_signal"));
    batch.clear();
  }
  // The program is unloaded.
  CHECK(contains(queue.report(), "kernel=fill"));
}

TEST_CASE("a memory fault names the submission and the kernel", "[flight]") {
  in_own_process("", [] {
    const Runtime runtime;
    const Agent gpu = runtime.gpu();
    const Program program{gpu, builtin_kernels::basics()};
    const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
    Queue queue{gpu};
    BatchSubmitter batch{queue};
    batch.dispatch(fill, Grid{64}, reinterpret_cast<uint32_t*>(0x7000), 1u);
    const Completion completion = batch.submit();
    const std::string site = here(__LINE__ - 1);
    const std::string error = error_of<Error>([&] { completion.wait(); });
    CAPTURE(error);
    CHECK(contains(error, "first unfinished: submission 1 at " + site + ", packet 0"));
    CHECK(contains(error, "kernel 'fill'"));
  });
}

TEST_CASE("a memory fault of a stream names the launch and not earlier ones of its epoch",
          "[flight]") {
  in_own_process("", [] {
    const Runtime runtime;
    const Agent gpu = runtime.gpu();
    const Program program{gpu, builtin_kernels::basics()};
    const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
    DeviceBuffer<uint32_t> good{gpu, 64};
    Streams streams{gpu};
    Stream stream{streams};
    for (uint32_t i = 0; i < 6; ++i) stream.launch(fill, Grid{64}, good.data(), i);
    stream.launch(fill, Grid{64}, reinterpret_cast<uint32_t*>(0x7000), 1u);
    const std::string site = here(__LINE__ - 1);
    const std::string error = error_of<Error>([&] { stream.synchronize(); });
    CAPTURE(error);
    CHECK(contains(error, "submission 7 at " + site + ", packet 6"));
    // The last one before it: the device does not tell that it is complete.
    for (const char* const earlier : {"submission 1 at", "submission 5 at"})
      CHECK_FALSE(contains(error, earlier));
  });
}

// ROCr refuses more than 8 MiB for a wave, and needs it for all waves that the GPU runs at once.
TEST_CASE("an error about private memory names the kernel and the bytes per work-item and in all",
          "[flight]") {
  for (const bool is_shared : {false, true}) {
    CAPTURE(is_shared);
    in_own_process(is_shared ? "shared" : "own", [&] {
      const Runtime runtime;
      const Agent gpu = runtime.gpu();
      const Program program{gpu, builtin_kernels::basics()};
      const auto fill = program.kernel<uint32_t*, uint32_t>("fill");
      constexpr uint32_t kBytes = 200'000;
      constexpr uint64_t kPerWave = 12'500 * 1024;  // 64 of them in whole KiB
      const uint64_t waves = uint64_t{gpu.properties().compute_units} *
                             number_of(gpu.handle(), HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU);
      SharedQueue shared{gpu};
      Queue queue = is_shared ? shared.producer() : Queue{gpu};
      BatchSubmitter batch{queue};
      batch.raw(aql::to_packet(aql::KernelDispatch{.grid = {64, 1, 1},
                                                   .workgroup = {64, 1, 1},
                                                   .private_segment_size = kBytes,
                                                   .kernel_object = fill.info().object}));
      const Completion completion = batch.submit();
      const std::string error = error_of<Error>([&] { completion.wait(); });
      CAPTURE(error);
      CHECK(contains(error, "HSA_STATUS_ERROR_OUT_OF_RESOURCES"));
      CHECK(contains(error,
                     "not enough private memory (scratch) for packet 0, kernel 'fill', which needs "
                     "200000 bytes per work-item: " +
                         std::to_string(kPerWave) + " bytes per wave, " +
                         std::to_string(kPerWave * waves) + " bytes for the " +
                         std::to_string(waves) + " waves that the GPU runs at once"));
      CHECK(contains(error, "use less private memory in the kernel"));
    });
  }
}

TEST_CASE_METHOD(OnDevice, "hung work is named by drain(), by its destructor and by its completion",
                 "[flight]") {
  const Program program{gpu, builtin_kernels::probes()};
  const auto gate = program.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  PinnedBuffer<uint32_t> words{gpu, 64};
  std::optional<Queue> queue{std::in_place, gpu, QueueOptions{.drain_timeout = 1100ms}};
  BatchSubmitter batch{*queue};
  batch.dispatch(gate, Grid{1}, words.data(), UINT32_MAX, words.data() + 32);
  const Completion hung = batch.submit();
  const std::string expected = "submission 1 at " + here(__LINE__ - 1) + ", packet 0";
  const std::string error = error_of<Error>([&] { queue->drain(Deadline::after(10ms)); });
  CAPTURE(error);
  CHECK(contains(error, expected));
  CHECK(contains(error, "kernel 'wait_for_gate'"));
  CHECK(contains(queue->report(), ", completion signal 1, 1 packet"));
  const Counters before = Counters::now();
  queue.reset();
  CHECK((Counters::now() - before).queues_given_up == 1);
  const std::string lost = error_of<Error>([&] { hung.wait(); });
  CAPTURE(lost);
  CHECK(contains(lost, expected));
}
