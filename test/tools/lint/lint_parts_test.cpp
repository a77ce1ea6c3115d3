// The lint's parts without a device: rules, settings, tables of ROCr, the report.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"
#include "tools/lint/api_tables.hpp"
#include "tools/lint/kernel_names.hpp"
#include "tools/lint/ledger.hpp"
#include "tools/lint/packet_rules.hpp"
#include "tools/lint/report.hpp"
#include "tools/lint/settings.hpp"

namespace {

using namespace uptempo::lint;
using uptempo::test::contains;
using uptempo::test::error_of;

uint64_t count_of(const Ledger& ledger, RecordNumber record, Count count) {
  uint64_t found = 0;
  ledger.for_each_record([&](const Pair&, RecordNumber number, const auto& counts) {
    if (number == record) found = counts[static_cast<size_t>(count)];
  });
  return found;
}

// One packet of a sequence.
//   b: barrier bit; a, r: acquire and release at system scope; s: completion signal
//   d: waits for a signal; o: opaque; h: a barrier packet; |: another doorbell before it
struct Rules {
  std::unique_ptr<Ledger> ledger = std::make_unique<Ledger>();
  RecordNumber record = ledger->find({100, 200, 0}).record;

  explicit Rules(const std::string& packets, bool alone = true, uint64_t read_index = 0) {
    PacketRules rules;
    uint64_t index = 0;
    rules.begin_doorbell();
    PacketFacts facts;
    const auto end_packet = [&] {
      facts.record = record;
      facts.index = index++;
      facts.starts_after_doorbell = true;
      rules.packet(facts, *ledger);
      facts = {};
    };
    for (const char letter : packets + " ") {
      switch (letter) {
        case 'b':
          facts.barrier = true;
          break;
        case 'a':
          facts.system_acquire = true;
          break;
        case 'r':
          facts.system_release = true;
          break;
        case 's':
          facts.signals = true;
          break;
        case 'd':
          facts.waits = true;
          break;
        case 'o':
          facts.opaque = true;
          break;
        case 'h':
          facts.holds = true;
          break;
        case 'c':
          facts.all_before_complete = true;
          break;
        case '|':
          rules.end_doorbell(alone, read_index, *ledger);
          rules.begin_doorbell();
          break;
        case ' ':
          end_packet();
          break;
        default:
          break;  // '.': a packet without any
      }
    }
    rules.end_doorbell(alone, read_index, *ledger);
  }
  uint64_t operator()(Count count) const { return count_of(*ledger, record, count); }
};

}  // namespace

TEST_CASE("a system acquire is wide behind another of the same doorbell") {
  const auto wide = [](const std::string& packets, bool alone = true, uint64_t read = 0) {
    return Rules(packets, alone, read)(Count::wide_acquires);
  };
  CHECK(wide("a a a") == 2);
  CHECK(wide(". a . a") == 1);
  CHECK(wide("a |a") == 0);   // the host may have written in between
  CHECK(wide("a d a") == 0);  // others may have written before the signal
  CHECK(wide("a da") == 0);
  CHECK(wide("a d a a") == 1);  // the third acquire follows the dependency
  CHECK(wide("a o a") == 0);
  CHECK(wide("a a", false) == 0);    // another thread's doorbell may have started the first
  CHECK(wide("a a", true, 1) == 0);  // the device had taken the first
  CHECK(wide(". a a", true, 1) == 1);
}

TEST_CASE("a system release is wide where nothing can see the packet's end before the next one") {
  const auto wide = [](const std::string& packets) { return Rules(packets)(Count::wide_releases); };
  CHECK(wide("r brs") == 1);
  CHECK(wide("r |brs") == 1);  // also of later doorbells
  CHECK(wide("r b rs") == 1);  // ordered by a packet between
  CHECK(wide("br br br brs") == 3);
  CHECK(wide("rs brs") == 0);    // its own signal tells
  CHECK(wide("r bs") == 0);      // the signal's packet does not release
  CHECK(wide("r rs") == 0);      // it may complete first
  CHECK(wide("r rs brs") == 1);  // the next one does not
  CHECK(wide("r o brs") == 0);
  CHECK(wide("r br") == 0);  // nothing follows yet
}

