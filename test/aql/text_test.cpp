#include <uptempo/aql/text.hpp>

#include <random>

#include "test/support/catch.hpp"

using namespace uptempo::aql;

namespace {

constexpr HeaderFlags kAgentFences{Barrier::on, FenceScope::agent, FenceScope::agent};
constexpr HeaderFlags kNoFences{Barrier::off, FenceScope::none, FenceScope::none};

// A packet in which lint() finds nothing.
KernelDispatch good_dispatch() {
  return {.flags = {Barrier::on, FenceScope::system, FenceScope::agent},
          .grid = {16384},
          .workgroup = {256},
          .kernel_object = 0x7f0000001000,
          .kernarg_address = reinterpret_cast<void*>(0x7f0000002040),
          .completion_signal = {0x7f0000003080}};
}

// Returns the packet with one word changed.
Packet64 with_word(const Packet64& original, size_t word, uint32_t value) {
  Packet64 packet = original;
  packet.word[word] = value;
  return packet;
}

std::vector<std::string> fields(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Finding& f : findings) names.push_back(f.field);
  return names;
}

using Fields = std::vector<std::string>;

// Fills a decoded packet back. Kinds that the library does not write are returned unchanged.
Packet64 refilled(const Packet64& packet) {
  return std::visit(
      [&](const auto& typed) {
        if constexpr (requires(void* slot) { fill(slot, typed); }) {
          return to_packet(typed);
        } else {
          return packet;
        }
      },
      decode(packet));
}

}  // namespace

TEST_CASE("a packet prints as one line with the names of the trace", "[text]") {
  CHECK(format(to_packet(good_dispatch())) ==
        "kernel_dispatch barrier acquire=system release=agent grid=[16384,1,1] workgroup=[256,1,1] "
        "dimensions=1 "
        "kernel_object=0x7f0000001000 kernarg_address=0x7f0000002040 "
        "completion_signal=0x7f0000003080");
  CHECK(format(to_packet(KernelDispatch{.flags = kNoFences,
                                        .grid = {8, 4, 2},
                                        .workgroup = {8, 4, 1},
                                        .private_segment_size = 16,
                                        .group_segment_size = 64,
                                        .kernel_object = 0x40})) ==
        "kernel_dispatch acquire=none release=none grid=[8,4,2] workgroup=[8,4,1] dimensions=3 "
        "private_segment_size=16 "
        "group_segment_size=64 kernel_object=0x40");
  CHECK(format(to_packet(BarrierAnd{kAgentFences, {{{0x40}, {0x80}}}, {0xc0}})) ==
        "barrier_and barrier acquire=agent release=agent dep_signal=[0x40,0x80,0x0,0x0,0x0] "
        "completion_signal=0xc0");
  CHECK(format(to_packet(BarrierOr{kNoFences, {{{0x40}}}, {0}})) ==
        "barrier_or acquire=none release=none dep_signal=[0x40,0x0,0x0,0x0,0x0]");
  CHECK(format(to_packet(BarrierValue{.flags = kNoFences,
                                      .signal = {0x40},
                                      .value = -2,
                                      .mask = 0xff,
                                      .condition = HSA_SIGNAL_CONDITION_LT})) ==
        "barrier_value acquire=none release=none signal=0x40 mask=0xff condition=lt value=-2");
  CHECK(format(Packet64{{kInvalidHeader}}) == "invalid");
  CHECK(format(Packet64{{0x0042}}) == "undefined type=66");
  CHECK(format(Packet64{{0x00070000}}) == "vendor acquire=none release=none format=7");
  CHECK(format(Packet64{{0x00010000, 1, 2, 3, 4}}) ==
        "pm4_ib acquire=none release=none jump=[0x1,0x2,0x3,0x4]");
  CHECK(format(Packet64{{0x00030004}}) ==
        "agent_dispatch acquire=none release=none function=3 arguments=[0x0,0x0,0x0,0x0]");
}

