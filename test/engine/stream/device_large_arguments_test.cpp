// Kernarg segments of 4 KiB to 128 KiB through streams, on a device: kernels read the last byte
// after a long delay.
#include <uptempo/kernels/large_arguments.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

template <size_t Segment>
using Rest = std::array<uint8_t, Segment - 16>;

// The pattern of a launch's arguments: bytes 64 KiB apart differ, and so do those of different
// launches.
template <size_t Segment>
void fill(Rest<Segment>& arguments, uint32_t number) {
  std::fill(arguments.begin(), arguments.end(), static_cast<uint8_t>(number));
  arguments.front() = static_cast<uint8_t>(100 + number);
  for (size_t i = 0; i < 4; ++i)
    arguments[arguments.size() - 4 + i] = static_cast<uint8_t>(200 + 7 * i + number % 8);
}
uint32_t last_word(uint32_t number) {
  const uint32_t n = number % 8;
  return (200 + n) | (207 + n) << 8 | (214 + n) << 16 | (221 + n) << 24;
}

template <size_t Segment>
void check(const Agent& gpu) {
  const Program program{gpu, builtin_kernels::large_arguments()};
  const auto kernel = program.kernel<uint32_t*, uint64_t, Rest<Segment>>("last_bytes_of_" +
                                                                         std::to_string(Segment));
  CAPTURE(kernel.name());
  Streams streams(gpu, {.hardware_queues = 2,
                        .queue = {.kernarg_bytes = 8 << 20, .kernarg_slab_bytes = 128 << 10}});
  std::deque<Stream> all;
  for (int i = 0; i < 3; ++i) all.emplace_back(streams);
  constexpr uint32_t launches = 24;
  const PinnedBuffer<uint32_t> out{gpu, 3 * launches};
  std::fill(out.begin(), out.end(), 0u);
  const auto arguments = std::make_unique<Rest<Segment>>();
  for (uint32_t i = 0; i < launches; ++i) {
    fill<Segment>(*arguments, i);
    all[i % all.size()].launch(kernel, Grid{1}, out.data() + 3 * i, uint64_t{20'000}, *arguments);
    // The caller may reuse it at once, while this launch and others are in flight.
    std::fill(arguments->begin(), arguments->end(), uint8_t{0});
  }
  for (Stream& stream : all) stream.synchronize();
  for (uint32_t i = 0; i < launches; ++i) {
    CAPTURE(i);
    CHECK(out[3 * i] == last_word(i));
    CHECK(out[3 * i + 1] == (last_word(i) >> 24));
    CHECK(out[3 * i + 2] == 100 + i);
  }
  // No launch allocates.
  const uint64_t allocations = Counters::now().kernarg_allocations;
  for (uint32_t i = 0; i < 2; ++i) {
    fill<Segment>(*arguments, i);
    all[0].launch(kernel, Grid{1}, out.data() + 3 * i, uint64_t{0}, *arguments);
    all[0].synchronize();
    CHECK(out[3 * i] == last_word(i));
  }
  CHECK(Counters::now().kernarg_allocations == allocations);
}

}  // namespace

TEST_CASE_METHOD(test::OnDevice,
                 "streams pass kernarg segments of 4 KiB to 128 KiB to the last byte",
                 "[device][stream]") {
  check<4096 - 16>(gpu);
  check<64 * 1024>(gpu);
  check<127 * 1024 - 16>(gpu);
  check<128 * 1024 - 16>(gpu);
}

TEST_CASE_METHOD(test::OnDevice,
                 "arguments larger than a kernarg slab are refused with kernel, size and limit",
                 "[device][stream]") {
  const Program program{gpu, builtin_kernels::large_arguments()};
  const auto kernel = program.kernel<uint32_t*, uint64_t, Rest<65536>>("last_bytes_of_65536");
  Streams streams(gpu);
  Stream stream(streams);
  const PinnedBuffer<uint32_t> out{gpu, 3};
  const auto arguments = std::make_unique<Rest<65536>>();
  Launcher launcher(streams, kernel);
  const auto check_refusal = [&](auto&& launch) {
    const std::string text = test::error_of<Error>(launch);
    CAPTURE(text);
    CHECK(test::contains(text, "kernel 'last_bytes_of_65536', whose arguments take 65536 bytes"));
    CHECK(test::contains(text, "kernarg slabs of 16384 bytes"));
  };
  check_refusal([&] { stream.launch(kernel, Grid{1}, out.data(), uint64_t{0}, *arguments); });
  check_refusal([&] { launcher.launch(stream, Grid{1}, out.data(), uint64_t{0}, *arguments); });
}
