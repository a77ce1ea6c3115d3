// Runs of packets of a recording that are stored from registers: consecutive packets that are equal
// except for their kernarg addresses. The reference compares every packet.
#include "engine/dispatch/packet_runs.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "aql/packet.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using detail::PacketRuns;
using Packets = std::vector<aql::Packet64>;

namespace {

const void* address(uint64_t at) { return reinterpret_cast<const void*>(at); }
uint64_t address_of(const aql::Packet64& packet) {
  return reinterpret_cast<uint64_t>(packet.kernarg_address());
}

aql::Packet64 dispatch(uint64_t kernarg_address, uint64_t object = 0x1000,
                       aql::HeaderFlags flags = {}) {
  aql::Packet64 packet =
      aql::to_packet(aql::KernelDispatch{.flags = flags, .grid = {64}, .kernel_object = object});
  packet.set_kernarg_address(address(kernarg_address));
  return packet;
}

// One packet of a kind that interrupts a run or seems to.
aql::Packet64 some_packet(std::mt19937_64& random, const aql::Packet64& before) {
  switch (random() % 6) {
    case 0:
      return aql::to_packet(aql::BarrierAnd{});
    case 1:
      return aql::to_packet(aql::BarrierOr{});
    case 2: {  // another header
      aql::Packet64 packet = before;
      packet.set_kernarg_address(address(address_of(before) + 64));
      packet.word[0] ^= 0x100;
      return packet;
    }
    case 3: {  // another bit, anywhere
      aql::Packet64 packet = before;
      packet.set_kernarg_address(address(address_of(before) + 64));
      packet.word[random() % 16] ^= uint32_t{1} << random() % 32;
      return packet;
    }
    default:
      return dispatch(random() % 1000 * 64, 0x1000 + random() % 3);
  }
}

// Runs of equal packets, short and long, with other packets between them.
Packets some_recording(std::mt19937_64& random, size_t count) {
  Packets packets;
  while (packets.size() < count) {
    packets.push_back(some_packet(random, packets.empty() ? dispatch(0) : packets.back()));
    const uint64_t step = std::array<uint64_t, 4>{0, 64, 128, uint64_t{0} - 64}[random() % 4];
    const size_t length = random() % 2 == 0 ? random() % 4 : random() % 200;
    for (size_t i = 0; i < length; ++i) {
      aql::Packet64 packet = packets.back();
      if (packet.setup() != 0) packet.set_kernarg_address(address(address_of(packet) + step));
      packets.push_back(packet);
    }
  }
  packets.resize(count);
  return packets;
}

// True if every packet equals the first one, with the address advanced by `step` per packet.
bool is_stepped(std::span<const aql::Packet64> stretch, ptrdiff_t step) {
  if (aql::packet_type(stretch[0].header()) != aql::PacketType::kernel_dispatch) return false;
  for (size_t i = 0; i < stretch.size(); ++i) {
    aql::Packet64 expected = stretch[0];
    expected.set_kernarg_address(address(address_of(stretch[0]) + i * static_cast<uint64_t>(step)));
    if (stretch[i] != expected) return false;
  }
  return true;
}

// The run reported for each packet of a recording except the first and the last.
struct Answer {
  size_t end;
  std::optional<ptrdiff_t> step;
  friend bool operator==(const Answer&, const Answer&) = default;
};
std::vector<Answer> answers(PacketRuns& runs, const Packets& packets) {
  std::vector<Answer> all;
  for (size_t i = 1; i + 1 < packets.size(); ++i) {
    const PacketRuns::Run run = runs.run_from(i, packets);
    all.push_back({run.end, run.step});
  }
  return all;
}
std::vector<Answer> fresh_answers(const Packets& packets) {
  PacketRuns runs;
  runs.reset(packets.size());
  return answers(runs, packets);
}

// True if consecutive runs cover all packets except the first and the last, and each run's step is
// right.
bool covers(PacketRuns& runs, const Packets& packets) {
  size_t i = 1;
  while (i + 1 < packets.size()) {
    const PacketRuns::Run run = runs.run_from(i, packets);
    if (run.end <= i || run.end > packets.size() - 1) return false;
    const std::span stretch = std::span(packets).subspan(i, run.end - i);
    if (run.step && !is_stepped(stretch, *run.step)) return false;
    // Equal packets must be reported as a run, or the class would gain nothing.
    if (!run.step && stretch.size() > 1 &&
        is_stepped(stretch,
                   static_cast<ptrdiff_t>(address_of(stretch[1]) - address_of(stretch[0]))))
      return false;
    i = run.end;
  }
  return packets.size() < 3 || i == packets.size() - 1;
}

}  // namespace

