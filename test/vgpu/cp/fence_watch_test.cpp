// A queue's reports to the fence checker: launches, completions, dependencies, copies, doorbells.
// The checker's rules have their own tests (test/vgpu/device).
#include "cp/fence_watch.hpp"

#include "../device/watched_pages.hpp"
#include "device/host/host_stacks.hpp"
#include "device/observer.hpp"
#include "device_fixture.hpp"
#include "sdma_ring.hpp"
#include "test/support/catch.hpp"

using namespace uptempo::vgpu;
using namespace uptempo::vgpu::test;
using Class = fences::Finding::Class;

namespace {

Options checked() {
  Options options;
  options.checks.fences = options.checks.specification = true;
  return options;
}

// Returns a kernel whose work-items access one word each, from `data` on.
ScriptedKernel* accessing(DeviceFixture& device, Access access, const void* data) {
  return device.kernel([access, data](const Slice& slice) {
    std::array<GpuAddress, 64> address{};
    for (uint64_t lane = 0; lane < 64; ++lane)
      address[lane] = DeviceFixture::address(static_cast<const std::byte*>(data)) + 4 * lane;
    slice.dispatch.observer->access({.access = access,
                                     .size_bytes = 4,
                                     .lanes = ~uint64_t{0},
                                     .address = address.data(),
                                     .workgroup = slice.id});
    return gfx9::Workgroup::Result::ended;
  });
}

hsa_kernel_dispatch_packet_t packet(const ScriptedKernel* kernel, bool barrier,
                                    hsa_fence_scope_t acquire, hsa_fence_scope_t release,
                                    const amd_signal_t* done = nullptr) {
  auto result = dispatch(kernel, 64, 64, barrier, done);
  result.header = header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier, acquire, release);
  return result;
}

// A signal that the device itself completes when the host opens the gate. Work that waits for the
// gate is ordered after everything that the host had waited for by then. Work that waits for this
// signal is not ordered after anything else.
struct Start {
  explicit Start(DeviceFixture& device)
      : queue(device), gate(device.signal(1)), signal(device.signal(1)) {
    queue.submit(barrier_and({gate}, false, signal));
  }
  void go() const {
    settle();
    DeviceFixture::set(gate, 0);
  }

  ComputeQueue queue;
  amd_signal_t* gate;
  amd_signal_t* signal;
};

int64_t* low_word(amd_signal_t* signal) { return const_cast<int64_t*>(&signal->value); }

}  // namespace

TEST_CASE("without the checker a dispatch has no observer") {
  DeviceFixture device;
  ComputeQueue queue(device);
  bool observed = true;
  amd_signal_t* done = device.signal(1);
  queue.submit(dispatch(device.kernel([&](const Slice& slice) {
    observed = slice.dispatch.observer != nullptr;
    return gfx9::Workgroup::Result::ended;
  }),
                        1, 1, false, done));
  REQUIRE(fires(done));
  CHECK_FALSE(observed);
}

TEST_CASE("findings are available when the completion signal is") {
  DeviceFixture device(checked());
  ComputeQueue queue(device);
  void* data = device.allocate(256);
  amd_signal_t* done = device.signal(1);
  queue.write(packet(accessing(device, Access::write, data), false, kSystem, kAgent));
  SECTION("without the barrier bit nothing orders the read") {
    queue.submit(packet(accessing(device, Access::read, data), false, kAgent, kSystem, done));
    REQUIRE(fires(done));
    // The writer may end last. The finding then names it as the later access.
    REQUIRE(eventually([&] { return device.findings().size() == 1; }));
    const auto found = device.findings().front();
    CHECK(found.what == Class::unordered);
    CHECK(found.address == DeviceFixture::address(static_cast<std::byte*>(data)));
    CHECK(found.bytes == 256);
    CHECK(found.writer->position == 0);
    CHECK(found.reader->position == 1);
  }
  SECTION("with it and no acquire the read may be stale") {
    queue.submit(packet(accessing(device, Access::read, data), true, kNone, kSystem, done));
    REQUIRE(fires(done));
    REQUIRE(device.findings().size() == 1);
    CHECK(device.findings().front().what == Class::stale);
    CHECK(device.checker->counts().stale == 1);
  }
  SECTION("with both there is no finding") {
    queue.submit(packet(accessing(device, Access::read, data), true, kAgent, kSystem, done));
    REQUIRE(fires(done));
    CHECK(device.findings().empty());
  }
}

