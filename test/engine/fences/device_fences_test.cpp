// Random batches and recordings with declared accesses on a device. Results equal the host's, on
// every path of submission. Under uptempo-vgpu --check fences the checker reports nothing; under
// --incoherent caches keep stale lines unless a fence removes them. The checker finds wrong
// declarations.
#include <dlfcn.h>

#include <uptempo/kernels/basics.hpp>
#include <uptempo/kernels/probes.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <uptempo/vgpu/query.h>
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

using uptempo::test::OnDevice;
using uptempo::test::soon;

constexpr uint32_t kWords = 256, kPart = 64, kCells = 6;
constexpr uint32_t kRing = 64;  // the smallest there is

// Number of the fence checker's findings; empty if it does not run.
std::optional<uint64_t> findings() {
  const auto query =
      reinterpret_cast<uptempo_vgpu_findings_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_findings"));
  uptempo_vgpu_finding_counts counts;
  if (query == nullptr || query(&counts) != 0) return {};
  return counts.unordered + counts.stale + counts.unreleased;
}

// Words of a cell.
struct Slice {
  uint32_t cell = 0, begin = 0;
};
struct Operation {
  enum class Kind : uint8_t { fill, copy, combine } kind = Kind::fill;
  uint32_t length = kPart, value = 0;
  Slice out{}, a{}, b{};
  bool observed = false;
  std::optional<aql::FenceScope> fences{};  // the caller's, for acquire and release
};
using Operations = std::vector<Operation>;
// The read that an operation does not declare.
enum class Left : uint8_t { none, a, b, out };

class Machine : public OnDevice {
 public:
  explicit Machine(uint64_t seed)
      : Machine(seed, [](const Agent& agent) {
          return Queue(agent, {.packets = kRing, .timing_signals = 256});
        }) {}
  template <class MakeQueue>
  Machine(uint64_t seed, MakeQueue&& make_queue)
      : OnDevice(), random(seed), queue(make_queue(gpu)) {
    for (uint32_t cell = 0; cell < kCells; ++cell) {
      constexpr MemoryKind kinds[] = {MemoryKind::device, MemoryKind::pinned,
                                      MemoryKind::pinned_coarse};
      memory_.emplace_back(gpu, kinds[cell % 3], kWords * sizeof(uint32_t));
      expected_[cell].fill(0);
    }
    const PinnedBuffer<uint32_t> zeros(gpu, kWords);
    std::ranges::fill(zeros.span(), 0u);
    BatchSubmitter batch(queue);
    for (uint32_t cell = 0; cell < kCells; ++cell)
      batch.dispatch(fill_, Grid{kWords}.by(kPart), at({cell, 0}), 0u);
    batch.submit().wait();
  }

  Operations random_operations(size_t count) {
    Operations all(count);
    for (Operation& one : all) {
      one.kind = static_cast<Operation::Kind>(random() % 3);
      one.value = static_cast<uint32_t>(random());
      one.length = kPart << random() % 3;
      const auto slice = [&](uint32_t cell) {
        return Slice{cell,
                     static_cast<uint32_t>(random() % ((kWords - one.length) / kPart + 1)) * kPart};
      };
      const auto number = static_cast<uint32_t>(random() % kCells);
      const auto another = [&] {
        return static_cast<uint32_t>((number + 1 + random() % (kCells - 1)) % kCells);
      };
      one.out = slice(number);
      // Other cells than `out`, since work-items of one dispatch are not ordered.
      one.a = slice(another());
      one.b = slice(another());
      one.observed = random() % 16 == 0;
      // The first operation reads what the host wrote, so it needs system scope, as does an
      // observed one.
      const bool host_is_near = &one == &all.front() || one.observed;
      if (random() % 8 == 0)
        one.fences =
            host_is_near || random() % 2 == 0 ? aql::FenceScope::system : aql::FenceScope::agent;
    }
    return all;
  }

