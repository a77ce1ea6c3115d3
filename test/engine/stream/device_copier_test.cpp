// Copier on a device.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <uptempo/uptempo.hpp>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"
#include "test/support/text.hpp"

using namespace uptempo;
using namespace uptempo::test;

TEST_CASE_METHOD(OnDevice, "a copier takes vectors, arrays and spans, const or not", "[copier]") {
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> device{gpu, 3};
  const auto arrives = [&](std::vector<uint32_t> expected) {
    std::vector<uint32_t> result(3);
    copier.copy(result, device);
    return result == expected;
  };
  std::vector<uint32_t> vector{1, 2, 3};
  copier.copy(device, vector);
  CHECK(arrives({1, 2, 3}));
  const std::vector<uint32_t> constant{4, 5, 6};
  copier.copy(device, constant);
  CHECK(arrives({4, 5, 6}));
  copier.copy(device, std::span<const uint32_t>(std::vector<uint32_t>{7, 8, 9}));
  CHECK(arrives({7, 8, 9}));
  copier.copy(device, vector);
  CHECK(arrives({1, 2, 3}));
  copier.copy(device, constant);
  CHECK(arrives({4, 5, 6}));
  std::array<uint32_t, 3> array{10, 11, 12};
  copier.copy(device, array);
  CHECK(arrives({10, 11, 12}));
  uint32_t raw[] = {13, 14, 15};
  copier.copy(device, raw);
  CHECK(arrives({13, 14, 15}));
  copier.copy(array, device);
  CHECK(array == std::array<uint32_t, 3>{13, 14, 15});
  copier.copy(raw, device);
  CHECK(raw[2] == 15);
  CHECK(contains(error_of<Error>([&] { copier.copy(device, std::span(vector).first(2)); }),
                 "8 bytes"));
}

TEST_CASE_METHOD(OnDevice, "copies arrive on every path, and each path is counted", "[copier]") {
  Copier copier{gpu};
  const size_t count = GENERATE(size_t{1}, size_t{1000}, size_t{65536}, size_t{600001});
  CAPTURE(count);
  DeviceBuffer<uint32_t> device{gpu, count};
  PinnedBuffer<uint32_t> pinned{gpu, count}, back{gpu, count};
  std::iota(pinned.begin(), pinned.end(), 17u);
  const size_t bytes = count * 4;

  SECTION("pinned") {
    const Counters before = Counters::now();
    copier.copy(device, pinned);
    copier.copy(back, device);
    const Counters spent = Counters::now() - before;
    CHECK(std::equal(pinned.begin(), pinned.end(), back.begin()));
    CHECK(spent.copies_pinned == 2);
    CHECK(spent.bytes_to_device == bytes);
    CHECK(spent.bytes_to_host == bytes);
    CHECK(spent.bytes_staged + spent.pins + spent.copies_staged == 0);
  }
  SECTION("staged") {
    const std::vector<uint32_t> source(pinned.begin(), pinned.end());
    std::vector<uint32_t> result(count);
    const Counters before = Counters::now();
    Streams streams(gpu, {.copies = {.stage_bytes = SIZE_MAX}});
    Stream stream(streams);
    stream.copy(device, source);
    stream.copy(result, device);
    stream.synchronize();
    const Counters spent = Counters::now() - before;
    CHECK(result == source);
    CHECK(spent.copies_staged == 2);
    CHECK(spent.bytes_staged == 2 * bytes);
    CHECK(spent.pins + spent.copies_pinned == 0);
  }
  SECTION("pinned for one copy") {
    const std::vector<uint32_t> source(pinned.begin(), pinned.end());
    std::vector<uint32_t> result(count);
    const Counters before = Counters::now();
    Streams streams(gpu, {.copies = {.stage_bytes = 0}});
    Stream stream(streams);
    stream.copy(device, source);
    stream.copy(result, device);
    stream.synchronize();
    const Counters spent = Counters::now() - before;
    CHECK(result == source);
    CHECK(spent.copies_pinned_for_once == 2);
    CHECK(spent.pins == 2);
    CHECK(spent.unpins == 2);
    CHECK(spent.bytes_staged == 0);
  }
  SECTION("automatic: staged when small, pinned when large") {
    std::vector<uint32_t> source(pinned.begin(), pinned.end());
    const Counters before = Counters::now();
    copier.copy(device, source);
    const Counters spent = Counters::now() - before;
    CHECK(spent.copies_staged == (bytes <= CopyLimits{}.stage_bytes ? 1 : 0));
    CHECK(spent.pins == (bytes <= CopyLimits{}.stage_bytes ? 0 : 1));
  }
}

TEST_CASE_METHOD(OnDevice, "a copy between buffers of different size is refused", "[copier]") {
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> device{gpu, 10};
  const PinnedBuffer<uint32_t> pinned{gpu, 11};
  CHECK(contains(error_of<Error>([&] { copier.copy(device, pinned); }),
                 "a copy of 44 bytes: a target of 40 bytes"));
}

TEST_CASE_METHOD(OnDevice, "device buffers are filled and copied on the device", "[copier]") {
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> a{gpu, 5000}, b{gpu, 5000};
  const PinnedBuffer<uint32_t> back{gpu, 5000};
  copier.fill(a, 0xfeedf00d);
  copier.copy(b, a);
  copier.copy(back, b);
  for (const uint32_t word : back) {
    if (word != 0xfeedf00d) FAIL("found " << word);
  }
}

TEST_CASE_METHOD(OnDevice, "copies need no hardware queue, and the first fill takes one",
                 "[copier]") {
  Copier copier{gpu};
  const DeviceBuffer<uint32_t> a{gpu, 100}, b{gpu, 100};
  std::vector<uint32_t> host(100, 3), back(100);
  const Counters before = Counters::now();
  const auto queues = [&] { return (Counters::now() - before).kernarg_allocations; };
  copier.copy(a, host);
  copier.copy(b, a);
  copier.copy(back, b);
  CHECK(back == host);
  CHECK(queues() == 0);
  copier.fill(b, 4u);
  CHECK(queues() == 1);
  copier.fill(a, uint8_t{5});
  copier.copy(back, b);
  CHECK(back == std::vector<uint32_t>(100, 4));
  copier.copy(back, a);
  CHECK(back == std::vector<uint32_t>(100, 0x05050505));
  CHECK(queues() == 1);
}
