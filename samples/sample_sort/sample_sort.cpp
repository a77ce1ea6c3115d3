#include "sample_sort.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "splitters.hpp"

namespace uptempo::sample_sort {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Room for more than the expected keys: samples only estimate.
uint64_t with_reserve(uint64_t keys) { return keys + keys / 4 + 1024; }

// Divides the time since its construction among the phases.
class PhaseClock {
 public:
  void enter(Phase phase) {
    if (phase == phase_) return;
    end();
    phase_ = phase;
  }
  void end() {
    const int64_t now = now_ns();
    intervals_[static_cast<size_t>(phase_)].push_back({.begin_ns = since_, .end_ns = now});
    since_ = now;
  }
  const std::vector<Interval>& intervals(Phase phase) const {
    return intervals_[static_cast<size_t>(phase)];
  }
  // Until the last end().
  double total_seconds() const { return static_cast<double>(since_ - begin_) * 1e-9; }

 private:
  const int64_t begin_ = now_ns();
  int64_t since_ = begin_;
  Phase phase_ = Phase::sample;
  std::vector<Interval> intervals_[kPhases];
};

}  // namespace

// The state of one sort. Each function starts or finishes what has become possible, and returns
// whether there was anything.
class SampleSort::Rounds {
 public:
  explicit Rounds(SampleSort& sort) : sort_(sort), count_(sort.workload_.rounds) {
    for (std::vector<int>* each : {&received_, &next_received_}) each->resize(sort.ranks_.size());
  }

  // The device has the next chunk when it finishes one.
  bool start_sorting() {
    if (sorts_.size() == count_ || sorts_.size() == sorted_ + 2) return false;
    sorts_.push_back(sort_.sorter_.sort(sort_.chunk(static_cast<uint32_t>(sorts_.size()))));
    return true;
  }
  bool finish_sorting() {
    if (sorted_ == sorts_.size() || !sorts_[sorted_].ready()) return false;
    ++sorted_;
    return true;
  }

  // All ranks start their exchanges in the same order: counts, keys, counts, keys. The counts of a
  // round may be outstanding beside the keys of the round before.
  bool start_counting(std::span<const Sample> splitters) {
    if (counted_ == sorted_ || counted_ != keys_started_ || counting_) return false;
    const auto round = static_cast<uint32_t>(counted_);
    next_sent_ =
        parts_of(sort_.chunk(round), sort_.place_of(round), sort_.ranks_.rank(), splitters);
    counts_request_ = sort_.ranks_.start_exchange(next_sent_, next_received_);
    counting_ = true;
    return true;
  }
  bool finish_counting() {
    if (!counting_ || !sort_.ranks_.done(counts_request_)) return false;
    counting_ = false;
    ++counted_;
    return true;
  }

  bool start_moving() {
    if (keys_started_ == counted_ || is_moving()) return false;
    const size_t slot = keys_started_ % 2;
    if (!copied_[slot].ready()) return false;
    // MPI uses these until the exchange is complete.
    sent_.swap(next_sent_);
    received_.swap(next_received_);
    sent_begins_ = displacements(sent_);
    received_begins_ = displacements(received_);
    PinnedBuffer<uint32_t>& arrivals = sort_.arrivals_[slot];
    if (arrivals.size() < sum_of(received_))
      arrivals = PinnedBuffer<uint32_t>(sort_.gpu_, with_reserve(sum_of(received_)));
    keys_request_ =
        sort_.ranks_.start_exchange(sort_.chunk(static_cast<uint32_t>(keys_started_)), sent_,
                                    sent_begins_, arrivals.span(), received_, received_begins_);
    ++keys_started_;
    return true;
  }
  bool finish_moving() {
    if (!is_moving() || !sort_.ranks_.done(keys_request_)) return false;
    const size_t slot = moved_ % 2;
    const uint64_t first = tree_.keys();
    const std::vector<Merge> merges = tree_.add_round(received_);
    const std::span<const uint32_t> arrived{sort_.arrivals_[slot].data(), sum_of(received_)};
    merges_.push_back(sort_.sorter_.merge(arrived, first, merges, copied_[slot]));
    ++moved_;
    return true;
  }

  bool is_exchanging() const { return counting_ || is_moving(); }
  bool is_moving() const { return moved_ < keys_started_; }
  bool has_moved_all() const { return moved_ == count_; }
  // Keys wait until the copy of an earlier round has left their room.
  bool waits_for_room() const { return keys_started_ < counted_; }

  // Puts the last merges on the device. Returns the keys of the result.
  uint64_t start_finish() {
    const std::vector<Merge> merges = tree_.finish();
    if (sort_.result_.size() < tree_.keys())
      sort_.result_ = PinnedBuffer<uint32_t>(sort_.gpu_, with_reserve(tree_.keys()));
    merges_.push_back(
        sort_.sorter_.merge_to({sort_.result_.data(), tree_.keys()}, tree_.side(), merges));
    return tree_.keys();
  }
  bool is_finished() const { return merges_.back().ready(); }

  const std::vector<Work>& sorts() const { return sorts_; }
  const std::vector<Work>& merges() const { return merges_; }

