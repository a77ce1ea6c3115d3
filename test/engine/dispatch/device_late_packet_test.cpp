// Kernels that read their packets late, on a device whose read index may pass a packet at its
// launch (uptempo-vgpu --early-read-index). The test also runs without that option: then the read
// index passes a packet at its completion.
#include <hsa/hsa.h>
#include <uptempo/kernels/late_packet.hpp>
#include <uptempo/uptempo.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <uptempo/aql/writer.hpp>
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace std::chrono_literals;

namespace {

using uptempo::test::eventually;
using uptempo::test::OnDevice;

constexpr uint32_t kRing = 64;
constexpr uint32_t kPolls = 1u << 30;

// Queues of the library have longer rings than the device has dispatches at a time.
class SmallQueue {
 public:
  explicit SmallQueue(const Agent& gpu) : handle_(make(gpu)), queue_(Queue::borrow(gpu, handle_)) {}
  ~SmallQueue() {
    queue_.reset();
    CHECK(hsa_queue_destroy(handle_) == HSA_STATUS_SUCCESS);
  }
  SmallQueue(const SmallQueue&) = delete;
  SmallQueue& operator=(const SmallQueue&) = delete;
  Queue& operator*() { return *queue_; }

 private:
  static hsa_queue_t* make(const Agent& gpu) {
    hsa_queue_t* queue = nullptr;
    REQUIRE(hsa_queue_create(gpu.handle(), kRing, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0,
                             &queue) == HSA_STATUS_SUCCESS);
    return queue;
  }

  hsa_queue_t* handle_;
  std::optional<Queue> queue_;
};

bool is_early() {
  const char* const option = std::getenv("UPTEMPO_VGPU_EARLY_READ_INDEX");
  return option != nullptr && std::string_view(option) == "1";
}

// Grids that differ between a packet and the one that could take its slot.
uint32_t grid_of(uint32_t number) { return 1 + number % 61; }

// Results and gate of dispatches that are numbered from 0.
class Dispatches {
 public:
  Dispatches(const Agent& gpu, uint32_t count) : words_(gpu, 16 + 4 * size_t{count}) {
    for (uint32_t& word : words_.span()) word = 0;
  }
  uint32_t* gate() { return words_.data(); }
  uint32_t* out(uint32_t number) { return words_.data() + 16 + 4 * size_t{number}; }
  void open() { std::atomic_ref(*gate()).store(1, std::memory_order_release); }
  bool has_started(uint32_t number) {
    return std::atomic_ref(*out(number)).load(std::memory_order_acquire) == 1;
  }
  bool read_right(uint32_t number) {
    return out(number)[1] == grid_of(number) && out(number)[2] == 1;
  }
  uint32_t wrong(uint32_t count) {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i) wrong += !read_right(i);
    return wrong;
  }

 private:
  PinnedBuffer<uint32_t> words_;
};

class OnLateDevice : public OnDevice {
 protected:
  const Program program{gpu, kernels::late_packet()};
  const Kernel<uint32_t*, uint32_t, uint32_t*> late =
      program.kernel<uint32_t*, uint32_t, uint32_t*>("late_packet");
};

}  // namespace

TEST_CASE_METHOD(OnLateDevice, "a program knows from the descriptor that a kernel reads its packet",
                 "[late]") {
  CHECK(late.info().reads_packet);
}