TEST_CASE("a dispatch keeps its instructions though the call that published it is not known") {
  HostStacks stacks;
  DeviceFixture device(checked());
  device.device->host_stacks = &stacks;
  ComputeQueue queue(device);
  void* data = device.allocate(256);
  amd_signal_t* done = device.signal(1);
  queue.write(packet(accessing(device, Access::write, data), false, kSystem, kAgent));
  queue.submit(packet(accessing(device, Access::read, data), true, kNone, kSystem, done));
  REQUIRE(fires(done));
  REQUIRE(device.findings().size() == 1);
  const auto found = device.findings().front();
  CHECK(found.writer->origin.published.stack == 0);
  CHECK(found.writer->instructions != nullptr);
}

TEST_CASE("only a barrier packet orders later packets after its dependencies' work") {
  DeviceFixture device(checked());
  ComputeQueue first(device), second(device);
  const Start start(device);
  void* data = device.allocate(256);
  amd_signal_t* written = device.signal(1);
  amd_signal_t* done = device.signal(1);
  bool depends = false;
  SECTION("with the dependency") { depends = true; }
  SECTION("without it") { depends = false; }
  first.write(barrier_and({start.signal}));
  first.submit(packet(accessing(device, Access::write, data), true, kSystem, kAgent, written));
  auto barrier = barrier_and({depends ? written : start.signal});
  barrier.header = header_of(HSA_PACKET_TYPE_BARRIER_AND, false, kAgent, kNone);
  second.write(barrier);
  second.submit(packet(accessing(device, Access::read, data), true, kAgent, kSystem, done));
  start.go();
  REQUIRE(fires(written));
  REQUIRE(fires(done));
  if (depends) {
    CHECK(device.findings().empty());
  } else {
    REQUIRE(device.findings().size() == 1);
    CHECK(device.findings().front().what == Class::unordered);
  }
}

TEST_CASE("a rung packet is ordered after everything that the host had waited for when it rang") {
  DeviceFixture device(checked());
  ComputeQueue first(device), second(device);
  void* data = device.allocate(256);
  amd_signal_t* written = device.signal(1);
  amd_signal_t* done = device.signal(1);
  first.submit(packet(accessing(device, Access::write, data), false, kSystem, kSystem, written));
  REQUIRE(fires(written));
  second.submit(packet(accessing(device, Access::read, data), false, kSystem, kSystem, done));
  REQUIRE(fires(done));
  CHECK(device.findings().empty());
}

