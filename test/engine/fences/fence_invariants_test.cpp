// Random plans, judged by the rules of fence_plan.hpp for each pair of packets and each byte. The
// judge shares no code with the planner. The patches of test/mutants make these tests fail.
#include <uptempo/fences/fence_planner.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/catch.hpp"

using namespace uptempo;
using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;
using uptempo::detail::AccessRange;
using uptempo::detail::Declarations;
using uptempo::detail::Overwrites;

namespace {

constexpr unsigned kMemoryBytes = 12;
char bytes_of_memory[kMemoryBytes];  // the memory that programs read and write

struct Packet {
  uint32_t reads = 0, writes = 0;  // one bit per byte of memory
  Observer observer = Observer::none;
  bool undeclared = false;
  bool depends = false;  // on `after` and, apart from the bytes above, on nothing else
  std::vector<size_t> after{};
};
using PacketList = std::vector<Packet>;

constexpr uint32_t kEverything = (1u << kMemoryBytes) - 1;
uint32_t read_by(const Packet& packet) { return packet.undeclared ? kEverything : packet.reads; }
uint32_t written_by(const Packet& packet) {
  return packet.undeclared ? kEverything : packet.writes;
}

// Calls f for the declared range of each run of set bits.
template <class F>
void for_each_range(uint32_t bits, F&& f) {
  for (unsigned begin = 0; begin < kMemoryBytes; ++begin) {
    unsigned end = begin;
    while (end < kMemoryBytes && (bits >> end & 1) != 0) ++end;
    if (end != begin) f(bytes_of_memory + begin, size_t{end - begin});
    begin = end;
  }
}

std::vector<HeaderFlags> flags_of(std::span<const PacketPlan> plans) {
  std::vector<HeaderFlags> flags;
  for (const PacketPlan& plan : plans) flags.push_back(plan.flags);
  return flags;
}

// Checks the rules by pairs of packets.
class Judge {
 public:
  // With `overwrites`, as on an agent with several L2 caches: overwritten bytes are handed over,
  // too.
  Judge(const PacketList& program, bool overwrites) : count_(program.size()) {
    for (size_t later = 0; later < count_; ++later) {
      const Packet& b = program[later];
      // bytes whose last writer is not found yet
      uint32_t open = read_by(b) | (overwrites ? written_by(b) : 0);
      for (size_t earlier = later; earlier-- > 0;) {
        const Packet& a = program[earlier];
        if ((written_by(a) & (read_by(b) | written_by(b))) != 0 ||
            (read_by(a) & written_by(b)) != 0)
          conflicts_.push_back({earlier, later});
        if ((written_by(a) & open) != 0) hand_overs_.push_back({earlier, later});
        open &= ~written_by(a);
        // A packet with dependencies may access any memory, as one without declarations does.
        if (std::ranges::count(b.after, earlier) != 0 || (a.undeclared && b.depends) ||
            (a.depends && b.undeclared)) {
          conflicts_.push_back({earlier, later});
          hand_overs_.push_back({earlier, later});
        }
      }
    }
    for (const Packet& packet : program)
      least_.push_back(packet.observer == Observer::system  ? FenceScope::system
                       : packet.observer == Observer::agent ? FenceScope::agent
                                                            : FenceScope::none);
    least_.back() = FenceScope::system;
  }

  // Returns the rule that the flags break; empty if they break none.
  std::string_view broken_by(std::span<const HeaderFlags> flags) const {
    if (flags.front().barrier == Barrier::off || flags.front().acquire != FenceScope::system ||
        flags.back().barrier == Barrier::off)
      return "the ends of a batch";
    for (size_t i = 0; i < count_; ++i)
      if (flags[i].release < least_[i]) return "an observer sees what was written";
    const auto before = [&](size_t i, size_t j) {
      for (size_t at = i + 1; at <= j; ++at)
        if (flags[at].barrier == Barrier::on) return true;
      return false;
    };
    for (const auto& [i, j] : conflicts_)
      if (!before(i, j)) return "the later of two packets begins when the earlier one is over";
    for (const auto& [i, j] : hand_overs_) {
      bool handed_over = false;
      for (size_t r = i; r < j && !handed_over; ++r)
        for (size_t q = r + 1; q <= j && !handed_over; ++q)
          handed_over = (r == i || before(i, r)) && before(r, q) &&
                        flags[r].release != FenceScope::none &&
                        flags[q].acquire != FenceScope::none;
      if (!handed_over) return "what a packet reads is released, then acquired";
    }
    return {};
  }

