#include "tools/support/packet_queue.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <uptempo/aql/packet.hpp>
#include <uptempo/runtime/error.hpp>
#include <uptempo/runtime/signal.hpp>
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/eventually.hpp"
#include "test/support/on_device.hpp"
#include "test/support/text.hpp"

using namespace std::chrono_literals;
using namespace uptempo;

namespace {

// Barrier packets that each wait for a signal that the host sets. The last has a completion signal.
struct Gates : test::OnDevice {
  void publish(uint32_t packets, std::chrono::seconds patience) {
    queue.emplace(gpu, 64, patience);
    gates = std::vector<Signal>(packets);
    for (const Signal& gate : gates) {
      const bool last = &gate == &gates.back();
      const aql::Packet64 packet = aql::to_packet(
          aql::BarrierAnd{.flags = {aql::Barrier::on},
                          .dependencies = {gate.handle()},
                          .completion_signal = last ? done.handle() : hsa_signal_t{0}});
      queue->publish({&packet, 1});
    }
  }
  void open(const Signal& gate) { hsa_signal_store_screlease(gate.handle(), 0); }

  Signal done;
  std::vector<Signal> gates;
  std::optional<support::PacketQueue> queue;
};

}  // namespace

TEST_CASE_METHOD(Gates, "wait() fails with a named error when no packet is read for `patience`") {
  publish(1, 1s);
  const std::string error = test::error_of<Error>([&] { queue->wait(done.handle(), "the gate"); });
  CAPTURE(error);
  CHECK(test::contains(error, "the gate"));
  CHECK(test::contains(error, "the device has read no further packet for 1 s"));
  open(gates[0]);
  REQUIRE(test::eventually([&] { return hsa_signal_load_scacquire(done.handle()) == 0; }));
  queue->wait(done.handle(), "the gate");
}

// Together the packets take longer than `patience`, each a quarter of it.
TEST_CASE_METHOD(Gates, "wait() has `patience` anew for each packet that the device reads") {
  publish(5, 4s);
  std::thread host([&] {
    for (const Signal& gate : gates) {
      std::this_thread::sleep_for(1s);
      open(gate);
    }
  });
  CHECK_NOTHROW(queue->wait(done.handle(), "the last gate"));
  host.join();
}
