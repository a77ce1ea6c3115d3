// Streams when one allocation fails: for each allocation that an operation makes. Published work
// runs once and is not reported as refused; refused work can be done again. No memory is freed
// while a device uses it: failing_new.cpp overwrites what is freed.
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <uptempo/runtime/error.hpp>
#include <uptempo/stream/copy/retired.hpp>
#include <uptempo/stream/launcher.hpp>
#include "test/engine/stream/copy/copy_engine.hpp"
#include "test/engine/stream/stream_devices.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/failing_new.hpp"

using namespace uptempo;
using namespace uptempo::test;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t kNumbers = 64;

StreamDevicesOptions paused_with(CopyEngine& engine, uint32_t queues = 2) {
  StreamDevicesOptions options = paused(queues);
  options.kernels = kNumbers;
  options.copies = engine.parts();
  options.streams.copies = {
      .host_bytes = 0, .staging_bytes = 4096, .piece_bytes = 1024, .engine_copies = 4};
  return options;
}

// Devices and a copy engine that execute nothing before resume(). Counts how often each kernel ran.
struct StreamWorld {
  explicit StreamWorld(uint32_t queues = 2, bool legacy = false)
      : devices([&] {
          StreamDevicesOptions options = paused_with(engine, queues);
          options.streams.legacy_default = legacy;
          options.at_end = [this](const hsa_kernel_dispatch_packet_t& packet) {
            ++runs.at(*static_cast<const volatile uint32_t*>(packet.kernarg_address));
          };
          return options;
        }()) {}
  ~StreamWorld() {
    resume();
    devices.destroy_streams();
    engine.stop();
  }
  void resume() {
    engine.resume();
    devices.resume();
  }
  void finish() {
    resume();
    devices.streams().synchronize();
  }

  std::array<std::atomic<uint32_t>, kNumbers> runs{};
  CopyEngine engine{true};
  StreamDevices devices;
  size_t done = 0;  // steps that have returned
};

// Makes the steps one after the other. When one finds no memory, makes it again: it must have done
// nothing. Then calls `then`.
template <class World, class Then>
void fail_each_step(const std::vector<std::function<void(World&)>>& steps, Then then) {
  const auto go_on = [&](World& world) {
    for (; world.done < steps.size(); ++world.done) steps[world.done](world);
  };
  fail_each_allocation<World>(go_on, [&](World& world, bool) {
    CAPTURE(world.done);
    go_on(world);
    then(world);
  });
}

struct OneStream : StreamWorld {
  Stream stream{devices};
};
struct TwoStreams : StreamWorld {
  Stream first{devices}, second{devices};
  Event event;
};

using Bytes = std::vector<uint8_t>;

CopyTarget device(Bytes& memory) { return CopyTarget::device(memory.data(), memory.size()); }
CopySource from_device(const Bytes& memory) {
  return CopySource::device(memory.data(), memory.size());
}

// Kernels below `kernels` ran once.
void check_ran(StreamWorld& world, uint32_t kernels) {
  for (uint32_t number = 0; number < kernels; ++number) {
    CAPTURE(number);
    CHECK(world.runs[number] == 1);
  }
}

}  // namespace

TEST_CASE("a launch that finds no memory publishes nothing", "[memory][stream]") {
  fail_each_step<OneStream>({[](OneStream& world) { launch(world.stream, 0); },
                             [](OneStream& world) { launch(world.stream, 1); }},
                            [](OneStream& world) {
                              world.finish();
                              check_ran(world, 2);
                            });
}

TEST_CASE("a launch beside a legacy default stream that finds no memory publishes nothing",
          "[memory][stream]") {
  struct Legacy : StreamWorld {
    Legacy() : StreamWorld(2, true) {}
    Stream first{devices}, second{devices};
  };
  fail_each_step<Legacy>(
      {[](Legacy& world) { launch(world.first, 0); },
       [](Legacy& world) { launch(world.second, 1); },
       [](Legacy& world) { launch(world.devices.streams().default_stream(), 2); },
       [](Legacy& world) { launch(world.first, 3); }},
      [](Legacy& world) {
        world.finish();
        check_ran(world, 4);
        CHECK(world.devices.log.is_before(0, 2));
        CHECK(world.devices.log.is_before(1, 2));
        CHECK(world.devices.log.is_before(2, 3));
      });
}

