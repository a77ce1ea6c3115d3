#include <uptempo/aql/packet.hpp>

#include <cstring>
#include <random>
#include <vector>

#include "test/support/catch.hpp"

using namespace uptempo::aql;

namespace {

constexpr HeaderFlags kAgentAgent{Barrier::on, FenceScope::agent, FenceScope::agent};
constexpr HeaderFlags kSystemAgent{Barrier::on, FenceScope::system, FenceScope::agent};
constexpr HeaderFlags kSystemSystem{Barrier::on, FenceScope::system, FenceScope::system};

// A slot whose bytes are all 0xcc before a fill writes it.
struct Slot {
  Packet64 packet;
  Slot() { std::memset(&packet, 0xcc, sizeof packet); }
  unsigned char byte(size_t i) const { return reinterpret_cast<const unsigned char*>(&packet)[i]; }
};

template <class Typed>
void check_writes_exactly_bytes_4_to_63(const Typed& typed) {
  Slot with_cc;
  Slot with_33;
  std::memset(&with_33.packet, 0x33, sizeof with_33.packet);
  const uint32_t first = fill(&with_cc.packet, typed);
  CHECK(fill(&with_33.packet, typed) == first);
  for (size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(with_cc.byte(i) == 0xcc);
    CHECK(with_33.byte(i) == 0x33);
  }
  // Every other byte no longer depends on the slot's previous content.
  CHECK(std::memcmp(&with_cc.packet.word[1], &with_33.packet.word[1], 60) == 0);
}

Packet64 random_packet(std::mt19937_64& random) {
  Packet64 packet;
  for (uint32_t& word : packet.word) word = static_cast<uint32_t>(random());
  return packet;
}

// `count` slots, with a slot on either side that must stay untouched.
struct Fenced {
  explicit Fenced(size_t count) : packets(count + 2, Slot().packet) {}
  std::span<Packet64> slots() { return std::span(packets).subspan(1, packets.size() - 2); }
  bool guards_intact() const {
    return packets.front() == Slot().packet && packets.back() == Slot().packet;
  }
  std::vector<Packet64> packets;
};

}  // namespace

TEST_CASE("a header holds type, barrier bit and scopes at the positions of hsa.h", "[packet]") {
  for (const auto type :
       {PacketType::vendor_specific, PacketType::invalid, PacketType::kernel_dispatch,
        PacketType::barrier_and, PacketType::agent_dispatch, PacketType::barrier_or}) {
    for (const auto barrier : {Barrier::off, Barrier::on}) {
      for (const auto acquire : {FenceScope::none, FenceScope::agent, FenceScope::system}) {
        for (const auto release : {FenceScope::none, FenceScope::agent, FenceScope::system}) {
          const uint16_t header = make_header(type, {barrier, acquire, release});
          const uint16_t by_hand = static_cast<uint16_t>(
              static_cast<unsigned>(type) + (barrier == Barrier::on ? 0x100u : 0u) +
              0x200u * static_cast<unsigned>(acquire) + 0x800u * static_cast<unsigned>(release));
          CHECK(header == by_hand);
          CHECK(packet_type(header) == type);
          CHECK(header_flags(header) == HeaderFlags{barrier, acquire, release});
          CHECK(with_flags(header, kAgentAgent) == make_header(type, kAgentAgent));
        }
      }
    }
  }
}

TEST_CASE("headers equal those that HIP writes", "[packet]") {
  // Observed in the rings of HIP 5.2.3: a launch, a launch after an asynchronous host copy, a
  // marker.
  STATIC_REQUIRE(make_header(PacketType::kernel_dispatch, kAgentAgent) == 0x0b02);
  STATIC_REQUIRE(make_header(PacketType::kernel_dispatch, kSystemAgent) == 0x0d02);
  STATIC_REQUIRE(make_header(PacketType::barrier_and, kSystemSystem) == 0x1503);
  STATIC_REQUIRE(kInvalidHeader == HSA_PACKET_TYPE_INVALID << HSA_PACKET_HEADER_TYPE);
}

