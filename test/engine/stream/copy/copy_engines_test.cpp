// The choice of copy engines, as a function and over several copy engine doubles.
#include <uptempo/stream/copy/copy_engines.hpp>

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
using detail::choose_engines;
using detail::CopyDirection;

namespace {

using Bytes = std::vector<uint8_t>;

}  // namespace

TEST_CASE("engines that face the host link copy between host and device", "[copy][engines]") {
  const auto set = choose_engines(CopyDirection::to_device, 2, 0b11111, 0);
  CHECK(set.mask == 0b00011);
  CHECK(set.favourite == 0);
  CHECK(set.reason == "engines 0 and 1, which face the host link");
  // gfx90a: engine 0 copies to the device only.
  const auto back = choose_engines(CopyDirection::to_host, 2, 0b11110, 0);
  CHECK(back.mask == 0b00010);
  CHECK(back.favourite == 1);
  CHECK(choose_engines(CopyDirection::to_host, 2, 0b11111, 0).favourite == 1);
}

TEST_CASE("engines that ROCr prefers are used, XGMI engines included", "[copy][engines]") {
  const auto set = choose_engines(CopyDirection::to_host, 2, 0b11110, 0b11001);
  CHECK(set.mask == 0b11000);
  CHECK(set.favourite == 3);
  CHECK(set.reason == "engines 3 and 4, which ROCr prefers for this link");
}

TEST_CASE("without idle engines, and on request, the runtime decides", "[copy][engines]") {
  const auto set = choose_engines(CopyDirection::to_host, 2, 0b11100, 0);
  CHECK(set.mask == 0);
  CHECK(contains(set.reason, "no idle engine"));
  const auto sets = detail::left_to_runtime("too old");
  for (const auto direction : {CopyDirection::to_device, CopyDirection::to_host}) {
    CHECK(sets[static_cast<size_t>(direction)].mask == 0);
    CHECK(sets[static_cast<size_t>(direction)].reason == "the runtime decides: too old");
  }
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

TEST_CASE("the copies of two streams in one direction are on two engines", "[copy][engines]") {
  Engines engines;
  engines.pause();
  StreamDevices devices(engines.options());
  Stream one(devices), other(devices);
  Ends a, b;
  a.upload(one);
  b.upload(other);
  CHECK(begun(devices) == Counts{1, 1, 0, 0, 0, 0});
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
  CHECK(begun(devices) == Counts{3, 3, 0, 0, 0, 0});
  const std::string text = devices.state().transfers().describe();
  CHECK(contains(text, "by engine 0: 3, 192 bytes"));
  CHECK(contains(text, "by engine 1: 3, 192 bytes"));
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
  CHECK(begun(devices) == Counts{1, 0, 0, 0, 0, 0});
}

TEST_CASE("random copies of several streams over all engines leave what one after the other does",
          "[copy][engines][stress]") {
  Engines engines;
  StreamDevices devices(engines.options(0b00111, 0b11110));
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
  const Counts counts = begun(devices);
  for (uint32_t engine = 0; engine < kEngines; ++engine) CHECK(counts[engine] > 0);
  CHECK(counts.back() == 0);
}