TEST_CASE("runs cover all packets but the first and the last one, and a step holds for a whole run",
          "[packet_runs]") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    PacketRuns runs;
    for (int recording = 0; recording < 3; ++recording) {
      const Packets packets = some_recording(random, 1 + random() % 400);
      runs.reset(packets.size());
      REQUIRE(covers(runs, packets));
      REQUIRE(covers(runs, packets));  // the second call reads cached runs
    }
  }
}

TEST_CASE("a run may be queried from any of its packets, and in any order", "[packet_runs]") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Packets packets = some_recording(random, 3 + random() % 300);
    const std::vector<Answer> expected = fresh_answers(packets);
    PacketRuns runs;
    runs.reset(packets.size());
    for (int i = 0; i < 500; ++i) {
      const size_t first = 1 + random() % (packets.size() - 2);
      const PacketRuns::Run run = runs.run_from(first, packets);
      REQUIRE(Answer{run.end, run.step} == expected[first - 1]);
      if (run.step)
        REQUIRE(is_stepped(std::span(packets).subspan(first, run.end - first), *run.step));
    }
  }
}

TEST_CASE("after a change the answers equal those for new packets", "[packet_runs]") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Packets packets = some_recording(random, 1 + random() % 300);
    PacketRuns runs;
    runs.reset(packets.size());
    for (int round = 0; round < 20; ++round) {
      for (auto changes = random() % 4; changes > 0; --changes) {
        const size_t which = random() % packets.size();
        // Half of them repair a run, if there is one.
        if (which > 1 && random() % 2 == 0) {
          packets[which] = packets[which - 1];
          packets[which].set_kernarg_address(
              address(2 * address_of(packets[which - 1]) - address_of(packets[which - 2])));
        } else {
          packets[which] = some_packet(random, packets[which]);
        }
        runs.changed(which);
      }
      REQUIRE(answers(runs, packets) == fresh_answers(packets));
      REQUIRE(covers(runs, packets));
    }
  }
}

TEST_CASE("long runs of one kernel are found, whatever the distance of their blocks",
          "[packet_runs]") {
  for (const ptrdiff_t step : {ptrdiff_t{0}, ptrdiff_t{64}, ptrdiff_t{-192}}) {
    CAPTURE(step);
    Packets packets;
    for (uint64_t i = 0; i < 300; ++i)
      packets.push_back(dispatch(0x100000 + i * static_cast<uint64_t>(step)));
    for (const Answer& answer : fresh_answers(packets)) REQUIRE(answer.step == step);
    // The first and the last packet belong to no run, so their content has no effect.
    packets.front() = packets.back() = aql::to_packet(aql::BarrierAnd{});
    for (const Answer& answer : fresh_answers(packets)) REQUIRE(answer.step == step);
  }
}

TEST_CASE("packets other than dispatches are stored as they are, even if equal", "[packet_runs]") {
  for (const Answer& answer : fresh_answers(Packets(300, aql::to_packet(aql::BarrierAnd{}))))
    REQUIRE(answer.step == std::nullopt);
}

TEST_CASE("a change before the first query has no effect", "[packet_runs]") {
  PacketRuns runs;
  runs.changed(0);
  runs.changed(1000);
  const Packets packets(3, dispatch(64));
  runs.reset(packets.size());
  runs.changed(3);
  CHECK(runs.run_from(1, packets).end == 2);
}