TEST_CASE("a wait for another queue that finds no memory still holds, also when that queue fails",
          "[memory][stream][failure]") {
  const bool fails = GENERATE(false, true);
  CAPTURE(fails);
  fail_each_step<TwoStreams>(
      {[](TwoStreams& world) { launch(world.first, 0); },
       [](TwoStreams& world) { world.event = world.first.record(); },
       [](TwoStreams& world) { world.second.after(world.event); },
       [](TwoStreams& world) { launch(world.second, 1); }},
      [&](TwoStreams& world) {
        if (fails) world.devices.device_of(world.first).fail(HSA_STATUS_ERROR_INVALID_ISA);
        world.devices.resume();
        if (!fails) {
          world.second.synchronize();
          check_ran(world, 2);
          CHECK(world.devices.log.is_before(0, 1));
          return;
        }
        CHECK(error_of<Error>([&] { (void)world.first.synchronize(soon()); }) != "no error");
        CHECK(contains(error_of<Error>([&] { (void)world.second.synchronize(soon()); }),
                       "a queue that it waits for has failed"));
        CHECK(world.runs[1] == 0);
      });
}

TEST_CASE("events that find no memory can be recorded again", "[memory][stream]") {
  struct Timed : OneStream {
    TimedEvent begin, end;
  };
  fail_each_step<Timed>({[](Timed& world) { launch(world.stream, 0); },
                         [](Timed& world) { world.stream.record(world.begin); },
                         [](Timed& world) { launch(world.stream, 1); },
                         [](Timed& world) { world.stream.record(world.end); },
                         [](Timed& world) { (void)world.stream.record(); }},
                        [](Timed& world) {
                          world.resume();
                          world.end.wait();
                          check_ran(world, 2);
                          CHECK(world.begin.ns() < world.end.ns());
                        });
}

TEST_CASE("a timed event whose new recording finds no memory keeps the time of the old one",
          "[memory][stream]") {
  struct Timed : TwoStreams {
    Timed() {
      launch(first, 0);
      first.record(event);
      resume();
      event.wait();
      old_ns = event.ns();
      devices.pause();
      launch(second, 1);
    }
    TimedEvent event;
    uint64_t old_ns = 0;
  };
  fail_each_allocation<Timed>([](Timed& world) { world.second.record(world.event); },
                              [](Timed& world, bool threw) {
                                if (threw) CHECK(world.event.ns() == world.old_ns);
                                world.finish();
                              });
}

TEST_CASE("signals that find no memory are set once", "[memory][stream]") {
  struct Signalled : TwoStreams {
    SignalDouble mine{1}, awaited{1};
  };
  fail_each_step<Signalled>({[](Signalled& world) { world.first.after(world.awaited.handle()); },
                             [](Signalled& world) { launch(world.first, 0); },
                             [](Signalled& world) { world.first.signal(world.mine.handle()); }},
                            [](Signalled& world) {
                              world.devices.resume();
                              CHECK(world.runs[0] == 0);
                              world.awaited.set(0);
                              world.first.synchronize();
                              check_ran(world, 1);
                              CHECK(world.mine.value() == 0);
                            });
}

TEST_CASE("a launcher that finds no memory publishes nothing, and no block changes under a kernel",
          "[memory][stream][launcher]") {
  // More queues than a block expects users, so that noting the use allocates.
  static constexpr uint32_t kQueues = 12;
  struct Launching : StreamWorld {
    Launching() : StreamWorld(kQueues) {
      for (uint32_t i = 0; i < kQueues; ++i) streams.emplace_back(devices);
      launcher.emplace(devices.streams(), number_kernel(), 2);
    }
    std::deque<Stream> streams;
    std::optional<Launcher<uint32_t>> launcher;
  };
  std::vector<std::function<void(Launching&)>> steps;
  for (uint32_t i = 0; i < kQueues; ++i)
    steps.push_back(
        [i](Launching& world) { world.launcher->launch(world.streams[i], Grid{1}, 0u); });
  // Other arguments must find another block.
  for (uint32_t number : {1u, 2u})
    steps.push_back(
        [number](Launching& world) { world.launcher->launch(world.streams[0], Grid{1}, number); });
  fail_each_step<Launching>(steps, [](Launching& world) {
    world.finish();
    CHECK(world.runs[0] == kQueues);
    CHECK(world.runs[1] == 1);
    CHECK(world.runs[2] == 1);
  });
}