  // Adds the operation to a batch or a recording.
  template <class To>
  void dispatch(To& to, const Operation& one, Left left = Left::none) {
    const Grid grid = Grid{one.length}.by(kPart);
    switch (one.kind) {
      case Operation::Kind::fill:
        return declare(to.dispatch(fill_, grid, at(one.out), one.value), one, left);
      case Operation::Kind::copy:
        return declare(to.dispatch(copy_, grid, at(one.out), at(one.a)), one, left);
      case Operation::Kind::combine:
        return declare(to.dispatch(combine_, grid, at(one.out), at(one.a), at(one.b), one.value),
                       one, left);
    }
  }
  // The same, with the earlier ones that it conflicts with as dependencies instead of memory.
  template <class To>
  void dispatch_after(To& to, const Operations& all, size_t number) {
    std::vector<size_t> earlier;
    for (size_t i = 0; i < number; ++i)
      if (conflict(all[i], all[number])) earlier.push_back(i);
    const Operation& one = all[number];
    const Grid grid = Grid{one.length}.by(kPart);
    const auto depend = [&](auto ref) {
      ref.after_packets(earlier);
      if (one.observed) ref.observed_by(Observer::system);
      if (one.fences) ref.fences(*one.fences, *one.fences);
    };
    switch (one.kind) {
      case Operation::Kind::fill:
        return depend(to.dispatch(fill_, grid, at(one.out), one.value));
      case Operation::Kind::copy:
        return depend(to.dispatch(copy_, grid, at(one.out), at(one.a)));
      case Operation::Kind::combine:
        return depend(to.dispatch(combine_, grid, at(one.out), at(one.a), at(one.b), one.value));
    }
  }
  // A dispatch without declarations.
  void dispatch_silently(BatchSubmitter& to) {
    to.dispatch(fill_, Grid{kWords}.by(kPart), staging_.data(), 0u);
  }
  // Replaces a node that was a fill.
  auto replace(Recording& recording, const Node<uint32_t*, uint32_t>& node, const Operation& one) {
    auto ref = recording.replace(node, fill_, Grid{one.length}.by(kPart), at(one.out), one.value);
    declare(ref, one, Left::none);
    return ref;
  }
  Node<uint32_t*, uint32_t> record_fill(Recording& recording, const Operation& one) {
    auto ref = recording.dispatch(fill_, Grid{one.length}.by(kPart), at(one.out), one.value);
    declare(ref, one, Left::none);
    return ref;
  }

  // Gives the recorded operation its addresses, one by one.
  void set_addresses(Recording& recording, size_t node, const Operation& one) {
    if (one.kind == Operation::Kind::fill) {
      recording.set<0>(recording.node<uint32_t*, uint32_t>(node), at(one.out));
    } else if (one.kind == Operation::Kind::copy) {
      const auto copy = recording.node<uint32_t*, const uint32_t*>(node);
      recording.set<0>(copy, at(one.out));
      recording.set<1>(copy, at(one.a));
    } else {
      const auto combine =
          recording.node<uint32_t*, const uint32_t*, const uint32_t*, uint32_t>(node);
      recording.set<0>(combine, at(one.out));
      recording.set<1>(combine, at(one.a));
      recording.set<2>(combine, at(one.b));
    }
  }
  // Other memory for an operation.
  void move(Operation& one) {
    const Operation other = random_operations(1).front();
    const auto fitting = [&](const Slice& slice) {
      return Slice{slice.cell, std::min(slice.begin, kWords - one.length)};
    };
    one.out = fitting(other.out);
    one.a = fitting(other.a);
    one.b = fitting(other.b);
  }

  // Executes the operations on the host.
  void expect(const Operations& all) {
    for (const Operation& one : all) {
      uint32_t* const out = expected_[one.out.cell].data() + one.out.begin;
      const uint32_t* const a = expected_[one.a.cell].data() + one.a.begin;
      const uint32_t* const b = expected_[one.b.cell].data() + one.b.begin;
      for (uint32_t i = 0; i < one.length; ++i) {
        switch (one.kind) {
          case Operation::Kind::fill:
            out[i] = one.value;
            break;
          case Operation::Kind::copy:
            out[i] = a[i];
            break;
          case Operation::Kind::combine:
            out[i] = out[i] * 7 + a[one.length - 1 - i] * 3 + b[i] * 5 + one.value;
        }
      }
    }
  }
  // The device is idle.
  void host_writes() {
    for (uint32_t cell = 0; cell < kCells; ++cell) {
      if (cell % 3 == 0 || random() % 2 != 0) continue;
      const auto word = static_cast<uint32_t>(random() % kWords);
      at({cell, 0})[word] = expected_[cell][word] = static_cast<uint32_t>(random());
    }
  }
  bool is_as_expected() {
    for (uint32_t cell = 0; cell < kCells; ++cell) {
      std::vector<uint32_t> found(kWords);
      if (cell % 3 == 0) {
        BatchSubmitter batch(queue);
        batch.dispatch(copy_, Grid{kWords}.by(kPart), staging_.data(), at({cell, 0}));
        batch.submit().wait();
        std::ranges::copy(staging_.span(), found.begin());
      } else {
        std::copy_n(at({cell, 0}), kWords, found.begin());
      }
      if (!std::ranges::equal(found, expected_[cell])) return false;
    }
    return true;
  }

