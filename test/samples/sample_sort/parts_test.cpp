// The parts of sample_sort that need neither MPI nor a device, compared with std::sort.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "samples/sample_sort/intervals.hpp"
#include "samples/sample_sort/keys.hpp"
#include "samples/sample_sort/merge_plan.hpp"
#include "samples/sample_sort/splitters.hpp"
#include "test/support/catch.hpp"
#include "test/support/errors.hpp"

using namespace uptempo::sample_sort;

namespace {

using Keys = std::vector<uint32_t>;

Keys keys_of(Distribution distribution, uint64_t total, Range share) {
  Keys keys(share.count);
  generate(distribution, 7, total, share, keys);
  return keys;
}

Keys sorted(Keys keys) {
  std::ranges::sort(keys);
  return keys;
}

struct Rank {
  Keys input;
  Keys received;
};

// Sample, splitters and exchange as the program does them, on one host thread.
std::vector<Rank> exchanged(Distribution distribution, uint64_t total, uint32_t count, bool uneven,
                            uint64_t chunk) {
  std::vector<Rank> ranks(count);
  std::vector<Sample> samples;
  for (uint32_t r = 0; r < count; ++r) {
    ranks[r].input = keys_of(distribution, total, share_of(total, count, r, uneven));
    const std::vector<Sample> own = take_samples(ranks[r].input, total, count, r, 3);
    samples.insert(samples.end(), own.begin(), own.end());
  }
  const std::vector<Sample> splitters = choose_splitters(samples, count);
  REQUIRE(splitters.size() == count - 1);
  REQUIRE(std::ranges::is_sorted(splitters));
  for (uint32_t r = 0; r < count; ++r) {
    const Keys& input = ranks[r].input;
    for (uint64_t first = 0; first < input.size(); first += chunk) {
      const uint64_t size = std::min(chunk, input.size() - first);
      const auto begin = input.begin() + static_cast<ptrdiff_t>(first);
      const Keys keys = sorted(Keys(begin, begin + static_cast<ptrdiff_t>(size)));
      const std::vector<int> parts = parts_of(keys, {.first = first, .count = size}, r, splitters);
      REQUIRE(parts.size() == count);
      REQUIRE(std::ranges::all_of(parts, [](int part) { return part >= 0; }));
      REQUIRE(sum_of(parts) == size);
      const std::vector<int> begins = displacements(parts);
      for (uint32_t to = 0; to < count; ++to)
        ranks[to].received.insert(ranks[to].received.end(), keys.begin() + begins[to],
                                  keys.begin() + begins[to] + parts[to]);
    }
  }
  return ranks;
}

// Executes merges on the host.
void execute(std::span<const Merge> merges, Keys (&sides)[2]) {
  for (const Merge& each : merges) {
    const auto left = sides[each.from].begin() + static_cast<ptrdiff_t>(each.first);
    const auto right = left + static_cast<ptrdiff_t>(each.left);
    std::merge(left, right, right, right + static_cast<ptrdiff_t>(each.right),
               sides[1 - each.from].begin() + static_cast<ptrdiff_t>(each.first));
  }
}

}  // namespace

TEST_CASE("the shares of all ranks are all positions, even and uneven") {
  for (const bool uneven : {false, true})
    for (const uint64_t total : {0u, 1u, 3u, 1000u, 1000003u})
      for (const uint32_t ranks : {1u, 2u, 3u, 4u, 16u}) {
        CAPTURE(uneven, total, ranks);
        uint64_t next = 0;
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          const Range share = share_of(total, ranks, rank, uneven);
          CHECK(share.first == next);
          next += share.count;
          if (!uneven) CHECK(share.count <= total / ranks + 1);
        }
        CHECK(next == total);
      }
  CHECK(share_of(1000, 4, 0, true).count == 0);
  CHECK(share_of(1000, 4, 3, true).count == 500);
}

