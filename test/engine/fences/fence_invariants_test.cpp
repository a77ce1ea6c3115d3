// One test for each rule of plans with the fewest fences, checked by pairs of packets. The patches
// of test/mutants make each test fail. fence_plan_test.cpp and test/litmus/planned_test.cpp show
// that no cheaper plan is correct.
#include <algorithm>
#include <random>
#include <vector>

#include "engine/fences/fence_planner.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using aql::Barrier;
using aql::FenceScope;

namespace {

constexpr unsigned kMemoryBytes = 12;

struct Packet {
  uint32_t reads = 0, writes = 0;  // one bit per byte of memory
  std::vector<size_t> after{};     // packets that it depends on
};
struct Pair {
  size_t earlier, later;
};

class PlannedProgram {
 public:
  PlannedProgram(std::mt19937_64& random, size_t count) : packets_(count), plans_(count) {
    const auto byte = [&] { return 1u << random() % kMemoryBytes; };
    std::vector<Declarations> intents(count);
    std::vector<AccessRange> accesses;
    for (size_t i = 0; i < count; ++i) {
      for (uint64_t n = random() % 3; n > 0; --n) packets_[i].reads |= byte();
      for (uint64_t n = random() % 3; n > 0; --n) packets_[i].writes |= byte();
      intents[i].declare(accesses, nullptr, 0, false);
      for (uintptr_t at = 0; at < kMemoryBytes; ++at) {
        const auto* const data = reinterpret_cast<const void*>(64 + at);
        if ((packets_[i].reads >> at & 1) != 0) intents[i].declare(accesses, data, 1, false);
        if ((packets_[i].writes >> at & 1) != 0) intents[i].declare(accesses, data, 1, true);
      }
      if (random() % 2 == 0) continue;
      for (uint64_t n = random() % 3; n > 0 && i != 0; --n)
        packets_[i].after.push_back(random() % i);
      intents[i].depend(accesses, static_cast<uint32_t>(i), packets_[i].after);
    }
    detail::FencePlanner(Overwrites::ordered).plan(intents, accesses, plans_);
  }

  // Number of barrier bits up to and including this packet.
  size_t epoch(size_t packet) const {
    return static_cast<size_t>(
        std::count_if(plans_.begin(), plans_.begin() + static_cast<ptrdiff_t>(packet) + 1,
                      [](const PacketPlan& plan) { return plan.flags.barrier == Barrier::on; }));
  }
  bool acquires(size_t packet) const { return plans_[packet].flags.acquire != FenceScope::none; }
  bool releases(size_t packet) const { return plans_[packet].flags.release != FenceScope::none; }

  std::vector<Pair> conflicts() const {
    std::vector<Pair> pairs;
    for (size_t j = 0; j < packets_.size(); ++j)
      for (size_t i = 0; i < j; ++i) {
        const Packet &a = packets_[i], &b = packets_[j];
        if ((a.writes & (b.reads | b.writes)) != 0 || (a.reads & b.writes) != 0)
          pairs.push_back({i, j});
      }
    return pairs;
  }
  // The last writer of each byte that a packet reads, if the two are ordered.
  std::vector<Pair> hand_overs() const {
    std::vector<Pair> pairs;
    for (size_t j = 0; j < packets_.size(); ++j) {
      uint32_t open = packets_[j].reads;
      for (size_t i = j; i-- > 0;) {
        if ((packets_[i].writes & open) != 0 && epoch(i) < epoch(j)) pairs.push_back({i, j});
        open &= ~packets_[i].writes;
      }
    }
    return pairs;
  }
  std::vector<Pair> dependencies() const {
    std::vector<Pair> pairs;
    for (size_t j = 0; j < packets_.size(); ++j)
      for (const size_t i : packets_[j].after) pairs.push_back({i, j});
    return pairs;
  }
  // The last acquiring packet up to the reader and after the writer's end; the writer if there is
  // none.
  size_t acquire_of(const Pair& pair) const {
    for (size_t q = pair.later; q > pair.earlier; --q)
      if (acquires(q) && epoch(q) > epoch(pair.earlier)) return q;
    return pair.earlier;
  }

 private:
  std::vector<Packet> packets_;
  std::vector<PacketPlan> plans_;
};

template <class Rule>
void for_random_programs(const Rule& rule) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    rule(PlannedProgram(random, 1 + random() % 40));
  }
}

}  // namespace

TEST_CASE("Fences: the later of two conflicting dispatches begins when the earlier one is over") {
  for_random_programs([](const PlannedProgram& program) {
    for (const Pair& pair : program.conflicts()) {
      CAPTURE(pair.earlier, pair.later);
      REQUIRE(program.epoch(pair.later) > program.epoch(pair.earlier));
    }
  });
}

TEST_CASE("Fences: what a dispatch reads has been acquired since its writer was over") {
  for_random_programs([](const PlannedProgram& program) {
    for (const Pair& pair : program.hand_overs()) {
      CAPTURE(pair.earlier, pair.later);
      REQUIRE(program.acquire_of(pair) != pair.earlier);
    }
  });
}

TEST_CASE("Fences: a release that covers the writer precedes the acquire for its reader") {
  for_random_programs([](const PlannedProgram& program) {
    for (const Pair& pair : program.hand_overs()) {
      const size_t acquire = program.acquire_of(pair);
      if (acquire == pair.earlier) continue;  // covered by the previous test
      bool released = program.releases(pair.earlier);
      for (size_t r = pair.earlier + 1; r < acquire; ++r)
        released |= program.releases(r) && program.epoch(r) > program.epoch(pair.earlier) &&
                    program.epoch(r) < program.epoch(acquire);
      CAPTURE(pair.earlier, pair.later, acquire);
      REQUIRE(released);
    }
  });
}

TEST_CASE("Fences: a dispatch begins after those it depends on, and acquires what they wrote") {
  for_random_programs([](const PlannedProgram& program) {
    for (const Pair& pair : program.dependencies()) {
      CAPTURE(pair.earlier, pair.later);
      REQUIRE(program.epoch(pair.later) > program.epoch(pair.earlier));
      REQUIRE(program.acquire_of(pair) != pair.earlier);
    }
  });
}
