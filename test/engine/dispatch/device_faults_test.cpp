// GPU memory faults that are reported when no thread waits any more, on a device. HSA reports one
// fault per initialization (session.hpp), so each test initializes HSA anew.
#include <dlfcn.h>
#include <hsa/hsa_ext_amd.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include <uptempo/runtime/amd_extension.hpp>
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
using uptempo::test::eventually;
using uptempo::test::in_own_process;
using uptempo::test::OnDevice;

uint32_t* unmapped_address() { return reinterpret_cast<uint32_t*>(0x7000); }

// Keeps HSA initialized and blocks its thread that reports faults. This handler runs before the
// engine's, which is registered later.
class HeldReport {
 public:
  HeldReport() {
    REQUIRE(hsa_init() == HSA_STATUS_SUCCESS);
    held.store(true);
    arrived.store(false);
    REQUIRE(hsa_amd_register_system_event_handler(hold, nullptr) == HSA_STATUS_SUCCESS);
  }
  ~HeldReport() {
    let_go();
    hsa_shut_down();  // joins the thread; an unclaimed fault ends the process here at the latest
  }
  HeldReport(const HeldReport&) = delete;
  HeldReport& operator=(const HeldReport&) = delete;

  static void let_go() { held.store(false); }
  static void wait_until_arrived() {
    REQUIRE(eventually([] { return arrived.load(); }));
  }

 private:
  static hsa_status_t hold(const hsa_amd_event_t*, void*) {
    arrived.store(true);
    while (held.load()) std::this_thread::sleep_for(100us);
    return HSA_STATUS_ERROR;
  }
  static inline std::atomic<bool> held{false}, arrived{false};
};

// HSA calls handlers in the order of their registration: when this one runs, the engine's has
// returned.
class LateHandler {
 public:
  LateHandler() {
    called.store(false);
    REQUIRE(hsa_amd_register_system_event_handler(
                [](const hsa_amd_event_t*, void*) {
                  called.store(true);
                  return HSA_STATUS_ERROR;
                },
                nullptr) == HSA_STATUS_SUCCESS);
  }
  static void wait() {
    REQUIRE(eventually([] { return called.load(); }));
  }

 private:
  static inline std::atomic<bool> called{false};
};

uint64_t late_faults() { return Counters::now().late_faults; }

// A copy that faults and that the engine does not know.
void fault_outside_engine(hsa_agent_t gpu, void* pinned) {
  hsa_signal_t done{};
  REQUIRE(hsa_signal_create(1, 0, nullptr, &done) == HSA_STATUS_SUCCESS);
  REQUIRE(hsa_amd_memory_async_copy(pinned, gpu, unmapped_address(), gpu, 64, 0, nullptr, done) ==
          HSA_STATUS_SUCCESS);
}

// Each submits a packet that faults, and is destroyed without a wait for it.
struct FaultingQueue {
  explicit FaultingQueue(const Agent& gpu, const Kernel<uint32_t*, uint32_t>& fill)
      : queue(gpu, {.drain_timeout = 50ms}) {
    BatchSubmitter batch{queue};
    batch.dispatch(fill, Grid{64}, unmapped_address(), 1u);
    batch.submit();
  }
  Queue queue;
};
struct FaultingProducer {
  explicit FaultingProducer(const Agent& gpu, const Kernel<uint32_t*, uint32_t>& fill)
      : shared(gpu, {.drain_timeout = 50ms}), queue(shared.producer()) {
    BatchSubmitter batch{queue};
    batch.dispatch(fill, Grid{64}, unmapped_address(), 1u);
    batch.submit();
  }
  SharedQueue shared;
  Queue queue;
};
struct FaultingLaunch {
  explicit FaultingLaunch(const Agent& gpu, const Kernel<uint32_t*, uint32_t>& fill)
      : streams(gpu, {.queue = {.drain_timeout = 50ms}}), stream(streams) {
    stream.launch(fill, Grid{64}, unmapped_address(), 1u);
  }
  Streams streams;
  Stream stream;
};
struct FaultingCopy {
  explicit FaultingCopy(const Agent& gpu, const Kernel<uint32_t*, uint32_t>&)
      : streams(gpu, {.queue = {.drain_timeout = 50ms}}), stream(streams), memory(gpu, 64) {
    stream.copy(memory, CopySource::device(unmapped_address(), 64), CopyPath::kernel);
  }
  Streams streams;
  Stream stream;
  DeviceBuffer<uint8_t> memory;
};
struct FaultingEngineCopy {
  explicit FaultingEngineCopy(const Agent& gpu, const Kernel<uint32_t*, uint32_t>&)
      : streams(gpu, {.queue = {.drain_timeout = 50ms}}), stream(streams), memory(gpu, 64) {
    stream.copy(memory, CopySource::device(unmapped_address(), 64), CopyPath::engine);
  }
  Streams streams;
  Stream stream;
  DeviceBuffer<uint8_t> memory;
};

// Submits endless work that its queue gives up; the test then causes a fault outside the engine.
void give_up_work(const Agent& gpu) {
  const Program probes{gpu, builtin_kernels::probes()};
  const auto wait_for_gate = probes.kernel<uint32_t*, uint32_t, uint32_t*>("wait_for_gate");
  const PinnedBuffer<uint32_t> words{gpu, 2};
  words.data()[0] = 0;
  Queue queue{gpu, {.drain_timeout = 50ms}};
  BatchSubmitter batch{queue};
  batch.dispatch(wait_for_gate, Grid{1}, words.data(), UINT32_MAX, words.data() + 1);
  batch.submit();
}

}  // namespace