TEST_CASE("a key depends on its position, and not on the division among ranks") {
  for (const DistributionInfo& info : kDistributions) {
    CAPTURE(info.name);
    CHECK(name_of(info.value) == std::string(info.name));
    const Keys all = keys_of(info.value, 1000, {.first = 0, .count = 1000});
    const Keys part = keys_of(info.value, 1000, {.first = 600, .count = 300});
    CHECK(std::equal(part.begin(), part.end(), all.begin() + 600));
  }
  const Range all{.first = 0, .count = 5000};
  CHECK(std::ranges::is_sorted(keys_of(Distribution::sorted, 5000, all)));
  CHECK(std::ranges::is_sorted(keys_of(Distribution::reverse, 5000, all), std::greater{}));
  const Keys equal = keys_of(Distribution::equal, 5000, all);
  CHECK(std::ranges::count(equal, equal.front()) == 5000);
  const Keys skewed = keys_of(Distribution::skewed, 5000, all);
  // ln 2 / ln 2^20 = 5 % of the keys are 1.
  CHECK(std::ranges::count(skewed, 1u) > 150);
  CHECK(std::ranges::count(skewed, 1u) < 400);
}

TEST_CASE("checksums of parts add up, and a changed or missing key changes them") {
  Keys keys = keys_of(Distribution::uniform, 1000, {.first = 0, .count = 1000});
  const Checksum all = checksum(keys);
  const Checksum a = checksum(std::span(keys).first(300)),
                 b = checksum(std::span(keys).subspan(300));
  CHECK(all == Checksum{.count = a.count + b.count,
                        .sum = a.sum + b.sum,
                        .mixed_sum = a.mixed_sum + b.mixed_sum});
  CHECK(checksum(sorted(keys)) == all);
  ++keys[0];
  --keys[1];  // same sum
  CHECK(checksum(keys).sum == all.sum);
  CHECK_FALSE(checksum(keys) == all);
  CHECK_FALSE(checksum(std::span(keys).first(999)) == all);
}

TEST_CASE("each sample is a key of its part of the input, and large ranks take more samples") {
  const Keys keys = keys_of(Distribution::uniform, 8000, {.first = 0, .count = 8000});
  const std::vector<Sample> samples = take_samples(keys, 16000, 2, 1, 5);
  CHECK(samples.size() == kSamplesPerRank + 1);
  for (size_t i = 0; i < samples.size(); ++i) {
    CHECK(samples[i].rank == 1);
    CHECK(samples[i].key == keys[samples[i].position]);
    if (i > 0) CHECK(samples[i - 1].position < samples[i].position);
  }
  CHECK(take_samples(keys, 8000 * 8, 8, 0, 5).size() == kSamplesPerRank + 1);
  CHECK(take_samples(std::span(keys).first(10), 20, 2, 0, 5).size() == 10);
  CHECK(take_samples({}, 20, 2, 0, 5).empty());
  CHECK(choose_splitters({}, 4).size() == 3);
}

TEST_CASE("after the exchange the ranks hold the sorted keys in rank order, evenly") {
  for (const DistributionInfo& info : kDistributions)
    for (const uint32_t count : {1u, 4u, 7u})
      for (const bool uneven : {false, true}) {
        CAPTURE(info.name, count, uneven);
        constexpr uint64_t total = 60000;
        Keys all, result;
        for (Rank& rank : exchanged(info.value, total, count, uneven, 4096)) {
          all.insert(all.end(), rank.input.begin(), rank.input.end());
          // Seven standard deviations of the sampling.
          CHECK(static_cast<double>(rank.received.size()) <= 1.22 * total / count);
          const Keys part = sorted(std::move(rank.received));
          result.insert(result.end(), part.begin(), part.end());
        }
        CHECK(result == sorted(std::move(all)));
      }
}

TEST_CASE("fewer keys than ranks, and none at all, are exchanged, too") {
  for (const uint64_t total : {0u, 1u, 3u, 7u}) {
    Keys all, result;
    for (Rank& rank : exchanged(Distribution::uniform, total, 5, total == 7, 2)) {
      all.insert(all.end(), rank.input.begin(), rank.input.end());
      const Keys part = sorted(std::move(rank.received));
      result.insert(result.end(), part.begin(), part.end());
    }
    CHECK(result == sorted(std::move(all)));
  }
}

