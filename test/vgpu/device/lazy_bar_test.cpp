// The path to device memory that holds the host's stores back. Each test has the program's and the
// device's mapping of the same pages.
#include "device/bar/lazy_bar.hpp"

#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "device/bar/mov_instruction.hpp"
#include "device/host/host_pages.hpp"
#include "device/inject/injector.hpp"
#include "test/support/catch.hpp"
#include "test/support/eventually.hpp"

using namespace uptempo::vgpu;

namespace {

constexpr size_t kPage = 4096, kPages = 4;

// Two allocations of the same length, one behind the other.
class Memory {
 public:
  static constexpr size_t kSecond = kPages * kPage / 2;

  explicit Memory(uint64_t seed, Injector* injector = nullptr) : bar_(seed, injector) {
    device_ = static_cast<std::byte*>(map(kPages * kPage));
    program_ = static_cast<std::byte*>(mremap(device_, 0, kPages * kPage, MREMAP_MAYMOVE));
    REQUIRE(program_ != MAP_FAILED);
    registers_ = static_cast<std::byte*>(map(kPage));
    for (const size_t at : {size_t{0}, kSecond})
      REQUIRE(bar_.add(program_ + at, device_ + at, kPages * kPage / 2));
    bar_.watch_registers(registers_);
  }
  ~Memory() {
    for (const size_t at : {size_t{0}, kSecond}) bar_.remove(program_ + at);
    bar_.watch_registers(nullptr);
    munmap(program_, kPages * kPage);
    munmap(device_, kPages * kPage);
    munmap(registers_, kPage);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  LazyBar& bar() { return bar_; }
  // Accesses of the host.
  void store(size_t word, uint32_t value) {
    reinterpret_cast<volatile uint32_t*>(program_)[word] = value;
  }
  uint32_t load(size_t word) { return reinterpret_cast<volatile uint32_t*>(program_)[word]; }
  // As the device sees it.
  uint32_t device(size_t word) const {
    return std::atomic_ref(reinterpret_cast<uint32_t*>(device_)[word]).load();
  }
  void device_stores(size_t word, uint32_t value) {
    std::atomic_ref(reinterpret_cast<uint32_t*>(device_)[word]).store(value);
  }
  void flush() {
    // atomic, because threads flush at the same time
    std::atomic_ref(*reinterpret_cast<uint32_t*>(registers_)).store(1, std::memory_order_relaxed);
  }
  std::byte* program() { return program_; }
  const std::byte* device_address(size_t byte) const { return device_ + byte; }
  std::byte* registers() { return registers_; }

 private:
  static void* map(size_t bytes) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return memory;
  }
  LazyBar bar_;
  std::byte* device_ = nullptr;
  std::byte* program_ = nullptr;
  std::byte* registers_ = nullptr;
};

// A seed with which no line drains early.
uint64_t lazy_seed() {
  static const uint64_t found = [] {
    for (uint64_t seed = 0;; ++seed) {
      Memory memory(seed);
      bool held = true;
      for (size_t line = 0; line < 200; ++line) {
        memory.store(line * 16, 1);
        held = held && memory.device(line * 16) == 0;
      }
      if (held) return seed;
    }
  }();
  return found;
}

}  // namespace

TEST_CASE("the device sees a store after a flush, not before", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(3, 7);
  memory.store(1030, 8);
  CHECK(memory.device(3) == 0);
  CHECK(memory.device(1030) == 0);
  memory.flush();
  CHECK(memory.device(3) == 7);
  CHECK(memory.device(1030) == 8);
  CHECK(memory.bar().hdp_flushes() == 1);
  CHECK(memory.bar().host_reads() == 0);
}