TEST_CASE("a packet rung before a completion was announced is not ordered after it", "[prompt]") {
  constexpr uint32_t kEvent = 7;
  Options options = checked();
  options.deterministic = true;
  DeviceFixture device(options);
  ComputeQueue first(device), second(device);
  SdmaRing ring(device);
  void* data = device.allocate(256);
  void* copied = device.allocate(256);
  amd_signal_t* raised = device.signal(1, kEvent);
  amd_signal_t* written = device.signal(1);
  amd_signal_t* done = device.signal(1);
  ScriptedKernel* reader = accessing(device, Access::read, data);
  const auto ring_for_dispatch = [&] {
    second.submit(packet(reader, false, kSystem, kSystem, done));
  };
  const auto ring_for_copy = [&] {
    ring.write(test::copy(copied, data, 256));
    ring.submit(decrement(low_word(done)));
  };
  std::function<void()> in_time, late;
  SECTION("a dispatch, rung for in time") { in_time = ring_for_dispatch; }
  SECTION("a dispatch, rung for afterwards") { late = ring_for_dispatch; }
  SECTION("a copy, rung for in time") { in_time = ring_for_copy; }
  SECTION("a copy, rung for afterwards") { late = ring_for_copy; }
  // The end of the first dispatch raises an event in the same turn that announces the end of the
  // second dispatch, which writes. No turn begins in between.
  device.interrupts.when_raised = [&](uint32_t event) {
    if (event == kEvent && in_time) in_time();
  };
  bool has_written = false;
  ScriptedKernel* write = accessing(device, Access::write, data);
  first.write(dispatch(device.kernel([&](const Slice&) {
    return has_written ? gfx9::Workgroup::Result::ended : gfx9::Workgroup::Result::preempted;
  }),
                       64, 64, false, raised));
  first.submit(packet(device.kernel([&, body = write->body](const Slice& slice) {
    has_written = true;
    return body(slice);
  }),
                      false, kSystem, kSystem, written));
  REQUIRE(fires(written));
  if (late) late();
  REQUIRE(fires(done));
  if (late) {
    CHECK(device.findings().empty());
  } else {
    REQUIRE(device.findings().size() == 1);
    CHECK(device.findings().front().what == Class::unordered);
  }
}

TEST_CASE("each packet is ordered after what the host had waited for when it first rang for it") {
  DeviceFixture device(checked());
  ComputeQueue first(device), second(device);
  void* data = device.allocate(256);
  amd_signal_t* written = device.signal(1);
  amd_signal_t* done = device.signal(2);
  ScriptedKernel* reader = accessing(device, Access::read, data);
  ScriptedKernel* write = accessing(device, Access::write, data);
  std::atomic<bool> go{false};
  // Runs until the second doorbell has been rung, while the first packet has not begun.
  second.submit(dispatch(device.kernel([&go](const Slice&) {
    return go ? gfx9::Workgroup::Result::ended : gfx9::Workgroup::Result::preempted;
  }),
                         64, 64));
  ScriptedKernel* kernel = device.kernel([&, body = write->body](const Slice& slice) {
    second.submit(packet(reader, true, kSystem, kSystem, done));
    return body(slice);
  });
  first.submit(packet(kernel, false, kSystem, kSystem, written));
  REQUIRE(fires(written));
  second.submit(packet(reader, true, kSystem, kSystem, done));
  go = true;
  REQUIRE(fires(done));
  REQUIRE(device.findings().size() == 1);
  CHECK(device.findings().front().what == Class::unordered);
  CHECK(device.findings().front().reader->position == 1);
}

TEST_CASE("a copy after a kernel needs the kernel's signal and a release at system scope") {
  DeviceFixture device(checked());
  ComputeQueue queue(device);
  SdmaRing ring(device);
  const Start start(device);
  void* data = device.allocate(4096, 4096);
  void* copied = device.allocate(4096, 4096);
  amd_signal_t* written = device.signal(1);
  amd_signal_t* done = device.signal(1);
  bool depends = true;
  hsa_fence_scope_t release = kSystem;
  SECTION("with both") {}
  SECTION("the release is narrower") { release = kAgent; }
  SECTION("the copy does not wait for the kernel") { depends = false; }
  queue.write(barrier_and({start.signal}));
  queue.submit(packet(accessing(device, Access::write, data), true, kSystem, release, written));
  ring.write(poll(low_word(depends ? written : start.signal), 0));
  ring.write(test::copy(copied, data, 4096));
  ring.submit(decrement(low_word(done)));
  start.go();
  REQUIRE(fires(written));
  REQUIRE(fires(done));
  const auto findings = device.findings();
  if (!depends) {
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().what == Class::unordered);
  } else if (release == kAgent) {
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().what == Class::stale);
    CHECK(findings.front().reader->name == "copy_linear");
    CHECK(findings.front().bytes == 256);
    CHECK_FALSE(findings.front().possible_on_target);  // L2 does not hold fine-grained memory
  } else {
    CHECK(findings.empty());
  }
}