TEST_CASE("a fill writes every byte of a slot except the first four", "[packet]") {
  SECTION("kernel dispatch") {
    check_writes_exactly_bytes_4_to_63(
        KernelDispatch{.flags = kAgentAgent, .grid = {64}, .workgroup = {64}});
  }
  SECTION("barrier-AND") { check_writes_exactly_bytes_4_to_63(BarrierAnd{.flags = kSystemSystem}); }
  SECTION("barrier-OR") { check_writes_exactly_bytes_4_to_63(BarrierOr{.flags = kSystemSystem}); }
  SECTION("barrier-value") {
    check_writes_exactly_bytes_4_to_63(BarrierValue{.flags = kSystemSystem});
  }
  SECTION("raw packet") {
    check_writes_exactly_bytes_4_to_63(
        to_packet(KernelDispatch{.flags = kAgentAgent, .grid = {7}}));
  }
}

TEST_CASE("a kernel dispatch packet reads back through hsa.h with the values that were filled",
          "[packet]") {
  int kernarg = 0;
  const auto p = packet_as<hsa_kernel_dispatch_packet_t>(
      to_packet(KernelDispatch{.flags = kSystemAgent,
                               .grid = {1024, 3, 2},
                               .workgroup = {256, 1, 2},
                               .private_segment_size = 16,
                               .group_segment_size = 4096,
                               .kernel_object = 0x1234567890abcdef,
                               .kernarg_address = &kernarg,
                               .completion_signal = {77}}));
  CHECK(p.header == 0x0d02);
  CHECK(p.setup == 3);
  CHECK(p.workgroup_size_x == 256);
  CHECK(p.workgroup_size_y == 1);
  CHECK(p.workgroup_size_z == 2);
  CHECK(p.reserved0 == 0);
  CHECK(p.grid_size_x == 1024);
  CHECK(p.grid_size_y == 3);
  CHECK(p.grid_size_z == 2);
  CHECK(p.private_segment_size == 16);
  CHECK(p.group_segment_size == 4096);
  CHECK(p.kernel_object == 0x1234567890abcdef);
  CHECK(p.kernarg_address == &kernarg);
  CHECK(p.reserved2 == 0);
  CHECK(p.completion_signal.handle == 77);
}

TEST_CASE("a grid has as few dimensions as its size permits, unless given", "[packet]") {
  const auto setup = [](const KernelDispatch& d) { return to_packet(d).setup(); };
  CHECK(setup({.flags = {}, .grid = {1}}) == 1);
  CHECK(setup({.flags = {}, .grid = {512}}) == 1);
  CHECK(setup({.flags = {}, .grid = {512, 2}}) == 2);
  CHECK(setup({.flags = {}, .grid = {512, 1, 2}}) == 3);
  CHECK(setup({.flags = {}, .grid = {512}, .dimensions = 3}) == 3);
}

TEST_CASE("barrier packets carry their five dependencies and their signal", "[packet]") {
  const std::array<hsa_signal_t, 5> signals{{{1}, {2}, {0}, {4}, {5}}};
  const auto check = [&](const auto& p, uint16_t header) {
    CHECK(p.header == header);
    CHECK(p.reserved0 == 0);
    CHECK(p.reserved1 == 0);
    for (size_t i = 0; i < 5; ++i) CHECK(p.dep_signal[i].handle == signals[i].handle);
    CHECK(p.reserved2 == 0);
    CHECK(p.completion_signal.handle == 9);
  };
  check(packet_as<hsa_barrier_and_packet_t>(to_packet(BarrierAnd{kSystemSystem, signals, {9}})),
        0x1503);
  check(packet_as<hsa_barrier_or_packet_t>(to_packet(BarrierOr{kSystemSystem, signals, {9}})),
        0x1505);
}