  std::mt19937_64 random;
  Queue queue;

 private:
  static bool conflict(const Operation& a, const Operation& b) {
    const auto overlap = [](const Operation& x, const Slice& of_x, const Operation& y,
                            const Slice& of_y) {
      return of_x.cell == of_y.cell && of_x.begin < of_y.begin + y.length &&
             of_y.begin < of_x.begin + x.length;
    };
    const auto touches = [&](const Operation& writer, const Operation& other) {
      return overlap(writer, writer.out, other, other.out) ||
             (other.kind != Operation::Kind::fill && overlap(writer, writer.out, other, other.a)) ||
             (other.kind == Operation::Kind::combine &&
              overlap(writer, writer.out, other, other.b));
    };
    return touches(a, b) || touches(b, a);
  }
  uint32_t* at(const Slice& slice) {
    return static_cast<uint32_t*>(memory_[slice.cell].data()) + slice.begin;
  }
  template <class Ref>
  void declare(Ref ref, const Operation& one, Left left) {
    ref.writes(at(one.out), one.length);
    if (one.kind == Operation::Kind::combine && left != Left::out)
      ref.reads(at(one.out), one.length);
    if (one.kind != Operation::Kind::fill && left != Left::a) ref.reads(at(one.a), one.length);
    if (one.kind == Operation::Kind::combine && left != Left::b) ref.reads(at(one.b), one.length);
    if (one.observed) ref.observed_by(Observer::system);
    if (one.fences) ref.fences(*one.fences, *one.fences);
  }

  const Program basics_{gpu, builtin_kernels::basics()}, probes_{gpu, builtin_kernels::probes()};
  const Kernel<uint32_t*, uint32_t> fill_ = basics_.kernel<uint32_t*, uint32_t>("fill");
  const Kernel<uint32_t*, const uint32_t*> copy_ =
      basics_.kernel<uint32_t*, const uint32_t*>("copy");
  const Kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t> combine_ =
      probes_.kernel<uint32_t*, const uint32_t*, const uint32_t*, uint32_t>("combine");
  std::vector<Allocation> memory_;
  const PinnedBuffer<uint32_t> staging_{gpu, kWords};
  std::array<std::array<uint32_t, kWords>, kCells> expected_;
};

std::vector<aql::HeaderFlags> flags_of(std::span<const PacketPlan> plans) {
  std::vector<aql::HeaderFlags> flags;
  for (const PacketPlan& plan : plans) flags.push_back(plan.flags);
  return flags;
}

aql::Packet64 barrier_packet() {
  return aql::to_packet(
      aql::BarrierAnd{.flags = {aql::Barrier::off, aql::FenceScope::none, aql::FenceScope::none}});
}

}  // namespace

