// Overlap of kernels, as the kernels observe it: a hand-shake succeeds between kernels that run at
// the same time, however long each step takes, and between no others.
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <deque>

#include "test/engine/state_access.hpp"
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using test::hardware_queue;

namespace {

// Number of reads of the other's flag: for a kernel that must find it, and for one that must not.
constexpr uint32_t kForever = UINT32_MAX, kShortWhile = 20'000;

// Two kernels that look for each other's flag.
class Meeting : test::OnDevice {
 public:
  explicit Meeting(const StreamsOptions& options = {}) : options_(options) {
    std::ranges::fill(words_.span(), 0u);
  }

  Streams& streams() { return streams_; }

  void first(Stream& stream, uint32_t looks = kForever) {
    ++round_;
    first_ = &stream;
    words_[kMet] = words_[kMet + 1] = 0;
    stream.launch(meet_, Grid{1}, &words_[kFlag], &words_[kOtherFlag], round_, looks,
                  &words_[kMet]);
  }
  void second(Stream& stream, uint32_t looks = kForever) {
    second_ = &stream;
    stream.launch(meet_, Grid{1}, &words_[kOtherFlag], &words_[kFlag], round_, looks,
                  &words_[kMet + 1]);
  }
  // Call after both: returns whether they ran at the same time. The second kernel also finds the
  // flag of a first one that ended long ago, so the first kernel's result decides.
  bool met_each_other() {
    REQUIRE(first_->synchronize(test::soon()));
    REQUIRE(second_->synchronize(test::soon()));
    REQUIRE(words_[kMet + 1] == 1);
    return words_[kMet] == 1;
  }
  bool overlap(Stream& one, Stream& other) {
    first(one);
    second(other);
    return met_each_other();
  }

 private:
  static constexpr size_t kFlag = 0, kOtherFlag = 32, kMet = 64;

  Program probes_{gpu, builtin_kernels::probes()};
  Kernel<uint32_t*, uint32_t*, uint32_t, uint32_t, uint32_t*> meet_ =
      probes_.kernel<uint32_t*, uint32_t*, uint32_t, uint32_t, uint32_t*>("meet");
  PinnedBuffer<uint32_t> words_{gpu, 96};
  uint32_t round_ = 0;
  Stream* first_ = nullptr;
  Stream* second_ = nullptr;
  StreamsOptions options_;
  Streams streams_{gpu, options_};
};

}  // namespace

TEST_CASE("kernels of two streams run at the same time, in hardware queues of their own",
          "[device][stream][overlap]") {
  Meeting meeting;
  Stream a(meeting.streams()), b(meeting.streams());
  REQUIRE(hardware_queue(a) != hardware_queue(b));
  for (int round = 0; round < 10; ++round) {
    CHECK(meeting.overlap(a, b));
    CHECK(meeting.overlap(b, a));
  }
}

TEST_CASE("kernels of two streams run at the same time in one hardware queue",
          "[device][stream][overlap]") {
  Meeting meeting({.hardware_queues = 1});
  Stream a(meeting.streams()), b(meeting.streams());
  REQUIRE(hardware_queue(a) == hardware_queue(b));
  for (int round = 0; round < 10; ++round) {
    CHECK(meeting.overlap(a, b));
    CHECK(meeting.overlap(b, a));
  }
}

TEST_CASE("any two of nine streams over four hardware queues run at the same time",
          "[device][stream][overlap]") {
  Meeting meeting;
  std::deque<Stream> streams;
  for (int i = 0; i < 9; ++i) streams.emplace_back(meeting.streams());
  REQUIRE(meeting.streams().hardware_queues() == 4);
  for (size_t i = 0; i < streams.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      CAPTURE(i, j);
      CHECK(meeting.overlap(streams[i], streams[j]));
    }
}

TEST_CASE("a stream that waits for the host blocks no other stream", "[device][stream][overlap]") {
  Meeting meeting({.hardware_queues = 1});
  Stream a(meeting.streams()), b(meeting.streams()), waits(meeting.streams());
  const Signal gate;
  waits.after(gate);
  CHECK_FALSE(waits.ready());
  CHECK(meeting.overlap(a, b));
  hsa_signal_store_screlease(gate.handle(), 0);
  CHECK(meeting.overlap(waits, b));
}

TEST_CASE("kernels of one stream do not run at the same time", "[device][stream][overlap]") {
  Meeting meeting;
  Stream a(meeting.streams());
  for (int round = 0; round < 3; ++round) {
    meeting.first(a, kShortWhile);
    meeting.second(a);
    CHECK_FALSE(meeting.met_each_other());
  }
}

TEST_CASE("work after a wait for an event does not overlap the work that the event covers",
          "[device][stream][overlap]") {
  for (const uint32_t queues : {1u, 4u}) {
    CAPTURE(queues);
    Meeting meeting({.hardware_queues = queues});
    Stream a(meeting.streams()), b(meeting.streams());
    for (int round = 0; round < 3; ++round) {
      meeting.first(a, kShortWhile);
      b.after(a.record());
      meeting.second(b);
      CHECK_FALSE(meeting.met_each_other());
    }
  }
}

TEST_CASE("a legacy default stream overlaps only with streams that do not block",
          "[device][stream][overlap]") {
  for (const uint32_t queues : {1u, 4u}) {
    CAPTURE(queues);
    Meeting meeting({.hardware_queues = queues, .legacy_default = true});
    Stream& legacy = meeting.streams().default_stream();
    Stream blocking(meeting.streams()), other(meeting.streams(), {.blocking = false});
    CHECK(meeting.overlap(legacy, other));
    CHECK(meeting.overlap(other, legacy));
    CHECK(meeting.overlap(blocking, other));
    meeting.first(legacy, kShortWhile);
    meeting.second(blocking);
    CHECK_FALSE(meeting.met_each_other());
    meeting.first(blocking, kShortWhile);
    meeting.second(legacy);
    CHECK_FALSE(meeting.met_each_other());
  }
}