TEST_CASE("a barrier-value packet has AMD's vendor format 2", "[packet]") {
  const auto p = packet_as<hsa_amd_barrier_value_packet_t>(
      to_packet(BarrierValue{.flags = {Barrier::off, FenceScope::none, FenceScope::none},
                             .signal = {8},
                             .value = -3,
                             .mask = 0xff,
                             .condition = HSA_SIGNAL_CONDITION_GTE,
                             .completion_signal = {9}}));
  CHECK(p.header.header == HSA_PACKET_TYPE_VENDOR_SPECIFIC);
  CHECK(p.header.AmdFormat == HSA_AMD_PACKET_TYPE_BARRIER_VALUE);
  CHECK(p.header.reserved == 0);
  CHECK(p.signal.handle == 8);
  CHECK(p.value == -3);
  CHECK(p.mask == 0xff);
  CHECK(p.cond == HSA_SIGNAL_CONDITION_GTE);
  CHECK(p.reserved0 + p.reserved1 + p.reserved2 + p.reserved3 == 0);
  CHECK(p.completion_signal.handle == 9);
}

TEST_CASE("packets stored after a gate equal the given packets byte by byte", "[packet]") {
  std::mt19937_64 random(1);
  for (const size_t count : {0u, 1u, 2u, 3u, 64u, 129u}) {
    CAPTURE(count);
    // One more, so that an address exists for a count of 0.
    std::vector<Packet64> packets(count + 1);
    for (Packet64& packet : packets) packet = random_packet(random);
    Fenced fenced(count);
    store_behind_gate(fenced.slots(), packets.data());
    CHECK(fenced.guards_intact());
    for (size_t i = 0; i < count; ++i) CHECK(fenced.slots()[i] == packets[i]);
  }
}

TEST_CASE(
    "a dispatch stored after a gate equals its model except for kernarg address and group segment",
    "[packet]") {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    const Packet64 like = random_packet(random);
    const auto* const address = reinterpret_cast<const void*>(random());
    const auto group_segment = static_cast<uint32_t>(random());
    Fenced fenced(1);
    store_behind_gate(fenced.slots()[0], like, address, group_segment);
    auto expected = packet_as<hsa_kernel_dispatch_packet_t>(like);
    expected.kernarg_address = const_cast<void*>(address);
    expected.group_segment_size = group_segment;
    CHECK(fenced.guards_intact());
    CHECK(std::memcmp(&fenced.slots()[0], &expected, sizeof expected) == 0);
  }
}

TEST_CASE("the cost of a header depends on its flags only, and costs add up", "[packet]") {
  HeaderCosts sum;
  uint64_t barriers = 0, acquires = 0, releases = 0;
  for (uint32_t header = 0; header <= 0xffff; ++header) {
    const HeaderFlags flags = header_flags(static_cast<uint16_t>(header));
    const HeaderCosts costs = costs_of(static_cast<uint16_t>(header));
    if (costs.barriers != (flags.barrier == Barrier::on ? 1u : 0u) ||
        costs.system_acquires != (flags.acquire == FenceScope::system ? 1u : 0u) ||
        costs.system_releases != (flags.release == FenceScope::system ? 1u : 0u))
      FAIL("header " << header);
    sum += costs;
    barriers += costs.barriers;
    acquires += costs.system_acquires;
    releases += costs.system_releases;
  }
  // Half of all headers have the barrier bit; each scope has one of four values.
  CHECK(barriers == 0x8000);
  CHECK(acquires == 0x4000);
  CHECK(releases == 0x4000);
  CHECK(sum.barriers == barriers);
  CHECK(sum.system_acquires == acquires);
  CHECK(sum.system_releases == releases);

  constexpr HeaderCosts many = HeaderCosts{1, 2, 3} + HeaderCosts{10, 20, 30} * 5;
  STATIC_REQUIRE(many.barriers == 51);
  STATIC_REQUIRE(many.system_acquires == 102);
  STATIC_REQUIRE(many.system_releases == 153);
  STATIC_REQUIRE((HeaderCosts{1, 2, 3} * 0).system_releases == 0);
}