TEST_CASE("a packet's words print as sixteen hexadecimal numbers", "[text]") {
  CHECK(format_words(Packet64{{0x00010d02, 0x00010100}}) ==
        "00010d02 00010100 00000000 00000000 00000000 00000000 00000000 00000000\n"
        "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000");
}

TEST_CASE("a well-formed packet has no findings", "[lint]") {
  CHECK(lint(to_packet(good_dispatch())).empty());
  CHECK(lint(to_packet(BarrierAnd{kAgentFences, {}, {0x40}})).empty());
  CHECK(lint(to_packet(BarrierOr{kAgentFences, {{{0x40}}}, {0x80}})).empty());
  CHECK(lint(to_packet(BarrierValue{.flags = kAgentFences, .signal = {0x40}})).empty());
}

TEST_CASE("an unpublished slot has no findings, whatever its content", "[lint]") {
  Packet64 slot;
  slot.word.fill(0xcccccccc);
  slot.word[0] = kInvalidHeader;
  CHECK(lint(slot).empty());
}

TEST_CASE("each broken rule of a kernel dispatch packet is reported with its field", "[lint]") {
  const Packet64 good = to_packet(good_dispatch());
  const auto word0 = good.word[0];
  //                                word        value                                   finding
  CHECK(fields(lint(with_word(good, 0, word0 | 0x2000))) == Fields{"header"});        // header bit
  CHECK(fields(lint(with_word(good, 0, word0 | 0x0600))) == Fields{"header"});        // acquire 3
  CHECK(fields(lint(with_word(good, 0, word0 | 0x1800))) == Fields{"header"});        // release 3
  CHECK(fields(lint(with_word(good, 0, word0 & 0xffff))) == Fields{"setup"});         // dimension 0
  CHECK(fields(lint(with_word(good, 0, word0 | 0x40000))) == Fields{"setup"});        // setup bit
  CHECK(fields(lint(with_word(good, 1, 0x00010000))) == Fields{"workgroup_size_x"});  // empty
  CHECK(fields(lint(with_word(good, 1, 0x00020100))) == Fields{"workgroup_size_y"});  // unused: 2
  CHECK(fields(lint(with_word(good, 2, 0x00000002))) == Fields{"workgroup_size_z"});  // unused: 2
  CHECK(fields(lint(with_word(good, 2, 0x00010001))) == Fields{"reserved0"});         //
  CHECK(fields(lint(with_word(good, 3, 0))) == Fields{"grid_size_x"});                // empty
  CHECK(fields(lint(with_word(good, 3, 255))) == Fields{"grid_size_x"});              // too small
  CHECK(fields(lint(with_word(good, 4, 2))) == Fields{"grid_size_y"});                // unused: 2
  CHECK(fields(lint(with_word(good, 5, 0))) == Fields{"grid_size_z"});                // empty
  CHECK(fields(lint(with_word(good, 8, 0x1020))) == Fields{"kernel_object"});         // alignment
  CHECK(fields(lint(with_word(good, 10, 0x2008))) == Fields{"kernarg_address"});      // alignment
  CHECK(fields(lint(with_word(good, 12, 1))) == Fields{"reserved2"});                 //
  CHECK(fields(lint(with_word(good, 14, 0x3081))) == Fields{"completion_signal"});    // alignment

  KernelDispatch null_object = good_dispatch();
  null_object.kernel_object = 0;
  CHECK(fields(lint(to_packet(null_object))) == Fields{"kernel_object"});
}

TEST_CASE("barrier packets that can never complete are reported", "[lint]") {
  CHECK(fields(lint(to_packet(BarrierOr{kAgentFences, {}, {0}}))) == Fields{"dep_signal"});
  CHECK(fields(lint(to_packet(BarrierAnd{kAgentFences, {{{0x80}, {0x40}}}, {0x40}}))) ==
        Fields{"dep_signal[1]"});
  CHECK(fields(lint(to_packet(
            BarrierValue{.flags = kAgentFences, .signal = {0x40}, .completion_signal = {0x40}}))) ==
        Fields{"signal"});
}

