// Kernarg segments of up to 128 KiB - 16: the compiler's layout, the loader, and the device, which
// reads the last byte late.
#include <uptempo/kernels/large_arguments.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>

#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;

namespace {

// The rest of the segment, after the address of the result and the number of rounds.
template <size_t Segment>
using Rest = std::array<uint8_t, Segment - 16>;

template <size_t Segment>
void check(const Runtime& runtime) {
  const Agent gpu = runtime.gpu();
  const Program program{gpu, builtin_kernels::large_arguments()};
  const auto kernel = program.kernel<uint32_t*, uint64_t, Rest<Segment>>("last_bytes_of_" +
                                                                         std::to_string(Segment));
  CAPTURE(kernel.name());
  REQUIRE(kernel.info().arguments.size_bytes() == Segment);
  CHECK(kernel.info().arguments.offset(2) == 16);
  CHECK(kernel.info().private_segment_size == 0);

  // An offset or size truncated to 16 bits makes the kernel read another value: the bytes at
  // multiples of 64 KiB before it are different.
  const auto arguments = std::make_unique<Rest<Segment>>();
  std::mt19937 random(static_cast<uint32_t>(Segment));
  std::generate(arguments->begin(), arguments->end(),
                [&] { return static_cast<uint8_t>(random() % 200); });
  arguments->front() = 201;
  for (size_t i = 0; i < 4; ++i)
    (*arguments)[arguments->size() - 4 + i] = static_cast<uint8_t>(211 + i);

  Queue queue{gpu};
  BatchSubmitter batch{queue};
  const PinnedBuffer<uint32_t> out{gpu, 3};
  for (const uint64_t rounds : {uint64_t{0}, uint64_t{20'000}}) {
    std::fill(out.begin(), out.end(), 0u);
    const KernargBuffer block{gpu, Segment};
    batch.dispatch_at(block.span(), kernel, Grid{1}, out.data(), rounds, *arguments);
    batch.submit().wait();
    CHECK(out[0] == (211u | 212u << 8 | 213u << 16 | 214u << 24));
    CHECK(out[1] == 214);
    CHECK(out[2] == 201);
  }
}

}  // namespace

TEST_CASE_METHOD(test::OnDevice,
                 "a kernel reads the last byte of kernarg segments of 4 KiB to 128 KiB",
                 "[kernels]") {
  check<4096 - 16>(runtime);
  check<64 * 1024>(runtime);
  check<127 * 1024 - 16>(runtime);
  check<128 * 1024 - 16>(runtime);
}

TEST_CASE_METHOD(test::OnDevice, "the last byte is read after the delay, not before it",
                 "[kernels]") {
  const Program program{gpu, builtin_kernels::large_arguments()};
  constexpr size_t segment = 128 * 1024 - 16;
  const auto kernel = program.kernel<uint32_t*, uint64_t, Rest<segment>>("last_bytes_of_131056");
  const auto arguments = std::make_unique<Rest<segment>>();
  Queue queue{gpu};
  BatchSubmitter batch{queue};
  const PinnedBuffer<uint32_t> out{gpu, 3};
  const KernargBuffer block{gpu, segment};
  // The test deliberately changes the block while the kernel spins, against its contract. The delay
  // is long enough for this thread to run, unless other threads have its core: then it tries again.
  REQUIRE(test::eventually([&] {
    batch.dispatch_at(block.span(), kernel, Grid{1}, out.data(), uint64_t{10'000'000}, *arguments);
    const Completion completion = batch.submit();
    std::atomic_ref(block.data()[segment - 1]).store(std::byte{77}, std::memory_order_release);
    const bool in_time = !completion.ready();
    completion.wait();
    return in_time;
  }));
  CHECK(out[1] == 77);
}
