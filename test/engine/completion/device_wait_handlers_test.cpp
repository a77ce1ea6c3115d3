// The completion thread on a ROCr whose hsa_amd_signal_wait_any overflows a heap block. This
// program replaces that function, which must not be called, and makes any ROCr report the version
// of the AMD extension that has the fault.
#include <dlfcn.h>
#include <hsa/hsa_ext_amd.h>
#include <uptempo/uptempo.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "test/engine/completion/task.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/threads.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

std::atomic<bool> pretends{false};
std::atomic<int> forbidden_calls{0};

constexpr int kExtensionMajor = 0x207, kExtensionMinor = 0x208;

}  // namespace

extern "C" hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value) {
  static const auto real =
      reinterpret_cast<decltype(&hsa_system_get_info)>(dlsym(RTLD_NEXT, "hsa_system_get_info"));
  const uint16_t version = attribute == kExtensionMajor ? 1 : 7;
  if (!pretends || (attribute != kExtensionMajor && attribute != kExtensionMinor))
    return real(attribute, value);
  std::memcpy(value, &version, sizeof version);
  return HSA_STATUS_SUCCESS;
}

extern "C" uint32_t hsa_amd_signal_wait_any(uint32_t, hsa_signal_t*, hsa_signal_condition_t*,
                                            hsa_signal_value_t*, uint64_t, hsa_wait_state_t,
                                            hsa_signal_value_t*) {
  ++forbidden_calls;
  return 0;
}

namespace {

class OnDeviceWithFault : public OnDevice {
 public:
  OnDeviceWithFault() { pretends = true; }
  // The real version decides how the Runtime ends.
  ~OnDeviceWithFault() {
    pretends = false;
    CHECK(forbidden_calls == 0);
  }
};

void open(const Signal& gate) { hsa_signal_store_screlease(gate.handle(), 0); }

bool sleeping() {
  return eventually([] { return sleep_all("uptempo-waiter"); });
}

}  // namespace

TEST_CASE_METHOD(OnDeviceWithFault, "handlers wake the thread for each completion of a queue",
                 "[wait]") {
  Queue queue{gpu};
  CompletionNotifier notifier{16};
  for (uint64_t i = 0; i < 30; ++i) {
    const Signal gate;
    const Completion completion = submit_gated(queue, gate);
    notifier.watch(completion, i);
    if (i % 3 == 0) REQUIRE(sleeping());
    CHECK(notifier.pending() == 1);
    open(gate);
    REQUIRE(eventually([&] { return notifier.pending() == 0; }));
    CHECK(notifier.take()->tag == i);
  }
}

TEST_CASE_METHOD(OnDeviceWithFault, "handlers wake the thread for whichever queue completes first",
                 "[wait]") {
  constexpr std::array<size_t, 5> kOrder = {3, 0, 4, 2, 1};
  std::vector<Queue> queues;
  for (size_t q = 0; q < kOrder.size(); ++q) queues.emplace_back(gpu);
  const std::array<Signal, kOrder.size()> gates;
  CompletionNotifier notifier{16};
  std::atomic<int> count{0};
  std::vector<Task> tasks;
  for (size_t q = 0; q < kOrder.size(); ++q) {
    const Completion completion = submit_gated(queues[q], gates[q]);
    notifier.watch(completion, q);
    tasks.push_back(await(completion, count));
  }
  for (const size_t q : kOrder) {
    REQUIRE(sleeping());
    open(gates[q]);
    REQUIRE(eventually([&] { return tasks[q].done(); }));
    const auto notice = notifier.take();
    REQUIRE(notice.has_value());
    CHECK(notice->tag == q);
    CHECK_FALSE(notice->failed);
  }
  CHECK(count == 5);
}

TEST_CASE_METHOD(OnDeviceWithFault, "with handlers, a pending completion costs under 2 % of a core",
                 "[wait]") {
  const Signal gate;
  Queue queue{gpu};
  CompletionNotifier notifier{2};
  notifier.watch(submit_gated(queue, gate));
  REQUIRE(sleeping());
  const auto thread = threads_named("uptempo-waiter").front();
  const auto before = cpu_time_of(thread);
  std::this_thread::sleep_for(1s);
  CHECK(per_cent(cpu_time_of(thread) - before, 1s) < 2);
  open(gate);
  REQUIRE(eventually([&] { return notifier.pending() == 0; }));
}

TEST_CASE_METHOD(OnDeviceWithFault, "with handlers, a queue that fails wakes the thread",
                 "[wait]") {
  Queue queue{gpu, {.drain_timeout = 100ms}};
  CompletionNotifier notifier{4};
  const Signal gate;
  BatchSubmitter batch{queue};
  batch.raw(aql::to_packet(aql::BarrierAnd{.dependencies = {gate.handle()}}));
  aql::Packet64 broken{};
  broken.word[0] = aql::first_word(static_cast<uint16_t>(0x1400 | 0x77));
  batch.raw(broken);
  notifier.watch(batch.submit());
  REQUIRE(sleeping());
  open(gate);
  REQUIRE(eventually([&] { return notifier.pending() == 0; }));
  CHECK(notifier.take()->failed);
}