TEST_CASE("a store to the other register, or a load of the first one, flushes nothing",
          "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(3, 7);
  auto* const registers = reinterpret_cast<volatile uint32_t*>(memory.registers());
  registers[1] = 1;
  const uint32_t loaded = registers[0];
  CHECK(loaded == 0);
  CHECK(memory.device(3) == 0);
  CHECK(memory.bar().hdp_flushes() == 0);
  // Another form of the store than MOV of 32 bits.
  *reinterpret_cast<volatile uint64_t*>(memory.registers()) = 1;
  CHECK(memory.device(3) == 7);
  CHECK(memory.bar().hdp_flushes() == 1);
}

TEST_CASE("a flush and a read-back that --inject loses make nothing visible", "[lazy_bar]") {
  const uint64_t seed = lazy_seed();
  Injector injector(parse_inject_rules("hdp lost every=1"));
  Memory memory(seed, &injector);
  memory.store(3, 7);
  memory.flush();
  CHECK(memory.load(3) == 7);  // the host sees its own store
  CHECK(memory.device(3) == 0);
  // A system call loads it.
  REQUIRE(memory.bar().hold(reinterpret_cast<uintptr_t>(memory.program()), 16));
  memory.bar().release(reinterpret_cast<uintptr_t>(memory.program()), 16);
  CHECK(memory.device(3) == 0);
  CHECK(memory.load(300) == 0);  // not pending, so nothing is read back
  CHECK(memory.bar().hdp_flushes() == 1);
  CHECK(memory.bar().host_reads() == 3);
  CHECK(injector.counts(0).matched == 3);
  memory.bar().acquire();  // the packet's fence is another path
  CHECK(memory.device(3) == 7);
}

TEST_CASE("the flush after a lost one makes all stores visible", "[lazy_bar]") {
  const uint64_t seed = lazy_seed();
  Injector injector(parse_inject_rules("hdp lost nth=2"));
  Memory memory(seed, &injector);
  memory.store(3, 7);
  memory.flush();
  CHECK(memory.device(3) == 7);
  memory.store(3, 8);
  memory.flush();
  CHECK(memory.device(3) == 7);
  memory.flush();
  CHECK(memory.device(3) == 8);
}

TEST_CASE("a load from a pending line makes it and everything before it visible", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(0, 1);
  memory.store(100, 2);
  memory.store(200, 3);
  CHECK(memory.load(100) == 2);
  CHECK(memory.device(0) == 1);
  CHECK(memory.device(100) == 2);
  CHECK(memory.device(200) == 0);
  CHECK(memory.load(300) == 0);  // not pending
  CHECK(memory.device(200) == 0);
  CHECK(memory.bar().host_reads() == 2);
}

TEST_CASE("a load from a line that has drained early makes what was stored before it visible",
          "[lazy_bar]") {
  size_t early = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Memory memory(seed);
    memory.store(0, 1);
    memory.store(100, 2);
    early += memory.device(0) == 0 && memory.device(100) == 2;
    CHECK(memory.load(100) == 2);
    CHECK(memory.device(0) == 1);
  }
  CHECK(early > 0);
}

TEST_CASE("a load from a line that an acquire made visible does the same for arguments",
          "[lazy_bar]") {
  Memory memory(lazy_seed());
  const size_t argument = 0, datum = Memory::kSecond / 4;
  memory.bar().note_arguments(memory.device_address(argument));
  memory.store(argument, 1);
  memory.store(datum, 2);
  memory.bar().acquire();
  CHECK(memory.device(argument) == 0);
  CHECK(memory.device(datum) == 2);
  CHECK(memory.load(datum) == 2);
  CHECK(memory.device(argument) == 1);
}

TEST_CASE("a store of the present value is pending, too", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(0, 1);
  memory.store(100, 0);
  (void)memory.load(100);
  CHECK(memory.device(0) == 1);
}

TEST_CASE("the host sees its own stores and the device's", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(0, 1);
  memory.device_stores(0, 5);  // before the host's store arrives
  memory.device_stores(1, 6);
  CHECK(memory.load(1) == 6);  // the same line: also drains
  CHECK(memory.load(0) == 1);
  CHECK(memory.device(0) == 1);
  memory.device_stores(0, 9);
  CHECK(memory.load(0) == 9);
}