 private:
  SampleSort& sort_;
  const size_t count_;
  MergeTree tree_;
  std::vector<Work> sorts_, merges_;
  size_t sorted_ = 0, counted_ = 0, keys_started_ = 0, moved_ = 0;  // rounds that have got so far
  bool counting_ = false;
  MPI_Request counts_request_ = MPI_REQUEST_NULL, keys_request_ = MPI_REQUEST_NULL;
  std::vector<int> next_sent_, next_received_;
  std::vector<int> sent_, received_, sent_begins_, received_begins_;
  Event copied_[2];
};

SampleSort::SampleSort(Communicator& ranks, const Agent& gpu, const Workload& workload)
    : ranks_(ranks),
      gpu_(gpu),
      workload_(workload),
      share_(share_of(workload.total, ranks.size(), ranks.rank(), workload.uneven)),
      sorter_(gpu, workload.chunk, with_reserve(workload.total / ranks.size())),
      keys_(gpu, std::max<uint64_t>(share_.count, 1)),
      result_(gpu, with_reserve(workload.total / ranks.size())),
      arrivals_{{gpu, with_reserve(workload.chunk)}, {gpu, with_reserve(workload.chunk)}} {}

Range SampleSort::place_of(uint32_t round) const noexcept {
  const uint64_t first = std::min(round * workload_.chunk, share_.count);
  return {.first = first, .count = std::min(workload_.chunk, share_.count - first)};
}

std::span<uint32_t> SampleSort::chunk(uint32_t round) const noexcept {
  const Range place = place_of(round);
  return keys_.span().subspan(place.first, place.count);
}

RankTimes SampleSort::run(bool fails) {
  const std::span<uint32_t> keys = keys_.span().first(share_.count);
  generate(workload_.distribution, workload_.seed, workload_.total, share_, keys);
  input_ = checksum(keys);
  Rounds rounds(*this);
  Event fault;
  const int64_t device_minus_host_ns = sorter_.now_ns() - now_ns();
  ranks_.barrier();

  PhaseClock clock;
  // Before the first chunk is sorted in place.
  const std::vector<Sample> samples =
      take_samples(keys, workload_.total, ranks_.size(), ranks_.rank(), workload_.seed);
  while (rounds.start_sorting()) {
  }
  const std::vector<Sample> splitters =
      choose_splitters(ranks_.gather_all(std::span<const Sample>(samples)), ranks_.size());

  while (!rounds.has_moved_all()) {
    clock.enter(rounds.is_exchanging()    ? Phase::exchange
                : rounds.waits_for_room() ? Phase::merge
                                          : Phase::sort);
    bool advanced = rounds.finish_sorting();
    advanced |= rounds.start_sorting();
    advanced |= rounds.start_counting(splitters);
    advanced |= rounds.finish_counting();
    const bool started = rounds.start_moving();
    if (started && fails) fault = sorter_.fault();
    fails = fails && !started;
    advanced |= started;
    advanced |= rounds.finish_moving();
    static_cast<void>(fault.ready());  // throws when the device has failed
    if (!advanced) {
      ranks_.progress();
      ranks_.idle();
    }
  }
  clock.enter(Phase::merge);
  result_keys_ = rounds.start_finish();
  while (!rounds.is_finished()) {
    ranks_.progress();
    ranks_.idle();
  }
  clock.end();

  RankTimes times;
  times.total = clock.total_seconds();
  times.received = static_cast<double>(result_keys_);
  for (size_t i = 0; i < kPhases; ++i)
    times.phases[i] = seconds_of(clock.intervals(static_cast<Phase>(i)));
  const auto intervals_of = [&](const std::vector<Work>& works) {
    std::vector<Interval> intervals;
    for (const Work& work : works) {
      const Interval device = work.interval();
      intervals.push_back({.begin_ns = device.begin_ns - device_minus_host_ns,
                           .end_ns = device.end_ns - device_minus_host_ns});
    }
    return united(std::move(intervals));
  };
  std::vector<Interval> busy = intervals_of(rounds.sorts());
  const std::vector<Interval> merging = intervals_of(rounds.merges());
  times.device_sorting = seconds_of(busy);
  times.device_merging = seconds_of(merging);
  busy.insert(busy.end(), merging.begin(), merging.end());
  busy = united(std::move(busy));
  times.device_busy = seconds_of(busy);
  times.overlap = seconds_of(common(busy, clock.intervals(Phase::exchange)));
  return times;
}

bool SampleSort::is_right() {
  struct Ends {
    uint64_t count;
    uint32_t first, last;
  };
  const std::span<const uint32_t> keys = result();
  const Ends own{.count = keys.size(),
                 .first = keys.empty() ? 0 : keys.front(),
                 .last = keys.empty() ? 0 : keys.back()};
  const Checksum output = checksum(keys);
  const std::vector<uint64_t> sums =
      ranks_.sums({input_.count, input_.sum, input_.mixed_sum, output.count, output.sum,
                   output.mixed_sum, std::ranges::is_sorted(keys) ? 0u : 1u});
  bool right = std::equal(sums.begin(), sums.begin() + 3, sums.begin() + 3) && sums[6] == 0 &&
               sums[0] == workload_.total;
  uint32_t last = 0;
  for (const Ends& each : ranks_.gather_all(std::span<const Ends>(&own, 1))) {
    if (each.count == 0) continue;
    right = right && last <= each.first;
    last = each.last;
  }
  return right;
}

}  // namespace uptempo::sample_sort
