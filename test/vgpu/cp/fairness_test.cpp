// Queues share the command processor by turns. The tests check the order in which packets complete,
// which the processor's one thread determines. They do not measure time.
#include <algorithm>
#include <map>
#include <numeric>

#include "cp/aql_queue.hpp"
#include "cp/sdma_queue.hpp"
#include "device_fixture.hpp"
#include "sdma_ring.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;

namespace {

constexpr unsigned kTurn = AqlQueue::kPacketsPerTurn;

// Full queues, each with a barrier packet first. The processor itself opens the gate in the middle
// of a turn of a separate queue, created before the others. Each packet of queue i raises event i +
// 1, which the test records.
class FullQueues {
 public:
  static constexpr uint32_t kOpener = 900;

  explicit FullQueues(const std::vector<unsigned>& packets) : packets_(packets) {
    opener_ = std::make_unique<ComputeQueue>(device);
    for (size_t index = 0; index < packets.size(); ++index) {
      ComputeQueue& queue = *queues_.emplace_back(std::make_unique<ComputeQueue>(device, 4096));
      done_.push_back(device.signal(packets[index], static_cast<uint32_t>(index + 1)));
      queue.write(barrier_and({gate_}));
      for (unsigned packet = 0; packet < packets[index]; ++packet)
        queue.write(barrier_and({}, true, done_.back()));
      queue.ring();
    }
    device.interrupts.when_raised = [this](uint32_t event) {
      if (event == kOpener) return DeviceFixture::set(gate_, 0);
      order.push_back(event - 1);
      if (after_each) after_each();
    };
  }

  // Runs until all packets have completed and their events, which follow the signals, are recorded.
  bool run() {
    opener_->submit(barrier_and({}, false, device.signal(1, kOpener)));
    for (size_t index = 0; index < done_.size(); ++index) {
      if (!fires(done_[index])) return false;
      if (!noted(index, packets_[index])) return false;
    }
    return true;
  }
  bool noted(size_t index, unsigned packets) {
    return eventually(
        [&] { return device.interrupts.raised(static_cast<uint32_t>(index + 1)) == packets; });
  }

  DeviceFixture device;
  std::vector<size_t> order;  // the queue of each completed packet
  std::function<void()> after_each;

 private:
  const std::vector<unsigned> packets_;
  amd_signal_t* const gate_ = device.signal(1);
  std::unique_ptr<ComputeQueue> opener_;
  std::vector<std::unique_ptr<ComputeQueue>> queues_;
  std::vector<amd_signal_t*> done_;
};

// Returns the largest number of packets of another queue that completed between two consecutive
// packets of `queue`.
size_t longest_wait(const std::vector<size_t>& order, size_t queue) {
  std::map<size_t, size_t> meanwhile;
  size_t longest = 0;
  bool begun = false;
  for (const size_t completed : order) {
    if (completed == queue) {
      for (const auto& [other, packets] : meanwhile) longest = std::max(longest, packets);
      meanwhile.clear();
      begun = true;
    } else if (begun) {
      ++meanwhile[completed];
    }
  }
  return longest;
}

}  // namespace

TEST_CASE("busy queues never differ by more than one turn's packets", "[prompt]") {
  for (const size_t count : {2u, 4u, 16u}) {
    CAPTURE(count);
    constexpr unsigned kPackets = 10 * kTurn;
    FullQueues queues(std::vector<unsigned>(count, kPackets));
    REQUIRE(queues.run());
    std::vector<unsigned> completed(count, 0);
    unsigned lead = 0;
    for (const size_t queue : queues.order) {
      ++completed[queue];
      const auto [least, most] = std::minmax_element(completed.begin(), completed.end());
      lead = std::max(lead, *most - *least);
    }
    CHECK(lead <= kTurn);
    CHECK(completed == std::vector<unsigned>(count, kPackets));
  }
}

