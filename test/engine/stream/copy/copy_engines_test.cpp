// The choice of copy engines, as a function and over several copy engine doubles.
#include "engine/stream/copy/copy_engines.hpp"

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "test/engine/stream/copy/many_copy_engines.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;
using detail::CopyDirection;
using detail::EngineOffer;

namespace {

using Bytes = std::vector<uint8_t>;

}  // namespace

TEST_CASE("engines that face the host link copy between host and device", "[copy][engines]") {
  const auto set = detail::choose_engines(CopyDirection::to_device, {}, offer(), 0b11111, 0);
  CHECK(set.mask == 0b00011);
  CHECK(set.favourite == 0);
  CHECK(set.reason ==
        "engines 0 and 1, which face the host link; ROCr reports 0, 1, 2, 3 and 4 of 5 for this "
        "direction");
  // gfx90a: engine 0 copies to the device only.
  const auto back = detail::choose_engines(CopyDirection::to_host, {}, offer(), 0b11110, 0);
  CHECK(back.mask == 0b00010);
  CHECK(back.favourite == 1);
  CHECK(detail::choose_engines(CopyDirection::to_host, {}, offer(), 0b11111, 0).favourite == 1);
}

TEST_CASE("engines that ROCr prefers are used, XGMI engines included", "[copy][engines]") {
  const auto set = detail::choose_engines(CopyDirection::to_host, {}, offer(), 0b11110, 0b11001);
  CHECK(set.mask == 0b11000);
  CHECK(set.favourite == 3);
  CHECK(contains(set.reason, "engines 3 and 4, which ROCr prefers"));
}

TEST_CASE("the runtime decides within and between GPUs, or on request, and the reason is given",
          "[copy][engines]") {
  const auto reason = [](CopyDirection direction, const CopyEngines& wanted,
                         const EngineOffer& offered, uint32_t idle) {
    const auto set = detail::choose_engines(direction, wanted, offered, idle, 0);
    CHECK(set.mask == 0);
    return set.reason;
  };
  CHECK(contains(reason(CopyDirection::within_device, {}, offer(), 0b11), "by a kernel"));
  CHECK(contains(reason(CopyDirection::between_devices, {}, offer(), 0b11), "two GPUs"));
  CHECK(contains(reason(CopyDirection::to_host, {.choice = EngineChoice::runtime}, offer(), 0b11),
                 "StreamsOptions::engines"));
  CHECK(contains(reason(CopyDirection::to_host, {}, {.none = "too old"}, 0b11), "too old"));
  CHECK(contains(reason(CopyDirection::to_host, {}, offer(), 0b11100), "no idle engine"));
}

TEST_CASE("copies with a peer use engines between devices, and count for their direction",
          "[copy][engines]") {
  using detail::CopyPlace;
  using enum CopyDirection;
  struct Case {
    CopyPlace to, from;
    CopyDirection engines, counted;
  };
  for (const Case& each : {
           Case{CopyPlace::device, CopyPlace::pinned, to_device, to_device},
           Case{CopyPlace::device, CopyPlace::pageable, to_device, to_device},
           Case{CopyPlace::pinned, CopyPlace::device, to_host, to_host},
           Case{CopyPlace::pageable, CopyPlace::device, to_host, to_host},
           Case{CopyPlace::pinned, CopyPlace::pinned, to_host, to_host},
           Case{CopyPlace::device, CopyPlace::device, within_device, within_device},
           Case{CopyPlace::peer, CopyPlace::device, between_devices, between_devices},
           Case{CopyPlace::device, CopyPlace::peer, between_devices, between_devices},
           Case{CopyPlace::peer, CopyPlace::peer, between_devices, between_devices},
           Case{CopyPlace::peer, CopyPlace::pinned, between_devices, to_device},
           Case{CopyPlace::peer, CopyPlace::pageable, between_devices, to_device},
           Case{CopyPlace::pinned, CopyPlace::peer, between_devices, to_host},
           Case{CopyPlace::pageable, CopyPlace::peer, between_devices, to_host},
       }) {
    CAPTURE(name_of(each.to), name_of(each.from));
    CHECK(detail::engine_direction_of(each.to, each.from) == each.engines);
    CHECK(detail::direction_of(each.to, each.from) == each.counted);
  }
}

