// Soak test: threads submit many dispatches in every way that the engine offers, while queues fail
// and threads stop at random. At the end, each dispatch was executed exactly once, memory has not
// grown, and neither library nor driver holds anything more than before.
//
//   soak [--dispatches N] [--producers N] [--seed N] [--device D] [--json FILE]
//
// A producer owns a Queue (of its own, or over a queue that all producers share), a recording and
// two streams. It draws its next step: a batch, a replay, launches on its streams with a wait
// between them, a wait for a completion, a pause, or a queue that fails. Each kernel execution adds
// one to a counter of the producer, so the counters show losses and repetitions.
//
// Exit code: 0 all of it holds, 1 it does not, 2 wrong command line, 77 no such device.
#include <fmt/format.h>
#include <malloc.h>
#include <uptempo/kernels/basics.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/support/holdings.hpp"
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;
using Clock = std::chrono::steady_clock;
using test::Holdings;

constexpr uint32_t kRecorded = 120;
const QueueOptions kDoomed{.packets = 256, .publications = 8, .kernarg_bytes = 64 << 10};

// Counts of work, summed over the producers.
struct Tally {
  uint64_t batches = 0, replays = 0, launches = 0, waits = 0, pauses = 0, failures = 0;

  Tally& operator+=(const Tally& other) {
    batches += other.batches, replays += other.replays, launches += other.launches;
    waits += other.waits, pauses += other.pauses, failures += other.failures;
    return *this;
  }
};

class Producer {
 public:
  Producer(const Agent& gpu, const Kernel<uint32_t*>& count, Queue queue, Streams& streams,
           uint64_t seed)
      : gpu_(gpu),
        count_(count),
        queue_(std::move(queue)),
        recording_(queue_),
        first_(streams),
        second_(streams),
        counters_(gpu, kCounters),
        random_(seed) {
    std::ranges::fill(counters_.span(), 0u);
    for (uint32_t i = 0; i < kRecorded; ++i) recording_.dispatch(count_, Grid{1}.by(1), counter());
  }

  // Submits `dispatches` dispatches, at least, and waits for all of them.
  void run(uint64_t dispatches, std::atomic<uint64_t>& progress) {
    BatchSubmitter batch{queue_};
    while (submitted_ < dispatches) {
      const uint64_t before = submitted_;
      step(batch);
      progress.fetch_add(submitted_ - before, std::memory_order_relaxed);
    }
    finish();
  }

