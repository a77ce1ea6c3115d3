// Streams over an HSA queue of the caller's, on a device. The caller dispatches in it, too.
#include <hsa/amd_hsa_queue.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/engine/state_access.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/own_dispatch.hpp"

using namespace uptempo;
using namespace std::chrono_literals;
using test::contains;
using test::error_of;
using test::hardware_queue;
using test::OnDevice;
using test::OwnDispatch;
using test::OwnQueue;
using test::soon;

TEST_CASE_METHOD(OnDevice, "streams and their caller dispatch in turns in a queue of the caller's",
                 "[device][stream][borrowed]") {
  constexpr uint32_t lanes = 64, rounds = 150, each = 5;
  const Program program{gpu, builtin_kernels::basics()};
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const OwnQueue owned{gpu, 64};
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> values{gpu, 3 * lanes};
  copier.fill(values, 0);
  {
    Streams streams{gpu, {.queues = {{owned.handle(), owned.error()}}}};
    Stream ordered{streams}, beside{streams};
    CHECK(hardware_queue(ordered) == owned.handle());
    CHECK(contains(streams.describe(), "HSA queue: borrowed"));
    // Before the first packet: a processor that has mapped the queue may not see a later change.
    const auto* const amd_queue = reinterpret_cast<const amd_queue_t*>(owned.handle());
    CHECK((amd_queue->queue_properties & AMD_QUEUE_PROPERTIES_ENABLE_PROFILING) != 0);
    // Another thread's stream in the same queue.
    std::thread other([&] {
      for (uint32_t i = 0; i < rounds * each; ++i)
        beside.launch(chain, Grid{lanes}, values.data() + lanes, i);
      beside.synchronize();
    });
    std::vector<std::unique_ptr<OwnDispatch>> own;
    uint32_t number = 0;
    for (uint32_t round = 0; round < rounds; ++round) {
      for (uint32_t i = 0; i < each; ++i)
        ordered.launch(chain, Grid{lanes}, values.data(), number++);
      // Its barrier bit orders it after the launches, its signal later launches after it.
      own.push_back(
          std::make_unique<OwnDispatch>(gpu, chain, Grid{lanes}, values.data(), number++));
      bool is_published = false;
      while (!is_published)
        streams.publish_own(owned.handle(), [&](uint64_t room) {
          if (room == 0) return;
          own.back()->publish(owned.handle());
          is_published = true;
        });
      ordered.after(own.back()->done(), SignalSetBy::device);
    }
    other.join();
    CHECK(ordered.synchronize(soon()));
    CHECK(hardware_queue(ordered) == owned.handle());
    uint32_t expected = 0, of_other = 0;
    for (uint32_t i = 0; i < number; ++i) expected = 3 * expected + i;
    for (uint32_t i = 0; i < rounds * each; ++i) of_other = 3 * of_other + i;
    const std::vector<uint32_t> found = test::download(copier, values);
    CHECK(std::count(found.begin(), found.begin() + lanes, expected) == lanes);
    CHECK(std::count(found.begin() + lanes, found.begin() + 2 * lanes, of_other) == lanes);
    CHECK(streams.hardware_queues() == 1);
    // The device's times are stored in a borrowed queue, too.
    TimedEvent begin, end;
    ordered.record(begin);
    ordered.launch(chain, Grid{lanes}, values.data() + 2 * lanes, 7u);
    ordered.record(end);
    CHECK(ordered.synchronize(soon()));
    CHECK(begin.ns() <= end.ns());
  }
  // Its owner goes on using it.
  const OwnDispatch last{gpu, chain, Grid{lanes}, values.data() + 2 * lanes, 1};
  last.publish(owned.handle());
  CHECK(hsa_signal_wait_scacquire(last.done().handle(), HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                  HSA_WAIT_STATE_BLOCKED) == 0);
  CHECK(test::download(copier, values).back() == 3 * 7 + 1);
}

TEST_CASE_METHOD(OnDevice, "streams end with the error of a queue of the caller's",
                 "[device][stream][borrowed]") {
  const Program program{gpu, builtin_kernels::basics()};
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  const PinnedBuffer<uint32_t> values{gpu, 64};
  std::ranges::fill(values.span(), 0u);
  const OwnQueue owned{gpu, 64};
  Streams streams{gpu,
                  {.queues = {{owned.handle(), owned.error()}}, .queue = {.drain_timeout = 100ms}}};
  Stream stream{streams};
  stream.launch(chain, Grid{64}, values.data(), 1u);
  CHECK(stream.synchronize(soon()));
  streams.publish_own(owned.handle(), [&](uint64_t) {
    // An undefined packet type, so no packet processor can pass it.
    const uint64_t index = hsa_queue_add_write_index_relaxed(owned.handle(), 1);
    auto* const slot = static_cast<aql::Packet64*>(owned.handle()->base_address) + index % 64;
    std::atomic_ref(slot->word[0]).store(0x1477, std::memory_order_release);
    hsa_signal_store_screlease(owned.handle()->doorbell_signal,
                               static_cast<hsa_signal_value_t>(index));
  });
  const std::string error = error_of<Error>([&] {
    stream.launch(chain, Grid{64}, values.data(), 1u);
    stream.synchronize();
  });
  CAPTURE(error);
  CHECK(contains(error, "the owner of the borrowed queue reported an error"));
}