TEST_CASE("a kernel that overwrites data without waiting for its download is found") {
  DeviceFixture device(checked());
  ComputeQueue queue(device);
  SdmaRing ring(device);
  const Start start(device);
  void* data = device.allocate(4096, 4096);
  void* copied = device.allocate(4096, 4096);
  amd_signal_t* downloaded = device.signal(1);
  amd_signal_t* written = device.signal(1);
  bool waits = false;
  SECTION("it waits") { waits = true; }
  SECTION("it does not") { waits = false; }
  ring.write(poll(low_word(start.signal), 0));
  ring.write(test::copy(copied, data, 4096));
  ring.submit(decrement(low_word(downloaded)));
  queue.write(barrier_and({waits ? downloaded : start.signal}));
  queue.submit(packet(accessing(device, Access::write, data), true, kSystem, kSystem, written));
  start.go();
  REQUIRE(fires(downloaded));
  REQUIRE(fires(written));
  if (waits) {
    CHECK(device.findings().empty());
  } else {
    REQUIRE(device.findings().size() == 1);
    CHECK(device.findings().front().what == Class::unordered);
    CHECK(device.findings().front().bytes == 256);
  }
}

TEST_CASE("a kernel that reads data without waiting for the engine's write of it is found") {
  DeviceFixture device(checked());
  ComputeQueue queue(device);
  SdmaRing ring(device);
  const Start start(device);
  void* data = device.allocate(4096, 4096);
  amd_signal_t* stored = device.signal(1);
  amd_signal_t* loaded = device.signal(1);
  bool waits = false;
  SECTION("it waits") { waits = true; }
  SECTION("it does not") { waits = false; }
  ring.write(poll(low_word(start.signal), 0));
  ring.write(write_data(data, Words(64, 5)));
  ring.submit(decrement(low_word(stored)));
  queue.write(barrier_and({waits ? stored : start.signal}));
  queue.submit(packet(accessing(device, Access::read, data), true, kSystem, kSystem, loaded));
  start.go();
  REQUIRE(fires(stored));
  REQUIRE(fires(loaded));
  if (waits) {
    CHECK(device.findings().empty());
  } else {
    REQUIRE(device.findings().size() == 1);
    CHECK(device.findings().front().what == Class::unordered);
    CHECK(device.findings().front().bytes == 256);
  }
}

TEST_CASE("arguments that the firmware preloads count as read by the dispatch") {
  DeviceFixture device(checked());
  ComputeQueue queue(device);
  auto* data = static_cast<std::byte*>(device.allocate(256, 4096));
  amd_signal_t* done = device.signal(1);
  ScriptedKernel* kernel = device.kernel();
  kernel->kernarg_bytes = 64;
  kernel->preload_offset_bytes = 8;
  hsa_fence_scope_t acquire = kAgent;
  SECTION("after an acquire there is no finding") { kernel->preload_dwords = 4; }
  SECTION("without one they may be stale") {
    acquire = kNone;
    kernel->preload_dwords = 4;
  }
  SECTION("a kernel that preloads none reads none") { acquire = kNone; }
  queue.write(packet(accessing(device, Access::write, data), false, kSystem, kAgent));
  auto preloading = packet(kernel, true, acquire, kSystem, done);
  preloading.kernarg_address = data;
  queue.submit(preloading);
  REQUIRE(fires(done));
  if (acquire == kAgent || kernel->preload_dwords == 0) {
    CHECK(device.findings().empty());
  } else {
    REQUIRE(device.findings().size() == 1);
    CHECK(device.findings().front().what == Class::stale);
    CHECK(device.findings().front().address == DeviceFixture::address(data) + 8);
    CHECK(device.findings().front().bytes == 16);
  }
}