TEST_CASE("a launcher destroyed without memory leaves its blocks to the kernels that read them",
          "[memory][stream][launcher]") {
  struct Launching : OneStream {
    Launching() {
      launcher.emplace(devices.streams(), number_kernel(), 8);
      for (uint32_t i = 0; i < 4; ++i) launcher->launch(stream, Grid{1}, i);
    }
    std::optional<Launcher<uint32_t>> launcher;
  };
  fail_each_allocation<Launching>([](Launching& world) { world.launcher.reset(); },
                                  [](Launching& world, bool threw) {
                                    CHECK_FALSE(threw);
                                    world.finish();
                                    check_ran(world, 4);
                                  });
}

TEST_CASE("a copy that finds no memory copies nothing or all", "[memory][stream][copy]") {
  struct Copying : TwoStreams {
    explicit Copying() : from(900), to(900) {  // a piece of staging memory
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + 1);
    }
    void check_copied() {
      CHECK(to == from);
      CHECK(detail::RetiredList::of_process().size() == 0);
    }
    Bytes from, to;
  };
  using Step = std::function<void(Copying&)>;
  const Step kernel = [](Copying& world) { launch(world.first, 0); };
  const Step record = [](Copying& world) { world.event = world.first.record(); };
  const Step wait = [](Copying& world) { world.second.after(world.event); };
  const Step within = [](Copying& world) {
    world.second.copy(device(world.to), from_device(world.from));
  };
  const Step in = [](Copying& world) {
    world.second.copy(device(world.to), std::span<const uint8_t>(world.from));
  };
  const Step out = [](Copying& world) {
    world.second.copy(std::span(world.to), from_device(world.from));
  };
  const Step behind = [](Copying& world) { launch(world.second, 1); };
  for (const Step& copy : {within, in, out}) {
    fail_each_step<Copying>({kernel, record, wait, copy, behind}, [](Copying& world) {
      world.finish();
      check_ran(world, 2);
      world.check_copied();
      CHECK(world.devices.log.is_before(0, 1));
    });
    // The engine must not wait forever for a queue that fails.
    fail_each_step<Copying>({kernel, record, wait, copy}, [](Copying& world) {
      world.devices.device_of(world.first).fail(HSA_STATUS_ERROR_INVALID_ISA);
      CHECK(error_of<Error>([&] { (void)world.first.synchronize(soon()); }) != "no error");
      CHECK(contains(error_of<Error>([&] { (void)world.second.synchronize(soon()); }),
                     "a queue that it waits for has failed"));
      CHECK(world.to == Bytes(world.to.size()));
    });
  }
}

TEST_CASE("a copy of a blocking stream that finds no memory is followed by the default stream",
          "[memory][stream][copy]") {
  struct Legacy : StreamWorld {
    Legacy() : StreamWorld(2, true), from(3000, 7), to(3000) {}
    Stream stream{devices};
    Bytes from, to;
  };
  fail_each_step<Legacy>(
      {[](Legacy& world) { launch(world.stream, 0); },
       [](Legacy& world) { world.stream.copy(device(world.to), from_device(world.from)); },
       [](Legacy& world) { launch(world.devices.streams().default_stream(), 1); }},
      [](Legacy& world) {
        world.devices.resume();
        // The copy has not begun, and the default stream follows it.
        CHECK(eventually([&] { return world.runs[0] == 1; }));
        CHECK(world.runs[1] == 0);
        world.finish();
        CHECK(world.to == world.from);
        CHECK(world.engine.carried_out() == 1);
        check_ran(world, 2);
      });
}