  uint64_t submitted() const { return submitted_; }
  // The executions that the counters show; exact modulo 2^32 for each counter, of which each gets
  // far fewer.
  uint64_t executed() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < kCounters; ++i) sum += counters_[i];
    return sum;
  }
  const Tally& tally() const { return tally_; }

 private:
  static constexpr uint32_t kCounters = 16;

  uint32_t draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  uint32_t* counter() { return &counters_[draw(kCounters)]; }

  void step(BatchSubmitter& batch) {
    const uint32_t which = draw(100'000);
    if (which < 3) return fail();
    if (which < 30) return pause();
    if (which < 3'000) return finish();
    if (which < 50'000) return submit(batch);
    if (which < 70'000) return replay();
    launch();
  }

  void submit(BatchSubmitter& batch) {
    static constexpr uint32_t kLengths[] = {1, 2, 8, 64, 120, 300, 1024};
    const uint32_t length = kLengths[draw(7)];
    for (uint32_t i = 0; i < length; ++i) batch.dispatch(count_, Grid{1}.by(1), counter());
    last_ = batch.submit();
    submitted_ += length;
    ++tally_.batches;
  }
  void replay() {
    last_ = recording_.replay(queue_);
    submitted_ += kRecorded;
    ++tally_.replays;
  }
  void launch() {
    const uint32_t length = 1 + draw(64);
    for (uint32_t i = 0; i < length; ++i) first_.launch(count_, Grid{1}.by(1), counter());
    submitted_ += length;
    tally_.launches += length;
    if (draw(4) != 0) return;
    second_.after(first_.record());
    second_.launch(count_, Grid{1}.by(1), counter());
    ++submitted_;
    ++tally_.launches;
  }
  void finish() {
    last_.wait();
    first_.synchronize();
    second_.synchronize();
    ++tally_.waits;
  }
  void pause() {
    std::this_thread::sleep_for(std::chrono::microseconds(draw(500)));
    ++tally_.pauses;
  }

  // A queue of which a packet is invalid. The work before it is executed, the work after it is not,
  // and its completions say so.
  void fail() {
    Queue doomed{gpu_, kDoomed};
    BatchSubmitter batch{doomed};
    const uint32_t good = 1 + draw(32);
    for (uint32_t i = 0; i < good; ++i) batch.dispatch(count_, Grid{1}.by(1), counter());
    batch.submit().wait();
    submitted_ += good;
    aql::Packet64 broken{};
    broken.word[0] = aql::first_word(static_cast<uint16_t>(0x1400 | 0x77));  // no packet type
    batch.raw(broken);
    batch.dispatch(count_, Grid{1}.by(1), counter());
    const Completion lost = batch.submit();
    bool reported = false;
    try {
      if (!lost.wait(Deadline::after(std::chrono::minutes(1))))
        throw std::runtime_error("a batch after an invalid packet never ends");
    } catch (const Error&) {
      reported = true;
    }
    if (!reported) throw std::runtime_error("a batch after an invalid packet counts as complete");
    ++tally_.failures;
  }

  Agent gpu_;
  Kernel<uint32_t*> count_;
  Queue queue_;
  Recording recording_;
  Stream first_, second_;
  PinnedBuffer<uint32_t> counters_;
  std::mt19937_64 random_;
  Completion last_;
  uint64_t submitted_ = 0;
  Tally tally_;
};

struct Result {
  uint64_t submitted = 0, executed = 0;
  Tally tally;
  double seconds = 0;
  // bytes that the program's allocator holds, when the producers had done an eighth and at the end
  uint64_t early_bytes = 0, late_bytes = 0;
};

uint64_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

Result soak(const Agent& gpu, uint64_t dispatches, uint32_t producers, uint64_t seed,
            support::Progress& progress) {
  const Program program(gpu, builtin_kernels::basics());
  const auto count = program.kernel<uint32_t*>("count_work_items");
  Streams streams(gpu);
  SharedQueue shared(gpu);
  std::deque<Producer> all;
  for (uint32_t i = 0; i < producers; ++i)
    all.emplace_back(gpu, count, i % 2 == 0 ? Queue(gpu) : shared.producer(), streams, seed + i);

  // ROCr keeps the events of destroyed signals. So as many queues as can ever live at a time live
  // here once: each producer may have one that fails.
  {
    std::deque<Queue> most;
    for (uint32_t i = 0; i < producers; ++i) most.emplace_back(gpu, kDoomed);
  }
  Result result;
  std::atomic<uint64_t> done{0};
  std::atomic<uint32_t> running{producers};
  std::vector<std::string> errors(producers);
  std::vector<std::thread> threads;
  const Clock::time_point begin = Clock::now();
  for (uint32_t i = 0; i < producers; ++i)
    threads.emplace_back([&, i] {
      try {
        all[i].run(dispatches / producers, done);
      } catch (const std::exception& failed) {
        errors[i] = failed.what();
      }
      --running;
    });
  while (running != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const uint64_t now = done;
    if (result.early_bytes == 0 && now > dispatches / 8) result.early_bytes = allocated_bytes();
    progress.show(fmt::format("{:.1f} of {:.1f} million dispatches", static_cast<double>(now) / 1e6,
                              static_cast<double>(dispatches) / 1e6));
  }
  for (std::thread& each : threads) each.join();
  progress.clear();
  result.late_bytes = allocated_bytes();
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const std::string& each : errors)
    if (!each.empty()) throw std::runtime_error(each);
  for (const Producer& each : all) {
    result.submitted += each.submitted();
    result.executed += each.executed();
    result.tally += each.tally();
  }
  return result;
}

// Signals and memory that ROCr keeps after its first use are there before the measured Runtime.
Holdings hold_nothing(const support::Device& device, uint32_t producers, uint64_t seed) {
  support::Progress silent;
  (void)soak(device.gpu, producers * 4'000ull, producers, seed, silent);
  return test::holdings();
}

// A queue that lost work leaves its timeline behind, which keeps the record of the loss
// (engine/DESIGN.md).
constexpr uint64_t kBytesPerFailure = 8 << 10;
// Containers of the program and of ROCr still grow to their final size after the first eighth.
constexpr uint64_t kSettlingBytes = 256 << 10;

// Returns the rules that do not hold, one sentence each.
std::vector<std::string> problems(const Result& result, const Holdings& before, Holdings after) {
  std::vector<std::string> found;
  if (result.executed != result.submitted)
    found.push_back(fmt::format("{} dispatches were submitted, but {} executed", result.submitted,
                                result.executed));
  const uint64_t lost_timelines = after.timelines - before.timelines;
  if (lost_timelines > result.tally.failures)
    found.push_back(fmt::format("{} timelines are left after {} failed queues", lost_timelines,
                                result.tally.failures));
  const uint64_t allowed =
      result.early_bytes + kSettlingBytes + kBytesPerFailure * result.tally.failures;
  if (result.early_bytes != 0 && result.late_bytes > allowed)
    found.push_back(
        fmt::format("memory grew from {} to {} bytes", result.early_bytes, result.late_bytes));
  after.timelines = before.timelines;
  // The library keeps hardware queues for the next Queue. Those that failed since are gone.
  const bool fewer_queues =
      after.queues < before.queues && before.queues - after.queues <= result.tally.failures &&
      after.events <= before.events && after.buffers <= before.buffers &&
      after.device_bytes <= before.device_bytes && after.host_bytes <= before.host_bytes;
  if (!(after == before) && !fewer_queues) {
    std::ostringstream text;
    text << "left: " << after << "; before: " << before;
    found.push_back(text.str());
  }
  return found;
}

support::ExitCode run(const std::string& choice, uint64_t dispatches, uint32_t producers,
                      uint64_t seed, const std::string& json_file, int argc, char** argv) {
  const support::Device device = support::open_device(choice, argc, argv);
  support::print_report(json_file, device.line());
  const Holdings before = hold_nothing(device, producers, seed);
  Result result;
  {
    support::Progress progress;
    result = soak(device.gpu, dispatches, producers, seed, progress);
  }
  const Holdings after = test::holdings();
  const std::vector<std::string> wrong = problems(result, before, after);

  const Tally& tally = result.tally;
  std::string text = fmt::format(
      "{} dispatches from {} producers in {:.0f} s, seed {}\n"
      "{} batches, {} replays, {} launches on streams, {} waits, {} pauses, {} failed queues\n"
      "Bytes allocated after an eighth and at the end: {}, {}\n",
      result.submitted, producers, result.seconds, seed, tally.batches, tally.replays,
      tally.launches, tally.waits, tally.pauses, tally.failures, result.early_bytes,
      result.late_bytes);
  for (const std::string& each : wrong) text += "WRONG: " + each + '\n';
  if (wrong.empty())
    text += "Verified: each dispatch was executed once, and nothing is left behind.\n";
  support::print_report(json_file, text);
  if (!json_file.empty())
    support::write_output(json_file, nlohmann::ordered_json{{"device", device.name()},
                                                            {"virtual_gpu", device.is_virtual},
                                                            {"submitted", result.submitted},
                                                            {"executed", result.executed},
                                                            {"seconds", result.seconds},
                                                            {"failed_queues", tally.failures},
                                                            {"early_bytes", result.early_bytes},
                                                            {"late_bytes", result.late_bytes},
                                                            {"problems", wrong}}
                                             .dump(2) +
                                         '\n');
  return wrong.empty() ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("soak",
                           "Submits dispatches from several threads in every way, with failing\n"
                           "queues among them, and verifies that each is executed once and that\n"
                           "nothing is left behind.");
  std::string device = "auto", json_file;
  uint64_t dispatches = 1'000'000, seed = 1;
  uint32_t producers = 8;
  app.option("--dispatches N", dispatches, "number of dispatches").show_default();
  app.option("--producers N", producers, "threads that submit").range(1u, 64u).show_default();
  app.option("--seed N", seed, "seed of the producers' choices").show_default();
  support::add_device_option(app, device);
  support::add_json_option(app, json_file);
  return support::run_program(app, argc, argv, [&] {
    return run(device, dispatches, producers, seed, json_file, argc, argv);
  });
}
