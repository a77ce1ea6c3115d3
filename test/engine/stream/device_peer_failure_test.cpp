// A memory fault of one GPU: what waits for it ends with its Error, and everything else goes on.
// HSA reports one fault per initialization (session.hpp), so each part has a process of its own.
#include <atomic>
#include <chrono>
#include <string>

#include "test/engine/peers.hpp"
#include "test/support/errors.hpp"
#include "test/support/eventually.hpp"
#include "test/support/own_process.hpp"
#include "test/support/soon.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t kFewItems = 256;
constexpr Grid kFewItemsGrid = Grid{kFewItems}.by(64);

uint32_t* unmapped_address() { return reinterpret_cast<uint32_t*>(0x7000); }

// The second GPU faults once fault() is called.
struct FaultingPeer : OnPeers {
  FaultingPeer() {
    gate[0] = 0;
    second.launch(programs[1].wait_for_gate, Grid{1}, gate.data(), 1u << 30, gate.data() + 1);
    second.launch(programs[1].fill, kFewItemsGrid, unmapped_address(), 1u);
    faulted = second.record();
  }
  void fault() { std::atomic_ref(gate[0]).store(1, std::memory_order_release); }
  // Work of the first GPU that needs nothing of the second one is correct.
  void check_first() {
    first.launch(programs[0].iota, kFewItemsGrid, words.data(), 4u, 3u);
    first.launch(programs[0].increment, kFewItemsGrid, words.data(), 1u);
    // Not by an engine, whose ring may hold a copy that waits for the failed GPU.
    first.copy(found, words, CopyPath::kernel);
    first.synchronize();
    for (uint32_t i = 0; i < kFewItems; ++i) REQUIRE(found[i] == (4 + 3 * i) * 3 + 1);
  }
  void check_fault(const std::string& error) {
    CAPTURE(error);
    CHECK(contains(error, "the GPU accessed address 0x7000"));
  }

  const StreamsOptions options{.queue = {.drain_timeout = 100ms}, .patience = 5s};
  const PinnedBuffer<uint32_t> gate{gpus[1], 3};  // and what the kernels that wait for it store
  const DeviceBuffer<uint32_t> words{gpus[0], kFewItems};
  const PinnedBuffer<uint32_t> found{gpus[0], kFewItems};
  Streams of_first{gpus[0], options}, of_second{gpus[1], options};
  Stream first{of_first}, second{of_second};
  Event faulted;
};

}  // namespace

TEST_CASE("a fault of one GPU fails streams of another that wait for it and no others",
          "[peers][failure]") {
  in_own_process("a launch", [] {
    FaultingPeer peer;
    Stream waiting(peer.of_first);
    waiting.after(peer.faulted);
    waiting.launch(peer.programs[0].fill, kFewItemsGrid, peer.words.data(), 1u);
    peer.fault();
    peer.check_fault(error_of<Error>([&] { (void)waiting.synchronize(soon()); }));
    peer.check_fault(error_of<Error>([&] { peer.second.synchronize(); }));
    peer.check_fault(error_of<Error>([&] {
      waiting.launch(peer.programs[0].fill, kFewItemsGrid, peer.words.data(), 1u);
      waiting.synchronize();
    }));
    peer.check_first();
  });
  in_own_process("an event of an event", [] {
    FaultingPeer peer;
    Stream waiting(peer.of_first), behind(peer.of_first);
    waiting.after(peer.faulted);
    const Event after = waiting.record();
    behind.after(after);
    behind.launch(peer.programs[0].fill, kFewItemsGrid, peer.words.data(), 1u);
    peer.fault();
    peer.check_fault(error_of<Error>([&] { (void)after.wait(soon()); }));
    peer.check_fault(error_of<Error>([&] { (void)behind.synchronize(soon()); }));
    peer.check_first();
  });
  in_own_process("a copy", [] {
    FaultingPeer peer;
    const DeviceBuffer<uint32_t> more{peer.gpus[0], kFewItems};
    Stream waiting(peer.of_first);
    waiting.after(peer.faulted);
    waiting.copy(more, peer.words, CopyPath::engine);
    peer.fault();
    peer.check_fault(error_of<Error>([&] { (void)waiting.synchronize(soon()); }));
    peer.check_first();
  });
  in_own_process("nobody waits", [] {
    FaultingPeer peer;
    peer.check_first();
    peer.fault();
    CHECK(eventually(
        [&] { return error_of<Error>([&] { (void)peer.faulted.ready(); }) != "no error"; }));
    peer.check_first();
  });
  in_own_process("a batch", [] {
    FaultingPeer peer;
    Queue queue{peer.gpus[0], {.drain_timeout = 100ms}};
    Queue faulting{peer.gpus[1], {.drain_timeout = 100ms}};
    BatchSubmitter batch{queue}, other{faulting};
    const Signal never{SignalKind::interrupt, 1};
    other.dispatch(peer.programs[1].wait_for_gate, Grid{1}, peer.gate.data(), 1u << 30,
                   peer.gate.data() + 2);
    other.dispatch(peer.programs[1].fill, kFewItemsGrid, unmapped_address(), 1u);
    other.complete_with(never);
    const Completion lost = other.submit();
    batch.after(never);
    const Completion behind = batch.submit();
    peer.fault();
    peer.check_fault(error_of<Error>([&] { (void)lost.wait(soon()); }));
    // Nothing sets the signal any more; only the deadline ends the wait.
    CHECK_FALSE(behind.wait(Deadline::after(50ms)));
    peer.check_first();
  });
}
