// The lint's table of signals: which completion signals no call reads.
#include "tools/lint/signal_table.hpp"

#include <memory>

#include "test/support/catch.hpp"

namespace {

using namespace uptempo::lint;

constexpr uint64_t kHandle = 0x7000;

// A signal that packets of one pair complete.
struct Followed {
  std::unique_ptr<Ledger> ledger = std::make_unique<Ledger>();
  SignalTable table{*ledger};
  RecordNumber record = ledger->find({100, 200, 0}).record;
  SignalTable::Entry* entry = nullptr;

  explicit Followed(hsa_signal_value_t value) { create(value); }
  void create(hsa_signal_value_t value) {
    table.created(kHandle, value);
    entry = table.find(kHandle);
    REQUIRE(entry != nullptr);
  }
  void attach(uint64_t index = 0) {
    table.attach(*entry, entry->life.load(), {record, nullptr, index, true});
  }
  void store(hsa_signal_value_t before, hsa_signal_value_t value) {
    table.end_life(*entry, before, value);
  }
  uint64_t unused() const {
    uint64_t found = 0;
    ledger->for_each_record([&](const Pair&, RecordNumber number, const auto& counts) {
      if (number == record) found = counts[static_cast<size_t>(Count::unused_signals)];
    });
    return found;
  }
};

}  // namespace

TEST_CASE("a completion signal is unused if no call reads it in its life") {
  Followed signal(1);
  signal.attach();
  signal.store(0, 1);
  CHECK(signal.unused() == 1);
  signal.attach();
  SignalTable::use(*signal.entry);
  signal.store(0, 1);
  CHECK(signal.unused() == 1);
  signal.attach();  // the use was in the life before
  signal.store(0, 2);
  CHECK(signal.unused() == 2);
  signal.attach();
  signal.attach();  // two packets count it down
  signal.store(0, 1);
  CHECK(signal.unused() == 4);
  CHECK(signal.table.rearmed() == 0);
  signal.attach();
  signal.attach();  // but the value is not -1
  signal.store(0, 1);
  CHECK(signal.unused() == 4);
  CHECK(signal.table.rearmed() == 1);
  SignalTable::use_always(*signal.entry);  // a handler
  for (int i = 0; i < 2; ++i) {
    signal.attach();
    signal.store(0, 1);
  }
  CHECK(signal.unused() == 4);
  signal.table.destroy(*signal.entry, 0);
  signal.create(1);  // another signal with the same handle
  signal.attach();
  signal.table.destroy(*signal.entry, 0);
  CHECK(signal.unused() == 5);
}

TEST_CASE("an attachment that comes after its life has no effect") {
  Followed signal(1);
  const uint32_t life = signal.entry->life.load();
  const auto attach_late = [&] {
    signal.table.attach(*signal.entry, life, {signal.record, nullptr, 7, true});
    return SignalTable::awaited(*signal.entry).has_value();
  };
  SECTION("because the signal was destroyed") {
    signal.table.destroy(*signal.entry, 0);
    CHECK(!attach_late());
    signal.create(1);
    CHECK(!attach_late());
  }
  SECTION("because the host set it again") {
    signal.store(0, 1);
    CHECK(!attach_late());
  }
  signal.table.destroy(*signal.entry, 1);
  CHECK(signal.unused() == 0);
  CHECK(signal.table.rearmed() == 0);
}

TEST_CASE("calls that change a signal's value are no sign of changes in memory") {
  Followed signal(1);
  signal.attach();
  SignalTable::change(*signal.entry, 1);  // hsa_signal_add, or a successful compare-and-exchange
  signal.attach();
  SignalTable::change(*signal.entry, 3);
  signal.attach();
  signal.attach();
  SignalTable::change(*signal.entry, -1);
  CHECK(SignalTable::awaited(*signal.entry)->completed == 0);
  signal.store(0, 1);
  CHECK(signal.table.rearmed() == 0);
  CHECK(signal.unused() == 4);

  signal.attach();
  SignalTable::blur(*signal.entry);  // hsa_signal_and, or, xor
  signal.attach();
  CHECK(!SignalTable::awaited(*signal.entry)->completed);
  signal.store(5, 1);
  CHECK(signal.table.rearmed() == 0);
  CHECK(signal.unused() == 4);  // not judged
  signal.attach();
  signal.store(0, 1);
  CHECK(signal.unused() == 5);  // the life after that
}

TEST_CASE("a life in which another thread held the entry is not judged") {
  Followed signal(1);
  signal.attach();
  const uint32_t life = signal.entry->life.load();
  signal.entry->busy = true;
  SECTION("while the host stored") { signal.store(0, 1); }
  SECTION("while a packet was attached") { signal.attach(); }
  SECTION("while the host added") { SignalTable::change(*signal.entry, 1); }
  signal.entry->busy = false;
  signal.attach();
  signal.attach();
  signal.store(-5, 1);
  CHECK(signal.entry->life.load() > life);
  CHECK(signal.unused() == 0);
  CHECK(signal.table.rearmed() == 0);
  signal.attach();
  signal.store(0, 1);
  CHECK(signal.unused() == 1);
}

TEST_CASE("a signal is not judged while packets that may wait for it are unread") {
  Followed signal(1);
  signal.table.add_unread(1);
  signal.attach();
  signal.store(0, 1);
  CHECK(signal.unused() == 0);
  signal.table.add_unread(~uint64_t{0});
  signal.attach();
  signal.store(0, 1);
  CHECK(signal.unused() == 1);
}

TEST_CASE("a wait tells nothing about a signal that has other packets by then") {
  Followed signal(1);
  CHECK(!SignalTable::awaited(*signal.entry));
  signal.attach(5);
  const auto awaited = SignalTable::awaited(*signal.entry);
  REQUIRE(awaited);
  CHECK(awaited->last.index == 5);
  CHECK(awaited->completed == 0);
  CHECK(SignalTable::is_unchanged(*awaited));
  SECTION("set again") {
    signal.store(0, 1);
    CHECK(!SignalTable::is_unchanged(*awaited));
    signal.attach(9);
  }
  SECTION("attached again") { signal.attach(9); }
  CHECK(!SignalTable::is_unchanged(*awaited));
}