TEST_CASE(
    "random batches with the fewest fences compute the host's results, on every path of submission",
    "[fences]") {
  Machine machine(1);
  const std::optional<uint64_t> before = findings();
  for (const Timing timing : {Timing::none, Timing::batch, Timing::each}) {
    const Signal own(SignalKind::interrupt);
    BatchSubmitter batch(machine.queue, {.timing = timing});
    Operations all;
    for (int i = 0; i < 100; ++i) {
      CAPTURE(static_cast<int>(timing), i);
      machine.host_writes();
      // Up to twice the ring.
      if (i % 3 != 2)  // or the same again
        all = machine.random_operations(1 + machine.random() % (i % 8 == 0 ? 2 * kRing : 24));
      const size_t raw = i % 4 == 1 ? machine.random() % (all.size() + 1) : all.size() + 1;
      for (size_t packet = 0; packet < all.size(); ++packet) {
        if (packet == raw) batch.raw(barrier_packet());
        machine.dispatch(batch, all[packet]);
      }
      if (raw == all.size()) batch.raw(barrier_packet());
      if (i % 4 == 2) batch.complete_with(own);
      batch.submit(soon()).wait();
      machine.expect(all);
      REQUIRE(machine.is_as_expected());
    }
  }
  if (before) CHECK(findings() == before);
}

TEST_CASE("random batches with dependencies instead of memory compute the host's results",
          "[fences]") {
  Machine machine(11);
  const std::optional<uint64_t> before = findings();
  BatchSubmitter batch(machine.queue);
  for (int i = 0; i < 120; ++i) {
    CAPTURE(i);
    machine.host_writes();
    const Operations all =
        machine.random_operations(1 + machine.random() % (i % 8 == 0 ? 2 * kRing : 24));
    Recording recording(machine.queue);
    for (size_t number = 0; number < all.size(); ++number) {
      machine.dispatch_after(batch, all, number);
      machine.dispatch_after(recording, all, number);
    }
    batch.submit(soon()).wait();
    machine.expect(all);
    REQUIRE(machine.is_as_expected());
    machine.host_writes();
    recording.replay(machine.queue, soon()).wait();
    machine.expect(all);
    REQUIRE(machine.is_as_expected());
  }
  if (before) CHECK(findings() == before);
}

TEST_CASE("a batch longer than the ring is planned completely before its first packet is published",
          "[fences]") {
  Machine machine(2);
  BatchSubmitter batch(machine.queue);
  FencePlan plan(machine.gpu);
  const PinnedBuffer<uint32_t> memory(machine.gpu, 3 * kRing * kPart);
  const Program basics(machine.gpu, builtin_kernels::basics());
  const auto chain = basics.kernel<uint32_t*, uint32_t>("chain_increment");
  std::ranges::fill(memory.span(), 1u);
  for (uint32_t i = 0; i < 3 * kRing; ++i) {
    uint32_t* const slice = memory.data() + i / 3 * kPart;
    batch.dispatch(chain, Grid{kPart}, slice, i).reads(slice, kPart).writes(slice, kPart);
    plan.dispatch().reads(slice, kPart).writes(slice, kPart);
  }
  batch.submit().wait();
  CHECK(flags_of(batch.plan()) == flags_of(plan.packets()));
  CHECK(cost_of(batch.plan()).system_fences == 2);
  for (uint32_t i = 0; i < kRing; ++i) {
    const uint32_t first = 3 * i;
    const uint32_t expected = ((1 * 3 + first) * 3 + first + 1) * 3 + first + 2;
    CHECK(std::ranges::count(memory.span().subspan(i * kPart, kPart), expected) == kPart);
  }
}

TEST_CASE_METHOD(OnDevice,
                 "batches with the fewest fences do not rely on other producers of a shared queue",
                 "[fences]") {
  SharedQueue shared(gpu, {.packets = kRing});
  const std::optional<uint64_t> before = findings();
  // Made by one thread: at the first load of a program ROCr makes an object for its copies. Another
  // thread finds it with atomics that ThreadSanitizer does not see.
  const auto producer = [&](const Agent&) { return shared.producer(); };
  Machine mine(9, producer), others(8, producer);
  const auto work = [&](Machine& machine) {
    BatchSubmitter batch(machine.queue);
    for (int i = 0; i < 100; ++i) {
      machine.host_writes();
      const Operations all =
          machine.random_operations(1 + machine.random() % (i % 8 == 0 ? 2 * kRing : 24));
      for (const Operation& one : all) machine.dispatch(batch, one);
      batch.submit(soon()).wait();
      machine.expect(all);
      if (!machine.is_as_expected()) return false;
    }
    return true;
  };
  auto other = std::async(std::launch::async, work, std::ref(others));
  CHECK(work(mine));
  CHECK(other.get());
  if (before) CHECK(findings() == before);
}