TEST_CASE("reserved fields of barrier packets are reported by name", "[lint]") {
  const Packet64 barrier = to_packet(BarrierAnd{kAgentFences, {{{0x40}}}, {0}});
  CHECK(fields(lint(with_word(barrier, 0, barrier.word[0] | 0x10000))) == Fields{"reserved0"});
  CHECK(fields(lint(with_word(barrier, 1, 1))) == Fields{"reserved1"});
  CHECK(fields(lint(with_word(barrier, 12, 1))) == Fields{"reserved2"});
  const Packet64 value = to_packet(BarrierValue{.flags = kAgentFences, .signal = {0x40}});
  CHECK(fields(lint(with_word(value, 0, value.word[0] | 0x1000000))) == Fields{"header.reserved"});
  CHECK(fields(lint(with_word(value, 8, 4))) == Fields{"cond"});
  CHECK(fields(lint(with_word(value, 10, 1))) == Fields{"reserved2"});
}

TEST_CASE("unknown packets are reported", "[lint]") {
  CHECK(lint(Packet64{{0x06}}) ==
        std::vector<Finding>{{"header", "packet type 6 is not defined (0 to 5 are)"}});
  CHECK(lint(Packet64{{0x00090000}}) ==
        std::vector<Finding>{
            {"AmdFormat", "9 is not a known vendor format (1 PM4 IB, 2 barrier-value)"}});
}

TEST_CASE(
    "any 64 bytes decode, print and lint; without findings, a packet fills back into the same "
    "bytes",
    "[text][fuzz]") {
  std::mt19937_64 random(20240607);
  const std::vector<Packet64> seeds{
      to_packet(good_dispatch()), to_packet(BarrierAnd{kAgentFences, {{{0x40}}}, {0x80}}),
      to_packet(BarrierOr{kAgentFences, {{{0x40}}}, {0x80}}),
      to_packet(BarrierValue{.flags = kAgentFences, .signal = {0x40}})};
  unsigned silent = 0;
  for (int i = 0; i < 200'000; ++i) {
    Packet64 packet;
    if (i % 2 == 0) {
      for (auto& word : packet.word) word = static_cast<uint32_t>(random());
    } else {  // a good packet with up to three bits flipped
      packet = seeds[random() % seeds.size()];
      for (uint64_t flips = random() % 4; flips > 0; --flips)
        packet.word[random() % 16] ^= 1u << random() % 32;
    }
    const std::string line = format(packet);
    REQUIRE(line.find(kind_name(packet)) == 0);
    REQUIRE(line.find('\n') == std::string::npos);
    const bool live = packet_type(packet.header()) != PacketType::invalid;
    if (live && lint(packet).empty()) {
      ++silent;
      REQUIRE(refilled(packet) == packet);
      REQUIRE(format(refilled(packet)) == line);
    }
  }
  CHECK(silent > 20'000);
}

TEST_CASE("a refused publication is described by what was full and what can be done", "[text]") {
  CHECK(describe(PublishResult{}).empty());
  CHECK(describe({.status = PublishStatus::resource_full,
                  .ring_size = 64,
                  .occupancy = 60,
                  .requested = 10}) ==
        "the ring was full until the deadline: 60 of 64 slots in use, and none of 10 packets "
        "published; wait longer, publish fewer packets at once, or create the queue with a larger "
        "ring");
  CHECK(describe({.status = PublishStatus::too_long, .ring_size = 64, .requested = 65}) ==
        "65 packets do not fit into a ring of 64 slots; publish fewer packets at once, or create "
        "the queue with a larger ring");
  CHECK(describe({.status = PublishStatus::queue_failed,
                  .queue_error = HSA_STATUS_ERROR_EXCEPTION,
                  .ring_size = 64,
                  .requested = 3}) ==
        "the queue has failed with HSA status 0x1016, and none of 3 packets published; destroy it "
        "and create another");
}