TEST_CASE("a barrier bit has no effect where nothing before it can run") {
  const auto idle = [](const std::string& packets) { return Rules(packets)(Count::idle_barriers); };
  CHECK(idle("hb b") == 1);
  CHECK(idle("hb b b") == 1);  // the second waits for the first
  CHECK(idle("h b") == 0);     // what is before the barrier packet may run
  CHECK(idle("b b") == 0);
  CHECK(idle("bc") == 1);  // the host has waited
  CHECK(idle("c") == 0);
}

TEST_CASE("settings are read, and errors name them") {
  const Settings set = parse_settings("format=json,file=a%p,sites=3,top=7,cost.barrier=12.5");
  CHECK(set.format == Format::json);
  CHECK(set.file == "a%p");
  CHECK(set.sites == 3u);
  CHECK(set.top == 7);
  CHECK(set.cost_ns[static_cast<size_t>(Finding::idle_barrier)] == 12.5);
  CHECK(!parse_settings("sites=off").sites);
  CHECK(parse_settings("").format == Format::text);
  const auto error = [](const char* text) { return error_of([&] { (void)parse_settings(text); }); };
  CHECK(contains(error("sites"), "'sites' lacks a value; the options are format, file, sites"));
  CHECK(contains(error("top=0"), "top=0 is not a number from 1 to 100000"));
  CHECK(contains(error("cost.acquire=-1"), "cost.acquire=-1 is not a number"));
  CHECK(contains(error("cost.acquire=nan"), "cost.acquire=nan is not a number"));
  CHECK(contains(error("cost.wait=1"), "'cost.wait' is not an option"));
  CHECK(contains(error("file="), "file= lacks a name"));
  CHECK(expand_file_name("a%p.%%", 12) == "a12.%");
  CHECK(contains(error_of([] { (void)expand_file_name("a%d", 1); }), "neither %p nor %%"));
}

TEST_CASE("a kernel object that had several names gets four of them") {
  KernelNames names;
  CHECK(names.name(0x5000) == "kernel object 0x5000");
  for (int i = 0; i < 1000; ++i) names.add(0x5000, i % 2 == 0 ? "a.kd" : "_Z1bi.kd");
  CHECK(names.name(0x5000) == "a or b(int)");
  for (const char* const name : {"c.kd", "d.kd"}) names.add(0x5000, name);
  CHECK(names.name(0x5000) == "a or b(int) or c or d");
  for (int i = 0; i < 1000; ++i) names.add(0x5000, "e" + std::to_string(i) + ".kd");
  CHECK(names.name(0x5000) == "a or b(int) or c or d or others");
}

// Headers as ROCr with and without hsa_amd_queue_create has them, and others that would be wrong.
namespace headers {

template <int kEngineWords>
struct Descriptor {
  uint16_t version, flags;
  uint8_t engine_type, reserved_header[3];
  uint32_t queue_size_bytes, priority;
  void (*callback)(hsa_status_t, hsa_queue_t*, void*);
  void* callback_data;
  hsa_queue_t* queue;
  uint64_t engine[kEngineWords];
  uint32_t traffic_class;
  uint8_t reserved[20];
};
template <int kBefore, class Of>
struct Table {
  ApiTableVersion version;
  void* before[kBefore];
  hsa_status_t (*hsa_amd_queue_create_fn)(hsa_agent_t, Of*, uint32_t);
};
struct OlderTable {
  ApiTableVersion version;
};
using uptempo::support::queue_create_agrees;
static_assert(queue_create_agrees<OlderTable>(2));
static_assert(queue_create_agrees<Table<86, Descriptor<4>>>(2));
static_assert(!queue_create_agrees<Table<85, Descriptor<4>>>(2));
static_assert(!queue_create_agrees<Table<86, Descriptor<5>>>(2));

}  // namespace headers