TEST_CASE_METHOD(
    OnLateDevice,
    "a producer that reuses slots at the read index changes packets of running kernels", "[late]") {
  struct alignas(64) Block {
    uint32_t* gate;
    uint32_t polls, unused;
    uint32_t* out;
    std::byte rest[40];
  };
  static_assert(sizeof(Block) == 64);
  uint64_t reused_in_all = 0;
  for (int round = 0; round < 16; ++round) {
    hsa_queue_t* queue = nullptr;
    REQUIRE(hsa_queue_create(gpu.handle(), kRing, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0,
                             &queue) == HSA_STATUS_SUCCESS);
    const std::unique_ptr<hsa_queue_t, decltype(&hsa_queue_destroy)> owner(queue,
                                                                           hsa_queue_destroy);
    auto writer = aql::AqlQueueWriter::borrow(queue);
    REQUIRE(writer.ring_size() == kRing);
    Dispatches dispatches(gpu, 2 * kRing);
    KernargBuffer kernargs(gpu, 2 * kRing * sizeof(Block));
    auto* const blocks = reinterpret_cast<Block*>(kernargs.data());
    std::vector<aql::Packet64> packets;
    for (uint32_t i = 0; i < 2 * kRing; ++i) {
      const Block block{.gate = dispatches.gate(),
                        .polls = kPolls,
                        .unused = 0,
                        .out = dispatches.out(i),
                        .rest = {}};
      std::memcpy(&blocks[i], &block, sizeof block);
      packets.push_back(aql::to_packet(
          aql::KernelDispatch{.flags = {.barrier = aql::Barrier::off},
                              .grid = {grid_of(i), 1, 1},
                              .workgroup = {grid_of(i), 1, 1},
                              .dimensions = 1,
                              .private_segment_size = late.info().private_segment_size,
                              .group_segment_size = late.info().group_segment_size,
                              .kernel_object = late.info().object,
                              .kernarg_address = &blocks[i]}));
    }
    REQUIRE(writer.publish(std::span(packets).first(kRing), Deadline::now()));
    REQUIRE(eventually([&] {
      for (uint32_t i = 0; i < kRing; ++i)
        if (!dispatches.has_started(i)) return false;
      return true;
    }));
    // Every kernel runs and none can end, so the read index has passed only what it passes early.
    const auto reused = static_cast<uint32_t>(writer.read_index());
    reused_in_all += reused;
    if (reused != 0)
      REQUIRE(writer.publish(std::span(packets).subspan(kRing, reused), Deadline::now()));
    dispatches.open();
    REQUIRE(eventually([&] { return writer.read_index() == kRing + reused; }));
    const Signal done(SignalKind::interrupt, 1);
    const aql::Packet64 last = aql::to_packet(aql::BarrierAnd{
        .flags = {aql::Barrier::on, aql::FenceScope::system, aql::FenceScope::system},
        .completion_signal = done.handle()});
    REQUIRE(writer.publish(std::span(&last, 1), Deadline::now()));
    hsa_signal_wait_scacquire(done.handle(), HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                              HSA_WAIT_STATE_ACTIVE);
    CHECK(dispatches.wrong(kRing) == reused);
  }
  CHECK((reused_in_all != 0) == is_early());
}

TEST_CASE_METHOD(OnLateDevice, "a queue keeps the slots of running kernels that read their packets",
                 "[late]") {
  SmallQueue small{gpu};
  Queue& queue = *small;
  constexpr uint32_t kFirst = kRing - 8, kSecond = 9;  // one more than the slots that are left
  Dispatches dispatches(gpu, kFirst + kSecond);
  BatchSubmitter batch{queue};
  const auto dispatch = [&](uint32_t i) {
    return batch.dispatch(late, Grid{grid_of(i)}.by(grid_of(i)), dispatches.gate(), kPolls,
                          dispatches.out(i));
  };
  for (uint32_t i = 0; i < kFirst; ++i) dispatch(i).without_barrier();
  batch.submit();
  REQUIRE(eventually([&] {
    for (uint32_t i = 0; i + 1 < kFirst; ++i)
      if (!dispatches.has_started(i)) return false;
    return true;
  }));
  for (uint32_t i = kFirst; i < kFirst + kSecond; ++i) dispatch(i);
  CHECK_FALSE(batch.try_submit());
  CHECK(queue.pressure().ring.in_use == kFirst);
  dispatches.open();
  batch.submit().wait();
  CHECK(dispatches.wrong(kFirst + kSecond) == 0);
}

TEST_CASE_METHOD(OnLateDevice, "batches, replays and streams give late readers their own packets",
                 "[late]") {
  constexpr uint32_t kCount = 400;
  Dispatches dispatches(gpu, kCount);
  dispatches.open();
  // The gate is open: polls are what a kernel does before it reads its packet.
  const auto submit_some = [&](auto&& dispatch) {
    for (uint32_t i = 0; i < kCount; ++i) dispatch(i);
  };
  SECTION("batches, some longer than the ring") {
    SmallQueue small{gpu};
    Queue& queue = *small;
    BatchSubmitter batch{queue};
    uint32_t in_batch = 0, length = 1;
    Completion last;
    submit_some([&](uint32_t i) {
      batch.dispatch(late, Grid{grid_of(i)}.by(grid_of(i)), dispatches.gate(), 1u,
                     dispatches.out(i));
      if (++in_batch < length) return;
      last = batch.submit();
      in_batch = 0;
      length = length * 5 % 151;
    });
    batch.submit().wait();
  }
  SECTION("replays") {
    SmallQueue small{gpu};
    Queue& queue = *small;
    Recording recording{queue};
    submit_some([&](uint32_t i) {
      recording.dispatch(late, Grid{grid_of(i)}.by(grid_of(i)), dispatches.gate(), 1u,
                         dispatches.out(i));
    });
    for (int i = 0; i < 3; ++i) recording.replay(queue).wait();
  }
  SECTION("a stream") {
    Streams streams{gpu, {.queue = {.packets = 256}}};
    Stream stream{streams};
    submit_some([&](uint32_t i) {
      stream.launch(late, Grid{grid_of(i)}.by(grid_of(i)), dispatches.gate(), 1u,
                    dispatches.out(i));
    });
    stream.synchronize();
  }
  CHECK(dispatches.wrong(kCount) == 0);
}