TEST_CASE("private memory causes no findings") {
  DeviceFixture device(checked());
  auto* scratch = static_cast<std::byte*>(device.allocate(1 << 16, 4096));
  gfx9::DispatchState state;
  state.packet = dispatch(device.kernel(), 64, 64);
  state.scratch_base = DeviceFixture::address(scratch);
  state.scratch_bytes = 4096;
  fences::Checker& checker = *device.checker;
  const fences::ActorId queue = checker.add_queue(fences::Checker::QueueKind::compute, 0);
  const auto kind = [](GpuAddress) { return std::optional(MemoryKind::device_local); };
  for (uint64_t index = 0; index < 2; ++index) {
    WatchedDispatch watched(checker, queue, {.index = index}, state, {}, nullptr);
    std::array<GpuAddress, 64> address{};
    for (uint64_t lane = 0; lane < 64; ++lane) address[lane] = state.scratch_base + 4032 + 4 * lane;
    watched.access({.access = Access::write,
                    .size_bytes = 4,
                    .lanes = 0x1ffff,  // the last of them is beyond it
                    .address = address.data()});
    watched.end(checker, {.index = index}, kind);
  }
  REQUIRE(device.findings().size() == 1);
  CHECK(device.findings().front().bytes == 4);
  CHECK(device.findings().front().address == state.scratch_base + 4096);
}

// --- scopes of gfx942's loads and stores ---

namespace {

struct Touched {
  Access access;
  AccessScope scope;
};

// Two dispatches of gfx942 touch one word of device memory, the second one on another XCD than the
// first. They are ordered if the second packet has the barrier bit; it acquires at agent scope.
std::vector<fences::Finding> found_between(const Touched& first, const Touched& second,
                                           bool barrier) {
  constexpr GpuAddress kWord = 0x10000000;
  std::vector<fences::Finding> findings;
  fences::Checker checker({.target = "gfx942", .specification = true},
                          [&](const fences::Finding& finding) { findings.push_back(finding); });
  const fences::ActorId queue = checker.add_queue(fences::Checker::QueueKind::compute, 0);
  const auto kind = [](GpuAddress) { return std::optional(MemoryKind::device_local); };
  gfx9::DispatchState state;
  state.packet = dispatch(nullptr, 64, 64);
  uint32_t xcd = 0;
  for (const Touched& one : {first, second}) {
    const fences::Packet packet{.index = xcd, .barrier = barrier, .acquire = FenceScope::agent};
    WatchedDispatch watched(checker, queue, packet, state, {.count = 8, .first = xcd++}, nullptr);
    watched.access(
        {.access = one.access, .scope = one.scope, .size_bytes = 4, .lanes = 1, .address = &kWord});
    watched.end(checker, packet, kind);
  }
  return findings;
}

constexpr std::array kScopes{AccessScope::wave, AccessScope::workgroup, AccessScope::agent,
                             AccessScope::system};

}  // namespace

TEST_CASE("kernels synchronise by loads and stores of agent scope, and not by narrower ones") {
  for (const AccessScope scope : kScopes) {
    CAPTURE(static_cast<int>(scope));
    const bool meets = scope >= AccessScope::agent;
    const auto loaded =
        found_between({Access::write, AccessScope::wave}, {Access::read, scope}, false);
    const auto stored =
        found_between({Access::read, AccessScope::wave}, {Access::write, scope}, false);
    const auto both = found_between({Access::write, scope}, {Access::write, scope}, false);
    for (const auto& findings : {loaded, stored, both}) {
      REQUIRE(findings.size() == (meets ? 0 : 1));
      if (!meets) CHECK(findings.front().what == Class::unordered);
    }
  }
}

TEST_CASE("a store of agent scope is in memory, a narrower one in the L2 of its XCD") {
  for (const AccessScope scope : kScopes) {
    CAPTURE(static_cast<int>(scope));
    const bool hidden = scope < AccessScope::agent;
    const auto read =
        found_between({Access::write, scope}, {Access::read, AccessScope::wave}, true);
    REQUIRE(read.size() == 1);
    CHECK(read.front().what == Class::stale);
    CHECK(read.front().possible_on_target == hidden);
    const auto written =
        found_between({Access::write, scope}, {Access::write, AccessScope::wave}, true);
    CHECK(written.size() == (hidden ? 1 : 0));
  }
}

