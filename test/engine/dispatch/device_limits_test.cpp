// Numbers of options that no machine can serve are refused at once, with an Error that names the
// number, the limit and the option. Without the limits, these constructors allocate for minutes or
// throw std::bad_alloc.
#include <sys/mman.h>
#include <uptempo/uptempo.hpp>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "test/support/catch.hpp"
#include "test/support/errors.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace uptempo::test;

namespace {

constexpr uint32_t kHuge = UINT32_MAX;

void check_names(const std::string& error, const std::vector<std::string>& words) {
  CAPTURE(error);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(contains(error, word));
  }
}

}  // namespace

TEST_CASE_METHOD(OnDevice, "queues refuse more signals than the limit", "[limits]") {
  for (const uint32_t many : {65'537u, kHuge}) {
    const std::vector<std::string> named{std::to_string(many) + " interrupt signals",
                                         "at most 65536", "QueueOptions::publications"};
    const QueueOptions options{.publications = many};
    check_names(error_of<Error>([&] { const Queue queue(gpu, options); }), named);
    check_names(error_of<Error>([&] { (void)SharedQueue(gpu, options).producer(); }), named);
    StreamsOptions of_streams;
    of_streams.queue = options;
    check_names(error_of<Error>([&] { Streams(gpu, of_streams).default_stream(); }), named);
  }
  for (const uint32_t many : {1'048'577u, kHuge})
    check_names(error_of<Error>([&] { const Queue queue(gpu, {.timing_signals = many}); }),
                {std::to_string(many) + " timing signals", "at most 1048576",
                 "QueueOptions::timing_signals"});
}

TEST_CASE_METHOD(OnDevice, "streams refuse copy limits beyond reason", "[limits]") {
  const std::vector<uint32_t> from(1 << 16);
  const DeviceBuffer<uint32_t> to(gpu, from.size());
  const auto copy = [&](const CopyLimits& limits) {
    return error_of<Error>([&] {
      Streams streams(gpu, {.copies = limits});
      streams.default_stream().copy(to, std::span(from));
    });
  };
  check_names(copy({.engine_copies = kHuge}),
              {"4294967295 interrupt signals", "at most 65536", "CopyLimits::engine_copies"});
  check_names(copy({.engine_copies = 0}), {"no copy at a time", "at least one"});
  check_names(copy({.staging_bytes = 8 << 20, .piece_bytes = 1}),
              {"8388608 pieces", "at most 65536", "CopyLimits::piece_bytes"});
}

TEST_CASE_METHOD(OnDevice, "a recording refuses more spare bytes than the limit", "[limits]") {
  Queue queue(gpu);
  for (const size_t many : {(size_t{256} << 20) + 1, SIZE_MAX})
    check_names(
        error_of<Error>([&] { const Recording recording(queue, {.spare_kernarg_bytes = many}); }),
        {std::to_string(many) + " spare bytes", "at most 268435456",
         "RecordingOptions::spare_kernarg_bytes"});
}

TEST_CASE_METHOD(OnDevice, "an allocation that the limit of mappings refuses names it",
                 "[limits]") {
  size_t most = 0;
  REQUIRE((std::ifstream("/proc/sys/vm/max_map_count") >> most));
  if (most > 2'000'000) return;  // the driver's limit of buffers comes first
  // Pages of alternating protection are mappings of their own. Some are left for the test.
  const size_t page = 4096, pages = most - 1000;
  void* const all = mmap(nullptr, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(all != MAP_FAILED);
  for (size_t i = 0; i < pages; i += 2)
    mprotect(static_cast<std::byte*>(all) + i * page, page, PROT_NONE);
  std::string error;
  {
    std::vector<PinnedBuffer<std::byte>> buffers;
    error = error_of<Error>([&] {
      while (buffers.size() < 2000) buffers.emplace_back(gpu, page);
    });
  }
  REQUIRE(munmap(all, pages * page) == 0);
  check_names(error, {"of at most " + std::to_string(most), "vm.max_map_count"});
  const PinnedBuffer<std::byte> again(gpu, page);
}
