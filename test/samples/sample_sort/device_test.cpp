// The GPU's part of sample_sort, compared with std::sort.
#include <algorithm>
#include <random>
#include <vector>

#include "samples/sample_sort/gpu_sorter.hpp"
#include "test/support/catch.hpp"
#include "test/support/on_device.hpp"

using namespace uptempo;
using namespace uptempo::sample_sort;

namespace {

using Keys = std::vector<uint32_t>;

Keys sorted(Keys keys) {
  std::ranges::sort(keys);
  return keys;
}

void finish(const Work& work) {
  work.end.wait();
  REQUIRE(work.ready());
  CHECK(work.interval().begin_ns <= work.interval().end_ns);
}

}  // namespace

TEST_CASE("a chunk of any length is sorted in place, and nothing beside it is written") {
  const test::OnDevice device;
  GpuSorter sorter(device.gpu, 5000, 1);
  std::mt19937 random(5);
  for (const size_t length : {0u, 1u, 2u, 511u, 512u, 513u, 4097u, 5000u}) {
    CAPTURE(length);
    const PinnedBuffer<uint32_t> memory(device.gpu, length + 2);
    std::ranges::generate(memory.span(), [&] { return static_cast<uint32_t>(random()); });
    if (length > 2) memory[2] = UINT32_MAX;  // equal to the padding
    Keys expected(memory.begin(), memory.end());
    std::sort(expected.begin() + 1, expected.end() - 1);
    finish(sorter.sort(memory.span().subspan(1, length)));
    CHECK(std::ranges::equal(memory.span(), expected));
  }
}

TEST_CASE("runs of any length are merged, also if more arrive than expected, twice in a row") {
  const test::OnDevice device;
  GpuSorter sorter(device.gpu, 512, 1000);  // the memory grows in the second round and later
  std::mt19937 random(6);
  for (const uint32_t limit : {1000000u, 3u}) {
    MergeTree tree;
    Keys all;
    for (const std::vector<int>& lengths :
         {std::vector{100, 0, 700}, {1, 2, 2049}, {0, 0, 0}, {3000, 5, 1}, {0, 8, 0}}) {
      Keys arrived;
      for (const int length : lengths) {
        Keys run(static_cast<size_t>(length));
        std::ranges::generate(run, [&] { return static_cast<uint32_t>(random()) % limit; });
        run = sorted(std::move(run));
        arrived.insert(arrived.end(), run.begin(), run.end());
      }
      const PinnedBuffer<uint32_t> pinned(device.gpu, arrived.size() + 1);
      std::ranges::copy(arrived, pinned.begin());
      const uint64_t first = tree.keys();
      const std::vector<Merge> merges = tree.add_round(lengths);
      Event copied;
      const Work work = sorter.merge(pinned.span().first(arrived.size()), first, merges, copied);
      copied.wait();
      std::ranges::fill(pinned.span(), 0);
      finish(work);
      all.insert(all.end(), arrived.begin(), arrived.end());
    }
    const PinnedBuffer<uint32_t> result(device.gpu, all.size() + 1);
    result[all.size()] = 42;
    const std::vector<Merge> merges = tree.finish();
    finish(sorter.merge_to(result.span().first(all.size()), tree.side(), merges));
    CHECK(std::ranges::equal(result.span().first(all.size()), sorted(all)));
    CHECK(result[all.size()] == 42);
  }
}

TEST_CASE("the device's clock is that of the intervals") {
  const test::OnDevice device;
  GpuSorter sorter(device.gpu, 512, 1);
  const PinnedBuffer<uint32_t> keys(device.gpu, 512);
  std::ranges::fill(keys.span(), 1);
  const int64_t before = sorter.now_ns();
  const Work work = sorter.sort(keys.span());
  finish(work);
  const int64_t after = sorter.now_ns();
  CHECK(before <= work.interval().begin_ns);
  CHECK(work.interval().end_ns <= after);
}