TEST_CASE("stores of every size arrive whole and in order", "[lazy_bar]") {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Memory memory(seed);
    std::vector<unsigned char> data(3 * kPage);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + seed);
    std::memcpy(memory.program() + 61, data.data(), 500);
    std::memset(memory.program() + 100, 0x11, 100);
    std::memcpy(memory.program() + kPage - 9, data.data(), 64);  // crosses pages
    memory.flush();
    std::vector<unsigned char> expected(2 * kPage);
    std::memcpy(expected.data() + 61, data.data(), 500);
    std::memset(expected.data() + 100, 0x11, 100);
    std::memcpy(expected.data() + kPage - 9, data.data(), 64);
    std::vector<unsigned char> seen(2 * kPage);
    for (size_t word = 0; word < seen.size() / 4; ++word) {
      const uint32_t value = memory.device(word);
      std::memcpy(&seen[word * 4], &value, 4);
    }
    CAPTURE(seed);
    CHECK(seen == expected);
  }
}

TEST_CASE("more stores than the buffers hold drain, the oldest first", "[lazy_bar]") {
  Memory memory(lazy_seed());
  for (uint32_t i = 0; i < LazyBar::kPending + 1; ++i) memory.store(i % 8 * 16, i + 1);
  CHECK(memory.device(0) != 0);
  memory.flush();
  for (uint32_t line = 0; line < 8; ++line)
    CHECK(memory.device(line * 16) ==
          (line == 0 ? LazyBar::kPending + 1 : LazyBar::kPending - 8 + line + 1));
}

TEST_CASE("some seeds let lines drain early", "[lazy_bar]") {
  uint32_t early = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Memory memory(seed);
    bool any = false;
    for (size_t line = 0; line < 60; ++line) memory.store(line * 16, 1);
    for (size_t line = 0; line < 60; ++line) any = any || memory.device(line * 16) != 0;
    early += any;
  }
  CHECK(early > 0);
  CHECK(early < 16);
}

TEST_CASE("an acquire makes data visible, but not arguments", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(0, 1);
  memory.bar().acquire();
  CHECK(memory.device(0) == 1);
  memory.store(0, 2);
  memory.bar().note_arguments(memory.device_address(100));
  memory.bar().acquire();
  CHECK(memory.device(0) == 1);
  memory.flush();
  CHECK(memory.device(0) == 2);
}

TEST_CASE("a ring's stores are visible at once, and its loads are counted", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.bar().pass_through(memory.program() + 64);
  memory.store(3, 7);
  CHECK(memory.device(3) == 7);
  CHECK(memory.load(3) == 7);
  CHECK(memory.bar().host_reads() == 1);
}

TEST_CASE("a system call may use device memory", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(0, 1);
  {
    const HostAccess access(memory.program(), 2 * kPage, true);
    CHECK(memory.device(0) == 1);
    std::memset(memory.program() + 64, 0x22, kPage);  // without faults
  }
  memory.flush();
  CHECK(memory.device(16) == 0x22222222);
  CHECK(memory.device(1030) == 0x22222222);
  CHECK(memory.bar().host_reads() == 1);
}

TEST_CASE("the end of a buffer makes its stores visible", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.store(0, 1);
  memory.bar().remove(memory.program());
  CHECK(memory.device(0) == 1);
}