TEST_CASE("a batch is fenced by its declarations, whatever came before it", "[fences]") {
  Machine machine(7);
  BatchSubmitter batch(machine.queue);
  constexpr size_t packets = 6;
  const Operations some[] = {machine.random_operations(packets), machine.random_operations(packets),
                             machine.random_operations(packets)};
  for (int i = 0; i < 100; ++i) {
    const size_t which = machine.random() % 4;                // the last without declarations
    const size_t changed = machine.random() % (2 * packets);  // a dispatch with other declarations
    BatchSubmitter fresh(machine.queue);
    for (BatchSubmitter* const to : {&batch, &fresh}) {
      for (size_t packet = 0; packet < packets; ++packet) {
        if (which == 3) {
          machine.dispatch_silently(*to);
        } else {
          Operation one = some[which][packet];
          one.observed = one.observed != (packet == changed);
          machine.dispatch(*to, one);
        }
      }
      to->submit().wait();
    }
    CAPTURE(i, which, changed);
    REQUIRE(flags_of(batch.plan()) == flags_of(fresh.plan()));
  }
}

TEST_CASE("the barrier packet that completes a finished one has nothing to acquire", "[fences]") {
  Machine machine(6);
  BatchSubmitter batch(machine.queue);
  machine.dispatch(batch, {.kind = Operation::Kind::fill, .length = kWords, .value = 7});
  batch.raw(barrier_packet());
  batch.submit().wait();
  const std::vector<aql::HeaderFlags> flags = flags_of(batch.plan());
  REQUIRE(flags.size() == 3);
  CHECK(flags[2] ==
        aql::HeaderFlags{aql::Barrier::on, aql::FenceScope::none, aql::FenceScope::system});
}

TEST_CASE(
    "a recording with the fewest fences is planned again when a replaced node touches other memory",
    "[fences][recording]") {
  Machine machine(3);
  const std::optional<uint64_t> before = findings();
  Queue other(machine.gpu, {.packets = kRing});
  for (int i = 0; i < 12; ++i) {
    Recording recording(machine.queue);
    Operations all =
        machine.random_operations(2 + machine.random() % (i % 4 == 0 ? 2 * kRing : 20));
    std::vector<std::pair<size_t, Node<uint32_t*, uint32_t>>> fills;
    for (size_t node = 0; node < all.size(); ++node) {
      if (node % 2 == 0) {
        all[node].kind = Operation::Kind::fill;
        fills.emplace_back(node, machine.record_fill(recording, all[node]));
      } else {
        machine.dispatch(recording, all[node]);
      }
    }
    for (int replay = 0; replay < 6; ++replay) {
      CAPTURE(i, replay);
      machine.host_writes();
      recording.replay(replay % 2 == 0 ? machine.queue : other, soon()).wait();
      machine.expect(all);
      REQUIRE(machine.is_as_expected());
      auto& [node, handle] = fills[machine.random() % fills.size()];
      Operation fill = machine.random_operations(1).front();
      fill.kind = Operation::Kind::fill;
      all[node] = fill;
      handle = machine.replace(recording, handle, fill);
    }
  }
  if (before) CHECK(findings() == before);
}

TEST_CASE("replays in flight with other addresses each compute the host's results",
          "[fences][recording]") {
  Machine machine(12);
  const std::optional<uint64_t> before = findings();
  for (int i = 0; i < 12; ++i) {
    Recording recording(machine.queue);
    Operations all =
        machine.random_operations(2 + machine.random() % (i % 4 == 0 ? 2 * kRing : 20));
    for (Operation& one : all) {
      if (one.a.cell == one.b.cell) one.b = one.a;  // no address within another one's range
      machine.dispatch(recording, one);
    }
    for (int change = 0; change < 6; ++change) {
      CAPTURE(i, change);
      machine.host_writes();
      for (int replay = 0; replay < 3; ++replay) {
        for (size_t node = 0; node < all.size(); ++node) {
          if (machine.random() % 3 == 0) continue;
          machine.move(all[node]);
          machine.set_addresses(recording, node, all[node]);
        }
        recording.replay(machine.queue, soon());
        machine.expect(all);
      }
      machine.queue.wait();
      REQUIRE(machine.is_as_expected());
    }
  }
  if (before) CHECK(findings() == before);
}