// --- the host, observed ---

namespace {

// A page at kGpu that host and device share.
struct SharedPage {
  SharedPage() : device(checked()) {
    device.memory.map({.begin = kGpu, .end = kGpu + kPage, .host = watched.memory.device});
    device.device->host_pages = &watched.host;
  }
  ~SharedPage() { device.processor.reset(); }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  // Returns a kernel that makes these accesses to the page's first 256 bytes and ends when it is
  // released.
  ScriptedKernel* accessing_until_released(std::vector<Access> accesses) {
    return device.kernel([this, accesses](const Slice& slice) {
      if (slice.turn == 0) {
        for (const Access access : accesses)
          accessing(device, access, reinterpret_cast<const void*>(kGpu))->body(slice);
        under_way = true;
      }
      return released ? gfx9::Workgroup::Result::ended : gfx9::Workgroup::Result::preempted;
    });
  }

  Watched watched;
  DeviceFixture device;
  std::atomic<bool> under_way{false}, released{false};
};

}  // namespace

TEST_CASE("a load of the host while a dispatch writes the page for the first time is found") {
  SharedPage page;
  ComputeQueue queue(page.device);
  amd_signal_t* done = page.device.signal(1);
  std::vector<Access> accesses{Access::write};
  size_t byte = 8;
  bool found = true;
  SECTION("that writes only") {}
  SECTION("that reads it first") { accesses = {Access::read, Access::write}; }
  SECTION("unless it reads only") {
    accesses = {Access::read};
    found = false;
  }
  SECTION("unless they are other bytes") {
    byte = 1000;
    found = false;
  }
  queue.submit(packet(page.accessing_until_released(accesses), false, kSystem, kSystem, done));
  REQUIRE(eventually([&] { return page.under_way.load(); }));
  load(page.watched.memory.program + byte);
  page.released = true;
  REQUIRE(fires(done));
  if (!found) {
    CHECK(page.device.findings().empty());
  } else {
    REQUIRE(page.device.findings().size() == 1);
    const auto finding = page.device.findings().front();
    CHECK(finding.what == Class::unordered);
    CHECK(finding.address == kGpu + 8);
    CHECK(finding.writer->position == 0);
    CHECK(finding.reader->name == "host");
  }
}

TEST_CASE(
    "a load of the host before a copy that it has rung for is found, and one after it is not") {
  SharedPage page;
  ComputeQueue queue(page.device);
  SdmaRing ring(page.device);
  auto* source = static_cast<std::byte*>(page.device.allocate(256));
  *source = std::byte{42};
  amd_signal_t* ready = page.device.signal(1);
  amd_signal_t* done = page.device.signal(1);
  queue.submit(dispatch(page.accessing_until_released({}), 64, 64, false, ready));
  ring.write(poll(low_word(ready), 0));
  ring.write(test::copy(reinterpret_cast<void*>(kGpu), source, 256));
  bool early = false;
  SECTION("before") { early = true; }
  SECTION("after") { early = false; }
  ring.submit(decrement(low_word(done)));
  // The device closes the page in the turn in which it finds the ring's doorbell.
  REQUIRE(eventually([&] { return page.device.counts.doorbells() == 2; }));
  page.device.end_turn();
  if (early) CHECK(load(page.watched.memory.program) == 0);
  page.released = true;
  REQUIRE(fires(done));
  CHECK(load(page.watched.memory.program) == 42);
  ring.submit(decrement(low_word(done)));  // makes the device read its queues
  REQUIRE(eventually([&] { return DeviceFixture::value(done) == -1; }));
  if (!early) {
    CHECK(page.device.findings().empty());
  } else {
    REQUIRE(page.device.findings().size() == 1);
    CHECK(page.device.findings().front().what == Class::unordered);
    CHECK(page.device.findings().front().writer->name == "copy_linear");
    CHECK(page.device.findings().front().reader->name == "host");
  }
}