TEST_CASE("threads that flush at the same time lose no flush", "[lazy_bar]") {
  Memory memory(lazy_seed());
  constexpr uint32_t kRounds = 200;
  std::atomic<uint32_t> lost{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 1; i <= kRounds; ++i) {
        memory.store(t * kPage / 4 + i % 16, i);
        memory.flush();
        lost += memory.device(t * kPage / 4 + i % 16) != i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(lost == 0);
  CHECK(memory.bar().hdp_flushes() == 3 * kRounds);
}

TEST_CASE("threads that store to one page at the same time lose no store", "[lazy_bar]") {
  for (const bool is_ring : {false, true}) {
    Memory memory(lazy_seed());
    if (is_ring) memory.bar().pass_through(memory.program());
    constexpr uint32_t kThreads = 3, kStores = 2000;
    std::atomic<uint32_t> lost{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const size_t word = t * 16;  // a line each
        for (uint32_t i = 1; i <= kStores && lost == 0; ++i) {
          const uint32_t value = i * 0x01010101;  // all bytes change
          memory.store(word, value);
          // A store in the window of another thread's instruction is seen at its end.
          const bool seen = uptempo::test::eventually([&] {
            if (memory.device(word) == value) return true;
            if (!is_ring) memory.flush();
            return false;
          });
          if (!seen) ++lost;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CAPTURE(is_ring);
    CHECK(lost == 0);
  }
}

// The device makes headers INVALID while the host writes the same ones again.
TEST_CASE("a ring's store of what the device has overwritten arrives", "[lazy_bar]") {
  Memory memory(lazy_seed());
  memory.bar().pass_through(memory.program());
  std::atomic<bool> stop{false};
  std::thread other([&] {  // keeps the page open
    for (uint32_t i = 0; !stop; ++i) memory.store(512, i);
  });
  uint32_t lost = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    memory.store(0, 0x00010b02);
    lost += memory.device(0) != 0x00010b02 ? 1 : 0;
    memory.device_stores(0, 1);
  }
  stop = true;
  other.join();
  CHECK(lost == 0);
}

TEST_CASE("a blocked SIGTRAP stays blocked, and does not end the program", "[lazy_bar]") {
  Memory memory(lazy_seed());
  sigset_t trap, before, after;
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &trap, &before) == 0);
  memory.store(0, 1);
  REQUIRE(pthread_sigmask(SIG_SETMASK, &before, &after) == 0);
  CHECK(sigismember(&after, SIGTRAP) == 1);
}

TEST_CASE("moves of 32 bits are decoded, other instructions are not", "[lazy_bar]") {
  const auto decode = [](std::vector<uint8_t> code) {
    code.resize(16, 0x90);
    return decode_mov(code.data());
  };
  const auto store = [](unsigned length, unsigned reg) {
    return MovInstruction{.length_bytes = length, .stores = true, .reg = reg};
  };
  CHECK(decode({0x89, 0x08}) == store(2, 1));                    // mov [rax], ecx
  CHECK(decode({0x44, 0x89, 0x08}) == store(3, 9));              // mov [rax], r9d
  CHECK(decode({0x89, 0x44, 0x24, 0x08}) == store(4, 0));        // mov [rsp+8], eax
  CHECK(decode({0x89, 0x80, 0, 1, 0, 0}) == store(6, 0));        // mov [rax+256], eax
  CHECK(decode({0x89, 0x05, 0, 1, 0, 0}) == store(6, 0));        // mov [rip+256], eax
  CHECK(decode({0x89, 0x04, 0x25, 0, 1, 0, 0}) == store(7, 0));  // mov [256], eax
  CHECK(decode({0x41, 0x8b, 0x13}) ==
        MovInstruction{.length_bytes = 3, .stores = false, .reg = 2});  // mov edx, [r11]
  CHECK(decode({0xc7, 0x00, 1, 0, 0, 0}) ==
        MovInstruction{.length_bytes = 6, .stores = true, .constant = 1});
  CHECK(decode({0xc7, 0x40, 0x10, 2, 0, 0, 0}) ==
        MovInstruction{.length_bytes = 7, .stores = true, .constant = 2});
  CHECK_FALSE(decode({0x89, 0xc8}));        // mov eax, ecx
  CHECK_FALSE(decode({0x48, 0x89, 0x08}));  // 64 bits
  CHECK_FALSE(decode({0x66, 0x89, 0x08}));  // 16 bits
  CHECK_FALSE(decode({0x01, 0x08}));        // add
  CHECK_FALSE(decode({0x87, 0x08}));        // xchg
}