// Replaces ROCr's function and calls it. ROCr's waits for the thread that reports faults.
extern "C" hsa_status_t hsa_queue_destroy(hsa_queue_t* queue) {
  static const auto real =
      reinterpret_cast<decltype(&hsa_queue_destroy)>(dlsym(RTLD_NEXT, "hsa_queue_destroy"));
  HeldReport::let_go();
  return real(queue);
}

TEMPLATE_TEST_CASE("a fault reported during the teardown of its cause does not end the process",
                   "[fault]", FaultingQueue, FaultingProducer, FaultingLaunch, FaultingCopy,
                   FaultingEngineCopy) {
  in_own_process("", [&] {
    HeldReport report;
    const Runtime runtime;
    const Agent gpu = runtime.gpu();
    const LateHandler late_handler;
    const Program basics{gpu, builtin_kernels::basics()};
    const auto fill = basics.kernel<uint32_t*, uint32_t>("fill");
    {
      const TestType work{gpu, fill};
      report.wait_until_arrived();
    }
    report.let_go();
    late_handler.wait();
    // No object remained to report the fault. A later queue reports it.
    Queue later{gpu};
    BatchSubmitter batch{later};
    batch.dispatch(basics.kernel<>("empty"), Grid{64});
    CHECK(contains(error_of([&] { batch.submit(); }), "0x7000"));
  });
}

TEMPLATE_TEST_CASE("a fault of packets that no completion covers ends their stream", "[fault]",
                   FaultingLaunch, FaultingCopy) {
  in_own_process("", [&] {
    HeldReport report;
    const Runtime runtime;
    const Agent gpu = runtime.gpu();
    const LateHandler late_handler;
    const Program basics{gpu, builtin_kernels::basics()};
    const uint64_t late = late_faults();
    TestType work{gpu, basics.kernel<uint32_t*, uint32_t>("fill")};
    report.wait_until_arrived();
    report.let_go();
    late_handler.wait();
    const std::string error = error_of([&] { work.stream.synchronize(); });
    CAPTURE(error);
    CHECK(contains(error, "0x7000"));
    CHECK(late_faults() == late);
  });
}

TEST_CASE("a fault reported after its Runtime but before its queue is destroyed ends the queue",
          "[fault]") {
  in_own_process("", [&] {
    HeldReport report;
    std::optional<Runtime> runtime(std::in_place);
    const Agent gpu = runtime->gpu();
    const LateHandler late_handler;
    std::optional<Program> basics(std::in_place, gpu, builtin_kernels::basics());
    std::optional<FaultingQueue> work(std::in_place, gpu,
                                      basics->kernel<uint32_t*, uint32_t>("fill"));
    const Completion lost = work->queue.last_submitted();
    report.wait_until_arrived();
    runtime.reset();
    report.let_go();
    late_handler.wait();
    CHECK_THROWS_AS(lost.wait(), Error);
    work.reset();
    CHECK_THROWS_AS(lost.wait(), Error);
  });
}

TEST_CASE("a fault after work was given up is attributed to that work and counted once",
          "[fault]") {
  for (const bool with_runtime : {true, false}) {
    in_own_process(with_runtime ? "with a Runtime" : "without a Runtime", [&] {
      HeldReport report;
      report.let_go();
      const uint64_t late = late_faults();
      hsa_agent_t handle{};
      {
        const Runtime runtime;
        handle = runtime.gpu().handle();
        give_up_work(runtime.gpu());
      }
      std::optional<Runtime> again;  // a second handler besides that of the first Runtime
      if (with_runtime) again.emplace();
      const LateHandler late_handler;
      fault_outside_engine(handle, &report);
      late_handler.wait();
      CHECK(late_faults() == late + 1);
    });
  }
}

// The next test case runs these in processes of their own.
TEST_CASE_METHOD(OnDevice, "child: a foreign fault after finished work", "[.child]") {
  const Program basics{gpu, builtin_kernels::basics()};
  const auto fill = basics.kernel<uint32_t*, uint32_t>("fill");
  PinnedBuffer<uint32_t> words{gpu, 64};
  {
    Queue queue{gpu};
    BatchSubmitter batch{queue};
    batch.dispatch(fill, Grid{64}, words.data(), 1u);
    batch.submit();
    Streams streams{gpu};
    Stream stream{streams};
    stream.launch(fill, Grid{64}, words.data(), 2u);
  }
  Streams idle{gpu};
  Stream stream{idle};
  stream.launch(fill, Grid{64}, words.data(), 3u);
  stream.synchronize();
  fault_outside_engine(gpu.handle(), words.data());
  std::this_thread::sleep_for(test::kHang);
}

TEST_CASE("child: a foreign fault in a later initialization of HSA", "[.child]") {
  {
    const Runtime runtime;
    give_up_work(runtime.gpu());
  }
  const Runtime runtime;
  const PinnedBuffer<uint32_t> words{runtime.gpu(), 64};
  fault_outside_engine(runtime.gpu().handle(), words.data());
  std::this_thread::sleep_for(test::kHang);
}

TEST_CASE("a fault that the engine cannot have caused ends the process with ROCr's message",
          "[fault]") {
  const std::string child = GENERATE("child: a foreign fault after finished work",
                                     "child: a foreign fault in a later initialization of HSA");
  const auto result = test::run_command({"/proc/self/exe", child});
  CAPTURE(child, result.out, result.err);
  const bool restarts = [] {
    const Runtime runtime;
    return !must_stay_initialised();
  }();
  if (!restarts && child.ends_with("of HSA")) {
    // There is no later initialization: the fault may be of the work that was given up.
    CHECK(result.exit_code == 0);
    return;
  }
  CHECK(result.exit_code == 128 + SIGABRT);
  CHECK(contains(result.err, "Memory access fault by GPU"));
}