TEST_CASE("a splitter divides equal keys by rank, then by position") {
  const Keys chunk{1, 5, 5, 5, 5, 9};
  const std::vector<Sample> splitters{{.key = 5, .rank = 2, .position = 103}};
  const Range place{.first = 100, .count = 6};
  CHECK(parts_of(chunk, place, 1, splitters) == std::vector<int>{5, 1});
  CHECK(parts_of(chunk, place, 3, splitters) == std::vector<int>{1, 5});
  CHECK(parts_of(chunk, place, 2, splitters) == std::vector<int>{3, 3});  // half of the positions
  CHECK(parts_of(chunk, {.first = 103, .count = 6}, 2, splitters) == std::vector<int>{1, 5});
  CHECK(parts_of(chunk, {.first = 90, .count = 6}, 2, splitters) == std::vector<int>{5, 1});
  CHECK(parts_of({}, {}, 2, splitters) == std::vector<int>{0, 0});
}

TEST_CASE("displacements are the sums of the counts before, and MPI's limit is an error") {
  CHECK(displacements(std::vector{3, 0, 4, 1}) == std::vector{0, 3, 3, 7});
  CHECK(displacements({}).empty());
  const int most = std::numeric_limits<int>::max();
  CHECK(displacements(std::vector{most, 0}) == std::vector{0, most});
  CHECK(uptempo::test::error_of<std::overflow_error>([&] {
          displacements(std::vector{most, 1});
        }) ==
        "one exchange would deliver 2147483648 keys to one rank, but MPI counts at "
        "most 2147483647: use more --rounds or fewer --keys");
}

TEST_CASE("merging as planned leaves one sorted run, for any number and length of runs") {
  std::mt19937 random(11);
  for (const uint32_t rounds : {1u, 2u, 3u, 4u, 7u, 8u})
    for (const uint32_t runs : {1u, 2u, 3u, 4u, 16u}) {
      CAPTURE(rounds, runs);
      MergeTree tree;
      Keys sides[2], all;
      for (uint32_t round = 0; round < rounds; ++round) {
        std::vector<int> lengths(runs);
        for (int& length : lengths) length = static_cast<int>(random() % 3 * (random() % 50));
        Keys arrived;
        for (const int length : lengths) {
          Keys run(static_cast<size_t>(length));
          std::ranges::generate(run, [&] { return random() % 1000; });
          run = sorted(std::move(run));
          arrived.insert(arrived.end(), run.begin(), run.end());
        }
        all.insert(all.end(), arrived.begin(), arrived.end());
        sides[0].insert(sides[0].end(), arrived.begin(), arrived.end());
        sides[1].resize(sides[0].size(), 0xdeadbeef);
        execute(tree.add_round(lengths), sides);
        CHECK(tree.keys() == all.size());
      }
      execute(tree.finish(), sides);
      CHECK(sides[tree.side()] == sorted(all));
    }
}

TEST_CASE("equal rounds need log2 merges of each key, and no copies") {
  MergeTree tree;
  uint64_t merged = 0, copied = 0;
  const auto count = [&](const std::vector<Merge>& merges) {
    for (const Merge& each : merges) {
      merged += each.left + each.right;
      if (each.right == 0) copied += each.left;
    }
  };
  const std::vector<int> lengths(8, 100);
  for (int round = 0; round < 4; ++round) count(tree.add_round(lengths));
  CHECK(tree.finish().empty());
  CHECK(merged == 3200 * 5);  // 32 runs
  CHECK(copied == 0);
}

TEST_CASE("intervals are united and intersected") {
  using Intervals = std::vector<Interval>;
  CHECK(united({{5, 9}, {1, 3}, {2, 4}, {4, 5}, {20, 20}, {30, 29}}) == Intervals{{1, 9}});
  CHECK(united({{5, 6}, {1, 3}}) == Intervals{{1, 3}, {5, 6}});
  CHECK(common(Intervals{{0, 10}, {20, 30}}, Intervals{{5, 22}, {25, 26}, {40, 50}}) ==
        Intervals{{5, 10}, {20, 22}, {25, 26}});
  CHECK(common(Intervals{{0, 10}}, {}).empty());
  CHECK(seconds_of(Intervals{{0, 500000000}, {1000000000, 1500000000}}) == 1.0);
}
