#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device/inject/injector.hpp"
#include "device/inject/rules.hpp"
#include "test/support/catch.hpp"

namespace uptempo::vgpu {
namespace {

using Place = InjectRule::Place;
using Effect = InjectRule::Effect;

std::string refusal_of(std::string_view text) {
  try {
    parse_inject_rules(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

// Returns which of the first `events` requests of one kind fail.
std::set<int> failures(std::string_view text, int events) {
  Injector injector(parse_inject_rules(text));
  std::set<int> failed;
  for (int event = 1; event <= events; ++event)
    if (injector.ioctl(0x16) != 0) failed.insert(event);
  return failed;
}

TEST_CASE("a rule has a place, an effect, filters and a time, in any order", "[inject]") {
  const auto rules = parse_inject_rules(
      "ioctl=ALLOC_MEMORY_OF_GPU errno=ENOMEM nth=3 ; late=20 packet  queue=2 index=7 type=barrier "
      "gpu=1;interrupt lost chance=0.25 seed=9;mmap errno=EAGAIN every=2;open errno=EPERM "
      "count=all;packet error=WAVE_ILLEGAL_INSTRUCTION;packet fault=poison count=5;packet untimed "
      "nth=2 count=all;type=barrier stale packet;hdp lost every=1;copy queue=3 gpu=1 lost");
  REQUIRE(rules.size() == 11);
  CHECK(rules[0].text == "ioctl=ALLOC_MEMORY_OF_GPU errno=ENOMEM nth=3");
  CHECK(rules[0].place == Place::ioctl);
  CHECK(rules[0].ioctl == 0x16);
  CHECK(rules[0].error_number == ENOMEM);
  CHECK(rules[0].nth == 3);
  CHECK(rules[0].count == 1);
  CHECK(rules[1].place == Place::packet);
  CHECK(rules[1].effect == Effect::late);
  CHECK(rules[1].late_ms == 20);
  CHECK(rules[1].queue == 2u);
  CHECK(rules[1].gpu == 1u);
  CHECK(rules[1].index == 7u);
  CHECK(rules[1].packets == InjectRule::Packets::barrier);
  CHECK(rules[2].effect == Effect::lost);
  CHECK(rules[2].chance == 0.25);
  CHECK(rules[2].seed == 9);
  CHECK(rules[2].count == InjectRule::kUnlimited);
  CHECK(rules[3].place == Place::mmap);
  CHECK(rules[3].every == 2);
  CHECK(rules[4].place == Place::open);
  CHECK(rules[4].count == InjectRule::kUnlimited);
  CHECK(rules[5].exception->code == 4);
  CHECK(rules[6].fault == InjectRule::Fault::poison);
  CHECK(rules[6].count == 5);
  CHECK(rules[7].place == Place::packet);
  CHECK(rules[7].effect == Effect::untimed);
  CHECK(rules[8].effect == Effect::stale);
  CHECK(rules[8].packets == InjectRule::Packets::barrier);
  CHECK(rules[9].place == Place::hdp);
  CHECK(rules[9].effect == Effect::lost);
  CHECK(rules[9].count == InjectRule::kUnlimited);
  CHECK(rules[10].place == Place::copy);
  CHECK(rules[10].effect == Effect::lost);
  CHECK(rules[10].queue == 3u);
  CHECK(rules[10].gpu == 1u);
}

TEST_CASE("a refused rule names the word, its column and the nearest right one", "[inject]") {
  CHECK(refusal_of("ioctl=ALLOC_MEMORY errno=ENOMEM") ==
        "column 7: 'ALLOC_MEMORY' is no KFD request; the nearest is ALLOC_MEMORY_OF_GPU");
  CHECK(refusal_of("mmap errno=ENOMEN") ==
        "column 12: 'ENOMEN' is no error number; the nearest is ENOMEM");
  CHECK(refusal_of("mmap errno=ENOMEM; pakcet torn") ==
        "column 20: 'pakcet' is unknown; the nearest word is packet");
  CHECK(refusal_of("packet error=WAVE_TRAPS") ==
        "column 14: 'WAVE_TRAPS' is no queue exception; the nearest is WAVE_TRAP");
  CHECK(refusal_of("packet fault=readonly") ==
        "column 14: 'readonly' is no memory fault; the nearest is read_only");
  CHECK(refusal_of("packet torn type=dispatches") ==
        "column 18: 'dispatches' is no type of packet; the nearest is dispatch");
  CHECK(refusal_of("") == "column 1: a rule is empty");
  CHECK(refusal_of("packet torn;") == "column 13: a rule is empty");
  CHECK(refusal_of("errno=ENOMEM") ==
        "column 1: the rule has no place: use ioctl=NAME, mmap, open, packet, interrupt, hdp or "
        "copy");
  CHECK(refusal_of("interrupt") ==
        "column 1: the rule has no effect: interrupt needs lost or doubled");
  CHECK(refusal_of("packet errno=EIO") ==
        "column 8: packet does not have that effect: it needs error=, fault=, torn, late=, "
        "untimed, stale, reset or gone");
  CHECK(refusal_of("packet lost") ==
        "column 8: packet does not have that effect: it needs error=, fault=, torn, late=, "
        "untimed, stale, reset or gone");
  CHECK(refusal_of("interrupt untimed") ==
        "column 11: interrupt does not have that effect: it needs lost or doubled");
  CHECK(refusal_of("copy stale") == "column 6: copy does not have that effect: it needs lost");
  CHECK(refusal_of("hdp doubled") == "column 5: hdp does not have that effect: it needs lost");
  CHECK(refusal_of("copy") == "column 1: the rule has no effect: copy needs lost");
  CHECK(refusal_of("packet untimd") ==
        "column 8: 'untimd' is unknown; the nearest word is untimed");
  CHECK(refusal_of("packet stail") == "column 8: 'stail' is unknown; the nearest word is stale");
  CHECK(refusal_of("hpd lost") == "column 1: 'hpd' is unknown; the nearest word is hdp");
  CHECK(refusal_of("copi lost") == "column 1: 'copi' is unknown; the nearest word is copy");
  CHECK(refusal_of("mmap lost") == "column 6: mmap does not have that effect: it needs errno=");
  CHECK(refusal_of("packet mmap torn") ==
        "column 8: a rule has one place; this one already has packet");
  CHECK(refusal_of("packet torn lost") ==
        "column 13: a rule has one effect; this is its second one");
  CHECK(refusal_of("packet torn nth=1 nth=2") == "column 19: nth occurs twice in this rule");
  CHECK(refusal_of("packet torn nth=0") == "column 17: nth needs a number from 1 on, not '0'");
  CHECK(refusal_of("packet torn nth=1 every=2") ==
        "column 1: nth, every and chance exclude each other");
  CHECK(refusal_of("packet torn seed=2") == "column 13: seed needs chance");
  CHECK(refusal_of("packet torn chance=1.5") ==
        "column 20: chance needs a number from 0 to 1, not '1.5'");
  CHECK(refusal_of("packet torn chance=nan") ==
        "column 20: chance needs a number from 0 to 1, not 'nan'");
  CHECK(refusal_of("packet torn count=many") ==
        "column 19: count needs a number from 1 on, or all, not 'many'");
  CHECK(refusal_of("mmap errno=EIO queue=1") == "column 16: queue is no filter of mmap");
  CHECK(refusal_of("interrupt lost index=1") == "column 16: index is no filter of interrupt");
  CHECK(refusal_of("hdp lost gpu=0") == "column 10: gpu is no filter of hdp");
  CHECK(refusal_of("copy lost index=1") == "column 11: index is no filter of copy");
  CHECK(refusal_of("copy lost type=barrier") == "column 11: type is no filter of copy");
  CHECK(refusal_of("packet stale=1") == "column 8: stale takes no value");
  CHECK(refusal_of("packet=1 torn") == "column 1: packet takes no value");
  CHECK(refusal_of("ioctl errno=EIO") == "column 1: ioctl needs a value");
}

TEST_CASE("requests have KFD's names, those that are not emulated too", "[inject]") {
  CHECK(kfd_ioctl_name(0x01) == "GET_VERSION");
  CHECK(kfd_ioctl_name(0x0d) == "DBG_REGISTER");
  CHECK(kfd_ioctl_name(0x16) == "ALLOC_MEMORY_OF_GPU");
  CHECK(kfd_ioctl_name(0x22) == "CRIU_OP");
  CHECK(kfd_ioctl_name(0x84) == "RLC_SPM");
  CHECK(kfd_ioctl_name(0x30) == "unknown");
  for (uint32_t number = 0; number < 0x100; ++number)
    if (const std::string name(kfd_ioctl_name(number)); name != "unknown")
      CHECK(parse_inject_rules("ioctl=" + name + " errno=EIO")[0].ioctl == number);
}

TEST_CASE("nth, every, chance and count choose the events", "[inject]") {
  CHECK(failures("ioctl=any errno=EIO", 5) == std::set{1});
  CHECK(failures("ioctl=any errno=EIO nth=3", 5) == std::set{3});
  CHECK(failures("ioctl=any errno=EIO nth=3 count=2", 9) == std::set{3, 4});
  CHECK(failures("ioctl=any errno=EIO nth=3 count=all", 5) == std::set{3, 4, 5});
  CHECK(failures("ioctl=any errno=EIO every=2", 6) == std::set{2, 4, 6});
  CHECK(failures("ioctl=any errno=EIO every=2 count=2", 9) == std::set{2, 4});
  CHECK(failures("ioctl=CREATE_EVENT errno=EIO", 5).empty());
  CHECK(failures("ioctl=any errno=EIO chance=0", 100).empty());
  CHECK(failures("ioctl=any errno=EIO chance=1", 100).size() == 100);
  const auto some = failures("ioctl=any errno=EIO chance=0.25 seed=3", 1000);
  CHECK(some.size() > 150);
  CHECK(some.size() < 350);
  CHECK(some == failures("ioctl=any errno=EIO chance=0.25 seed=3", 1000));
  CHECK(some != failures("ioctl=any errno=EIO chance=0.25 seed=4", 1000));
}

TEST_CASE("packets are counted by queue, index, type and owner", "[inject]") {
  Injector injector(
      parse_inject_rules("packet torn nth=2;packet reset queue=0;packet late=1 index=4 "
                         "type=barrier;packet gone gpu=1"));
  using Type = InjectRule::Packets;
  const auto effect = [&](Injector::Packet packet) {
    const InjectRule* const rule = injector.packet(packet);
    return rule == nullptr ? std::string() : rule->text;
  };
  CHECK(effect({.queue = 1, .index = 0, .type = Type::dispatch}).empty());
  // Only a rule that names the runtime's queue applies to it.
  CHECK(effect({.queue = 0, .index = 0, .runtime_owned = true}) == "packet reset queue=0");
  CHECK(effect({.queue = 1, .index = 1, .type = Type::dispatch}) == "packet torn nth=2");
  CHECK(effect({.queue = 1, .index = 4, .type = Type::dispatch}).empty());
  CHECK(effect({.queue = 2, .index = 4, .type = Type::barrier}) ==
        "packet late=1 index=4 type=barrier");
  CHECK(effect({.gpu = 1, .queue = 3, .index = 0}) == "packet gone gpu=1");
  CHECK(injector.counts(0).matched == 5);
  CHECK(injector.counts(0).injected == 1);
  CHECK(injector.counts(1).matched == 1);
}

TEST_CASE("copies are counted by GPU and queue, flushes of the HDP together", "[inject]") {
  Injector injector(
      parse_inject_rules("copy lost queue=2 nth=2 count=all;copy lost gpu=1;hdp lost nth=2"));
  CHECK_FALSE(injector.copy(0, 1));
  CHECK_FALSE(injector.copy(0, 2));
  CHECK(injector.copy(0, 2));
  CHECK(injector.copy(0, 2));
  CHECK(injector.copy(1, 0));
  CHECK_FALSE(injector.copy(1, 0));
  CHECK_FALSE(injector.hdp());
  CHECK(injector.hdp());
  CHECK_FALSE(injector.hdp());
  CHECK(injector.counts(0).matched == 3);
  CHECK(injector.counts(0).injected == 2);
  CHECK(injector.counts(2).matched == 3);
  CHECK(injector.interrupt(0, 2) == nullptr);
}

TEST_CASE("the device asks only about places of its own", "[inject]") {
  for (const char* rule : {"packet untimed", "interrupt lost", "hdp lost", "copy lost"})
    CHECK(Injector(parse_inject_rules(std::string("mmap errno=EIO;") + rule)).concerns_device());
  CHECK_FALSE(Injector(parse_inject_rules("mmap errno=EIO;ioctl=any errno=EIO;open errno=EIO"))
                  .concerns_device());
}

// A lost count would let a rule apply to one event more or less.
TEST_CASE("threads that ask at the same time get each event once", "[inject]") {
  constexpr int kThreads = 4, kEach = 5000;
  Injector injector(parse_inject_rules("hdp lost nth=100 count=3000;hdp lost every=7"));
  std::atomic<int> lost = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&] {
        for (int event = 0; event < kEach; ++event) lost += injector.hdp() ? 1 : 0;
      });
  }
  CHECK(injector.counts(0).matched == kThreads * kEach);
  CHECK(injector.counts(0).injected == 3000);
  CHECK(injector.counts(1).injected == kThreads * kEach / 7);
  CHECK(lost >= 3000);
}

TEST_CASE("of several rules that apply, the first wins, and all count", "[inject]") {
  Injector injector(parse_inject_rules("ioctl=SET_EVENT errno=EPERM;ioctl=any errno=EIO nth=1"));
  CHECK(injector.ioctl(0x0a) == EPERM);
  CHECK(injector.counts(1).injected == 1);
  CHECK(injector.ioctl(0x0a) == 0);
}

}  // namespace
}  // namespace uptempo::vgpu
