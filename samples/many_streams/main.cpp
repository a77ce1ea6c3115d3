// Cost of a launch on the default stream beside idle streams. The default stream has legacy order:
// work on it follows all earlier work on every blocking stream and precedes all later work on them.
// A runtime might therefore inspect each stream, or put a marker on each.
#include <dlfcn.h>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <vector>

using namespace uptempo;

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kElements = 256, kLaunches = 100, kFinishes = 20, kRounds = 3;

double ns_since(Clock::time_point begin, uint32_t times) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / times;
}

// A default stream beside a number of blocking streams, each of which has run work and is idle.
class Row {
 public:
  Row(const Agent& gpu, const Program& program, uint32_t idle_streams)
      : chain_(program.kernel<uint32_t*, uint32_t>("chain_increment")),
        values_(gpu, kElements),
        streams_(gpu, {.legacy_default = true}) {
    std::ranges::fill(values_.span(), 0u);
    for (uint32_t i = 0; i < idle_streams; ++i) launch(idle_.emplace_back(streams_), i);
    streams_.synchronize();
  }

  void measure() {
    Stream& stream = streams_.default_stream();
    Clock::time_point begin = Clock::now();
    for (uint32_t i = 0; i < kLaunches; ++i) launch(stream, i);
    launch_ns.push_back(ns_since(begin, kLaunches));
    streams_.synchronize();

    const Counters before = Counters::now();
    begin = Clock::now();
    for (uint32_t i = 0; i < kFinishes; ++i) {
      launch(stream, i);
      streams_.synchronize(WaitPolicy::active());
    }
    launch_sync_ns.push_back(ns_since(begin, kFinishes));
    packets += static_cast<double>((Counters::now() - before).packets) / kFinishes;
  }
  bool is_right() const { return std::ranges::count(values_.span(), expected_) == kElements; }

  std::vector<double> launch_ns, launch_sync_ns;  // of each round
  double packets = 0;                             // per launch and finish, summed over rounds

 private:
  void launch(Stream& stream, uint32_t addend) {
    stream.launch(chain_, Grid{kElements}.by(256), values_.data(), addend);
    expected_ = expected_ * 3 + addend;
    if (&stream == &streams_.default_stream()) return;
    streams_.synchronize();  // idle streams are not ordered among themselves
  }

  Kernel<uint32_t*, uint32_t> chain_;
  PinnedBuffer<uint32_t> values_;
  uint32_t expected_ = 0;
  Streams streams_;
  std::deque<Stream> idle_;
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + kRounds / 2);
  return values[kRounds / 2];
}

}  // namespace

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, builtin_kernels::workgroups_of_256()};
  constexpr std::array<uint32_t, 5> idle_streams{0, 1, 8, 32, 64};
  std::deque<Row> rows;
  for (const uint32_t idle : idle_streams) rows.emplace_back(gpu, program, idle);
  for (uint32_t round = 0; round < kRounds; ++round)
    for (Row& row : rows) row.measure();

  const bool is_virtual = dlsym(RTLD_DEFAULT, "uptempo_vgpu_device") != nullptr;
  std::printf(
      "%s: the default stream (legacy order) beside idle blocking streams\n"
      "Median of %u rounds of %u launches, and of %u launches with a finish each%s\n\n"
      "   idle    ns per  ns per launch  packets per launch\n"
      "streams    launch     and finish          and finish\n"
      "----------------------------------------------------\n",
      gpu.name().c_str(), kRounds, kLaunches, kFinishes, is_virtual ? "; virtual GPU time" : "");
  bool right = true;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::printf("%7u  %8.0f  %13.0f  %18.4g\n", idle_streams[i], median(rows[i].launch_ns),
                median(rows[i].launch_sync_ns), rows[i].packets / kRounds);
    right = right && rows[i].is_right();
  }
  std::puts(right ? "\nVerified: all launches were executed, in order." : "\nWRONG RESULTS.");
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "many_streams: %s\n", error.what());
  return 1;
}