TEST_CASE("tables of an unknown ROCr are refused by name") {
  auto bytes = std::make_unique<std::array<void*, 200>>();  // the largest table of AMD's extensions
  CoreApiTable core{};
  core.version = {1, sizeof(CoreApiTable), 0, 0};
  HsaApiTable root{};
  root.version = {1, sizeof(HsaApiTable), 0, 0};
  root.core_ = &core;
  root.amd_ext_ = reinterpret_cast<AmdExtTable*>(bytes->data());
  const auto set_amd = [&](uint32_t major, uint32_t size) {
    const ApiTableVersion version{major, size, 0, 0};
    std::memcpy(bytes->data(), &version, sizeof version);
  };
  const auto position = [&](AmdFunction function) {
    return check_tables(root)[function] - (bytes->data() + 2);
  };
  set_amd(1, 400);
  CHECK(position(AmdFunction::memory_async_copy) == 15);
  CHECK(position(AmdFunction::pool_free) == 14);
  CHECK(position(AmdFunction::pointer_info) == 26);
  CHECK(position(AmdFunction::ipc_memory_create) == 28);
  CHECK(position(AmdFunction::deallocation_callback) == 41);
  CHECK(position(AmdFunction::queue_intercept_create) == 35);
  CHECK(check_tables(root)[AmdFunction::signal_wait_all] == nullptr);
  // ROCr 6.1: functions in the middle. ROCr 7 has added some at the end, 688 bytes in all.
  set_amd(2, 16 + 68 * 8);
  CHECK(position(AmdFunction::memory_async_copy_on_engine) == 16);
  CHECK(position(AmdFunction::pool_free) == 14);
  CHECK(position(AmdFunction::pointer_info) == 28);
  CHECK(position(AmdFunction::ipc_memory_create) == 30);
  CHECK(position(AmdFunction::deallocation_callback) == 43);
  CHECK(position(AmdFunction::queue_intercept_create) == 37);
  CHECK(check_tables(root)[AmdFunction::signal_wait_all] == nullptr);
  set_amd(2, 688);
  CHECK(position(AmdFunction::signal_wait_all) == 71);
  // hsa_amd_queue_create is the 87th function, of step 0x10.
  set_amd(2, 16 + 86 * 8);
  CHECK(check_tables(root)[AmdFunction::queue_create] == nullptr);
  set_amd(2, 16 + 87 * 8);
  CHECK(position(AmdFunction::queue_create) == 86);

  const auto error = [&] { return error_of([&] { (void)check_tables(root); }); };
  set_amd(1, 416);
  CHECK(contains(error(), "the table of AMD's extensions of this ROCr has version 1.0 and 416"));
  set_amd(3, 700);
  CHECK(contains(error(), "has version 3.0 and 700 bytes"));
  set_amd(2, 8);
  CHECK(contains(error(), "has version 2.0 and 8 bytes"));
  set_amd(1, 400);
  core.version.minor_id = 100;
  CHECK(contains(error(), "the core table of this ROCr has version 1.0 and 100 bytes"));
  core.version = {3, sizeof(CoreApiTable), 0, 0};
  CHECK(contains(error(), "the core table of this ROCr has version 3"));
  root.version.major_id = 9;
  CHECK(contains(error(), "the root table of this ROCr has version 9"));
}

TEST_CASE("the report of a program that re-arms signals in memory does not judge signals") {
  Report report{.program = "program", .process = 1};
  report.pairs.push_back({.before = "a", .packet = std::string(200, 'n')});
  report.pairs[0][Count::packets] = report.pairs[0][Count::signals] = 9;
  report.pairs[0][Count::unused_signals] = 4;
  CHECK(findings(report, {}).size() == 1);
  CHECK(contains(to_text(report, {}), "completion signals that no call reads"));
  report.signals_rearmed = 2;
  CHECK(findings(report, {}).empty());
  const std::string text = to_text(report, {});
  CHECK(contains(text, "Unused signals are not known: 2 signals were set again without a call"));
  CHECK(contains(to_json_lines(report, {}), "\"unused_signals\":null"));
}