  std::span<const FenceScope> least_releases() const { return least_; }

 private:
  struct Pair {
    size_t earlier, later;
  };
  size_t count_;
  std::vector<Pair> conflicts_, hand_overs_;
  std::vector<FenceScope> least_;
};

FenceCost cost_of_flags(std::span<const HeaderFlags> flags) {
  std::vector<PacketPlan> plans;
  for (const HeaderFlags& one : flags) plans.push_back({.flags = one});
  return cost_of(plans);
}

// The least cost of all correct choices. System fences are only where the judge requires them,
// because another one is never cheaper.
FenceCost least_cost(const PacketList& program, const Judge& judge) {
  const size_t count = program.size();
  FenceCost least{~0u, 0, 0};
  std::vector<HeaderFlags> flags(count);
  for (uint32_t bits = 0; bits < 1u << 3 * count; ++bits) {
    for (size_t i = 0; i < count; ++i) {
      const auto bit = [&](size_t which) { return (bits >> (3 * i + which) & 1) != 0; };
      flags[i] = {
          bit(0) ? Barrier::on : Barrier::off, bit(1) ? FenceScope::agent : FenceScope::none,
          std::max(judge.least_releases()[i], bit(2) ? FenceScope::agent : FenceScope::none)};
    }
    flags.front().acquire = FenceScope::system;
    const FenceCost cost = cost_of_flags(flags);
    if (cost < least && judge.broken_by(flags).empty()) least = cost;
  }
  return least;
}

PacketList random_program(std::mt19937_64& random, size_t count) {
  PacketList program(count);
  const auto bits = [&] {
    // A few bytes at a time, so that accesses overlap partly.
    const unsigned at = static_cast<unsigned>(random() % kMemoryBytes);
    const unsigned bytes = 1 + static_cast<unsigned>(random() % 4);
    return ((1u << bytes) - 1) << at & kEverything;
  };
  for (size_t number = 0; number < count; ++number) {
    Packet& packet = program[number];
    for (uint64_t i = random() % 3; i > 0; --i) packet.reads |= bits();
    for (uint64_t i = random() % 3; i > 0; --i) packet.writes |= bits();
    const uint64_t chance = random() % 16;
    packet.observer = chance == 0   ? Observer::system
                      : chance == 1 ? Observer::agent
                                    : Observer::none;
    packet.undeclared = chance == 2;
    packet.depends = chance >= 11;
    if (!packet.depends) continue;
    if (chance >= 13) packet.reads = packet.writes = 0;
    for (uint64_t i = random() % 3; i > 0 && number != 0; --i)
      packet.after.push_back(random() % number);
  }
  return program;
}

std::string text_of(const PacketList& program) {
  std::string text;
  for (const Packet& packet : program) {
    if (packet.undeclared) text += "?";
    text += " r" + std::to_string(packet.reads) + " w" + std::to_string(packet.writes) + " o" +
            std::to_string(static_cast<int>(packet.observer));
    if (packet.depends) text += " after";
    for (const size_t earlier : packet.after) text += " " + std::to_string(earlier);
    text += ";";
  }
  return text;
}

struct Planned {
  explicit Planned(const PacketList& program, bool overwrites)
      : planner(overwrites ? Overwrites::handed_over : Overwrites::ordered) {
    for (const Packet& packet : program) {
      const auto number = static_cast<uint32_t>(intents.size());
      Declarations& intent = intents.emplace_back();
      intent.observer = packet.observer;
      if (packet.undeclared) continue;
      intent.declare(accesses, nullptr, 0, false);
      for_each_range(packet.reads,
                     [&](char* data, size_t n) { intent.declare(accesses, data, n, false); });
      for_each_range(packet.writes,
                     [&](char* data, size_t n) { intent.declare(accesses, data, n, true); });
      if (packet.depends) intent.depend(accesses, number, packet.after);
    }
    plans.resize(program.size());
    planner.plan(intents, accesses, plans);
  }
  detail::FencePlanner planner;
  std::vector<Declarations> intents;
  std::vector<AccessRange> accesses;
  std::vector<PacketPlan> plans;
};

}  // namespace