TEST_CASE("a simulation swaps its two buffers between replays in flight", "[fences][recording]") {
  using Kind = Operation::Kind;
  Machine machine(13);
  const std::optional<uint64_t> before = findings();
  Operations step{{.kind = Kind::combine, .length = kWords, .value = 3, .out = {1}},
                  {.kind = Kind::copy, .length = kWords, .out = {2}, .a = {1}},
                  {.kind = Kind::fill, .length = kPart, .value = 9, .out = {3}}};
  Recording recording(machine.queue);
  for (const Operation& one : step) machine.dispatch(recording, one);
  const auto replay = [&] {
    recording.replay(machine.queue, soon());
    machine.expect(step);
  };
  const auto swap = [&] {
    for (size_t node = 0; node < 2; ++node) {
      for (Slice* const slice : {&step[node].out, &step[node].a, &step[node].b})
        if (slice->cell < 2) slice->cell = 1 - slice->cell;
      machine.set_addresses(recording, node, step[node]);
    }
  };
  replay();
  const std::vector<aql::HeaderFlags> flags = flags_of(recording.plan());
  CHECK(flags[1].barrier == aql::Barrier::on);
  for (int i = 0; i < 20; ++i) {
    swap();
    replay();
    CHECK(flags_of(recording.plan()) == flags);
  }
  // The copy reads the old values, and needs no order; then the new ones again.
  step[1].a.cell = step[0].a.cell;
  machine.set_addresses(recording, 1, step[1]);
  replay();
  CHECK(recording.plan()[1].flags.barrier == aql::Barrier::off);
  step[1].a.cell = step[0].out.cell;
  machine.set_addresses(recording, 1, step[1]);
  replay();
  CHECK(flags_of(recording.plan()) == flags);
  machine.queue.wait();
  CHECK(machine.is_as_expected());
  if (before) CHECK(findings() == before);
}

// A separate ctest under --check fences,hsa: the checker must report a finding.
TEST_CASE("the checker finds an undeclared read whose fences are missing", "[.misdeclared]") {
  Machine machine(4);
  REQUIRE(findings());
  int tried = 0;
  for (int i = 0; i < 1000; ++i) {
    const Operations all = machine.random_operations(2 + machine.random() % 5);
    const size_t wrong = machine.random() % all.size();
    const auto left = static_cast<Left>(1 + machine.random() % 3);
    const auto cost = [&](Left of) {
      BatchSubmitter batch(machine.queue);
      for (size_t packet = 0; packet < all.size(); ++packet)
        machine.dispatch(batch, all[packet], packet == wrong ? of : Left::none);
      const uint64_t before = *findings();
      batch.submit().wait();
      return std::pair(cost_of(batch.plan()), *findings() - before);
    };
    const auto [right_cost, right_findings] = cost(Left::none);
    CAPTURE(i, wrong, static_cast<int>(left));
    REQUIRE(right_findings == 0);
    const auto [wrong_cost, wrong_findings] = cost(left);
    if (wrong_cost == right_cost) continue;  // another declaration requires the same fences
    // The correct plan was the cheapest correct one.
    REQUIRE(wrong_cost < right_cost);
    CHECK(wrong_findings != 0);
    ++tried;
  }
  CHECK(tried >= 50);
}

// The finding names the reader and the writer; the regular expression of the ctest checks its text.
TEST_CASE("a copy that does not declare its read", "[.unsaid]") {
  Machine machine(5);
  const Operation fill{
      .kind = Operation::Kind::fill, .length = kWords, .value = 7, .out = {.cell = 0}};
  const Operation copy{
      .kind = Operation::Kind::copy, .length = kWords, .out = {.cell = 3}, .a = {.cell = 0}};
  BatchSubmitter batch(machine.queue);
  // not the last one, which has its barrier bit for the completion signal
  for (int i = 0; i < 2; ++i) {
    machine.dispatch(batch, fill);
    machine.dispatch(batch, copy, Left::a);
  }
  const std::optional<uint64_t> before = findings();
  batch.submit().wait();
  REQUIRE(before);
  CHECK(*findings() > *before);
}