TEST_CASE("a wrong mask is refused by name when the Streams is created", "[copy][engines]") {
  Engines engines;
  const auto text = [&](const CopyEngines& wanted) {
    return error_of<Error>([&] { StreamDevices devices(engines.options(wanted)); });
  };
  CHECK(
      contains(text({.to_host = 0b1010'0001}), "no engine 5 and 7; the agent has engines 0 to 4"));
  CHECK(contains(text({.to_host = 0b1010'0001}), "copies from device to host"));
  CHECK(contains(text({.to_device = 1u << 31}), "no engine 31"));
  CHECK(contains(text({.within_device = 32}), "within the device"));
  CHECK(contains(text({.choice = EngineChoice::runtime, .to_device = 1}), "EngineChoice::runtime"));
  StreamDevicesOptions without = engines.options({.to_device = 1});
  without.copies.engines = {.none = "this ROCr is too old"};
  CHECK(contains(error_of<Error>([&] { StreamDevices devices(without); }), "this ROCr is too old"));
}

TEST_CASE("the copies of two streams in one direction are on two engines", "[copy][engines]") {
  Engines engines;
  engines.pause();
  StreamDevices devices(engines.options());
  Stream one(devices), other(devices);
  Ends a, b;
  a.upload(one);
  b.upload(other);
  CHECK(begun(devices.streams()) == Counts{1, 1, 0, 0, 0, 0});
  engines.engines[1].resume();
  other.synchronize();
  CHECK(b.device == b.host);
  CHECK_FALSE(one.ready());
  engines.resume();
  one.synchronize();
  CHECK(a.device == a.host);
}

TEST_CASE("without load each direction has its usual engine", "[copy][engines]") {
  Engines engines;
  StreamDevices devices(engines.options());
  Stream stream(devices);
  Ends ends;
  for (int i = 0; i < 3; ++i) {
    ends.upload(stream);
    stream.synchronize();
    ends.download(stream);
    stream.synchronize();
  }
  CHECK(ends.back == ends.host);
  CHECK(begun(devices.streams()) == Counts{3, 3, 0, 0, 0, 0});
  const std::vector<CopyEngineUse> uses = devices.streams().copy_engines();
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].bytes == 3 * 64);
  CHECK(uses[1].name == "by engine 1");
  CHECK(uses[1].unfinished == 0);
}

TEST_CASE("ROCr is asked again while it reports no idle engine", "[copy][engines]") {
  Engines engines;
  engines.idle = 0;
  StreamDevices devices(engines.options());
  Stream stream(devices);
  Ends ends;
  ends.upload(stream);
  stream.synchronize();
  CHECK(contains(devices.streams().copy_engine_reasons(),
                 "copies from host to device: the runtime decides: ROCr reports no idle engine"));
  engines.idle = 0b11;
  ends.upload(stream);
  stream.synchronize();
  CHECK(begun(devices.streams()) == Counts{1, 0, 0, 0, 0, 1});
  CHECK(contains(devices.streams().copy_engine_reasons(),
                 "copies from host to device: engines 0 and 1, which face the host link"));
}

TEST_CASE("later copies end with the error of the engine that failed", "[copy][engines]") {
  Engines engines;
  StreamDevices devices(engines.options());
  Stream stream(devices), other(devices);
  Ends a, b;
  engines.engines[0].pause();
  engines.engines[0].fail();
  a.upload(stream);
  const Event failed = stream.record();
  engines.engines[0].resume();
  CHECK_THROWS_AS(failed.wait(), Error);
  CHECK(contains(error_of<Error>([&] { b.upload(other); }), "a copy by engine 0"));
  CHECK(begun(devices.streams()) == Counts{1, 0, 0, 0, 0, 0});
}

TEST_CASE("random copies of several streams over all engines leave what one after the other does",
          "[copy][engines][stress]") {
  Engines engines;
  StreamDevices devices(engines.options({.to_device = 0b00111, .to_host = 0b11110}));
  std::mt19937_64 random(1);
  std::deque<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.emplace_back(devices);
  // Each stream has its own memory; a step copies its host or device half into the other.
  std::vector<Ends> ends(streams.size());
  std::vector<Bytes> expected_device(streams.size()), expected_back(streams.size());
  // Copies that wait for each other take every engine, however fast the engines are.
  engines.pause();
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i].download(streams[i]);
    ends[i].upload(streams[i]);
    expected_back[i] = Bytes(64);
    expected_device[i] = ends[i].host;
  }
  engines.resume();
  for (int step = 0; step < 3000; ++step) {
    const size_t i = random() % streams.size();
    if (random() % 2 == 0) {
      const auto part = static_cast<size_t>(random() % 64);
      streams[i].copy(CopyTarget::device(ends[i].device.data() + part, 64 - part),
                      CopySource::pinned(ends[i].host.data(), 64 - part));
      std::copy_n(ends[i].host.begin(), 64 - part,
                  expected_device[i].begin() + static_cast<ptrdiff_t>(part));
    } else {
      ends[i].download(streams[i]);
      expected_back[i] = expected_device[i];
    }
    if (random() % 16 == 0) {
      streams[i].synchronize();
      REQUIRE(ends[i].device == expected_device[i]);
      REQUIRE(ends[i].back == expected_back[i]);
      for (uint8_t& byte : ends[i].host) byte = static_cast<uint8_t>(random());
    }
  }
  devices.streams().synchronize();
  const Counts counts = begun(devices.streams());
  for (uint32_t engine = 0; engine < kAllEngines; ++engine) CHECK(counts[engine] > 0);
  CHECK(counts.back() == 0);
}