TEST_CASE("between two packets of a busy queue each other queue gets at most one turn",
          "[prompt]") {
  for (const size_t count : {2u, 4u, 16u}) {
    CAPTURE(count);
    FullQueues queues(std::vector<unsigned>(count, 10 * kTurn));
    REQUIRE(queues.run());
    for (size_t queue = 0; queue < count; ++queue)
      CHECK(longest_wait(queues.order, queue) <= kTurn);
  }
}

TEST_CASE("empty queues leave the processor to the others", "[prompt]") {
  FullQueues queues({kTurn, 20 * kTurn, kTurn});
  REQUIRE(queues.run());
  const auto last_of_short = std::find_if(queues.order.rbegin(), queues.order.rend(),
                                          [](size_t queue) { return queue != 1; });
  // The remaining packets complete in a row: the long queue had one turn for two turns of the short
  // ones. The first of those began with the gate.
  CHECK(last_of_short - queues.order.rbegin() >= 18 * static_cast<ptrdiff_t>(kTurn));
}

TEST_CASE(
    "a single packet waits for at most one turn of each busy queue, however many packets those "
    "still have",
    "[prompt]") {
  struct Case {
    size_t busy;
    unsigned backlog;
  };
  for (const Case& given : {Case{1, 20 * kTurn}, Case{1, 200 * kTurn}, Case{4, 200 * kTurn},
                            Case{15, 20 * kTurn}, Case{15, 200 * kTurn}}) {
    CAPTURE(given.busy, given.backlog);
    constexpr size_t kLone = 500, kPackets = 5;
    FullQueues queues(std::vector<unsigned>(given.busy, given.backlog));
    ComputeQueue lone(queues.device);
    amd_signal_t* done = queues.device.signal(kPackets, kLone + 1);
    // Between two packets of a busy queue, at a different place of its turn each time.
    std::vector<size_t> rung;
    queues.after_each = [&] {
      const size_t completed = queues.order.size();
      if (rung.size() == kPackets || completed != (rung.size() + 1) * (2 * given.busy * kTurn + 3))
        return;
      rung.push_back(completed);
      const uint64_t index = lone.write(barrier_and({}, false, done));
      // Rings like a kernel: through the device's own mapping, which is never protected.
      std::atomic_ref<uint64_t>(*lone.bell.alias).store(index, std::memory_order_release);
    };
    REQUIRE(queues.run());
    REQUIRE(queues.noted(kLone, kPackets));
    size_t packet = 0;
    for (size_t at = 0; at < queues.order.size(); ++at) {
      if (queues.order[at] != kLone) continue;
      CAPTURE(packet);
      CHECK(at - rung.at(packet++) <= given.busy * kTurn);
    }
    CHECK(packet == kPackets);
  }
}

TEST_CASE("a copy and full compute queues take turns", "[prompt]") {
  constexpr uint32_t kTurns = 12;
  constexpr uint32_t kCopied = kTurns * SdmaQueue::kBytesPerTurn;
  constexpr size_t kCopy = 800;
  FullQueues queues(std::vector<unsigned>(2, 100 * kTurn));
  SdmaRing copies(queues.device);
  auto* const source = static_cast<std::byte*>(queues.device.allocate(kCopied));
  auto* const destination = static_cast<std::byte*>(queues.device.allocate(kCopied));
  // Begins while the queues are busy and reports its end.
  queues.after_each = [&] {
    if (queues.order.size() != 2 * kTurn) return;
    copies.write(uptempo::vgpu::test::copy(destination, source, kCopied));
    copies.write(trap(kCopy + 1));
    copies.ring_as_device();
  };
  REQUIRE(queues.run());
  REQUIRE(queues.noted(kCopy, 1));
  const auto end = std::find(queues.order.begin(), queues.order.end(), kCopy);
  REQUIRE(end != queues.order.end());
  const auto packets = static_cast<size_t>(end - queues.order.begin()) - 2 * kTurn;
  CHECK(packets >= (kTurns - 1) * 2 * kTurn);
  CHECK(packets <= (kTurns + 1) * 2 * kTurn);
}