TEST_CASE("Fences: random plans of any length are correct") {
  std::mt19937_64 random(2);
  for (uint32_t i = 0; i < 300; ++i) {
    const PacketList program = random_program(random, 1 + random() % 60);
    const bool overwrites = i % 2 == 0;
    CAPTURE(overwrites, text_of(program));
    REQUIRE(Judge(program, overwrites).broken_by(flags_of(Planned(program, overwrites).plans)) ==
            "");
  }
}

TEST_CASE("Fences: no single barrier bit or fence of a random plan can be removed") {
  std::mt19937_64 random(2);
  for (uint32_t i = 0; i < 600; ++i) {
    const PacketList program = random_program(random, 1 + random() % (i % 2 == 0 ? 60 : 8));
    const bool overwrites = i % 4 < 2;
    CAPTURE(overwrites, text_of(program));
    const Judge judge(program, overwrites);
    const std::vector<HeaderFlags> flags = flags_of(Planned(program, overwrites).plans);
    for (size_t at = 0; at < flags.size(); ++at) {
      for (int part = 0; part < 3; ++part) {
        std::vector<HeaderFlags> less = flags;
        if (part == 0) less[at].barrier = Barrier::off;
        if (part == 1) less[at].acquire = FenceScope::none;
        if (part == 2) less[at].release = FenceScope::none;
        if (less == flags) continue;
        CAPTURE(at, part);
        CHECK(judge.broken_by(less) != "");
      }
    }
  }
}

TEST_CASE("Fences: no plan of up to six packets has fewer system fences or barrier bits") {
  std::mt19937_64 random(1);
  uint64_t least_agent_fences = 0, agent_fences = 0;
  for (const auto& [count, programs] :
       {std::pair{1u, 20u}, {2u, 200u}, {3u, 400u}, {4u, 400u}, {5u, 100u}, {6u, 30u}}) {
    for (uint32_t i = 0; i < programs; ++i) {
      const PacketList program = random_program(random, count);
      const bool overwrites = i % 2 == 0;
      CAPTURE(count, overwrites, text_of(program));
      const Judge judge(program, overwrites);
      const FenceCost cost = cost_of(Planned(program, overwrites).plans),
                      least = least_cost(program, judge);
      REQUIRE(cost.system_fences == least.system_fences);
      REQUIRE(cost.barrier_bits == least.barrier_bits);
      agent_fences += cost.agent_fences;
      least_agent_fences += least.agent_fences;
    }
  }
  CHECK(100 * agent_fences <= 101 * least_agent_fences);  // one in a hundred too many
}

TEST_CASE("a planner keeps its ranges, and plans the same as a new one") {
  std::mt19937_64 random(3);
  detail::FencePlanner kept(Overwrites::handed_over);
  for (uint32_t i = 0; i < 2000; ++i) {
    const PacketList program = random_program(random, 1 + random() % 12);
    Planned fresh(program, true);
    std::vector<PacketPlan> plans(program.size());
    // Other addresses each time, so that ranges are added and removed.
    std::vector<AccessRange> accesses = fresh.accesses;
    for (AccessRange& access : accesses) {
      if (access.is_dependency) continue;
      access.begin += (i % 500) * 64;
      access.end += (i % 500) * 64;
    }
    kept.plan(fresh.intents, accesses, plans);
    CHECK(flags_of(plans) == flags_of(fresh.plans));
  }
}
