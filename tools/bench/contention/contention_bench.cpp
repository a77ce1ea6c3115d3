// contention_bench: cost of a packet when several threads publish to one queue. Compares writers
// over a SharedRing with one mutex around an exclusive writer, and with producers that claim slots
// as hsa_queue_add_write_index does: on the visible write index, before the slots are filled. The
// last way breaks the rule that the other two keep (aql/writer.hpp).
#include <fmt/format.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <vector>

#include <uptempo/aql/writer.hpp>
#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"
#include "tools/support/table.hpp"

namespace {

using namespace uptempo;
using Clock = std::chrono::steady_clock;

// Packets of a run, all in the ring at once: a multiple of every number of threads times every
// batch length.
constexpr uint32_t kPackets = 61440;
constexpr uint32_t kRing = 65536;
constexpr std::array<uint32_t, 4> kThreads{1, 2, 4, 8};
constexpr std::array<uint32_t, 3> kBatches{1, 8, 120};
static_assert(kPackets % (8 * 120 * 8) == 0 && kPackets <= kRing);

enum class Way : uint8_t { shared, mutex, add_index };
constexpr std::array<Way, 3> kWays{Way::shared, Way::mutex, Way::add_index};
constexpr const char* name_of(Way way) {
  return way == Way::shared ? "shared" : way == Way::mutex ? "mutex" : "add_index";
}

struct Options {
  support::Rounds rounds{.count = 20};
  std::set<uint32_t> threads{kThreads.begin(), kThreads.end()};
  std::set<uint32_t> batches{kBatches.begin(), kBatches.end()};
  std::string json_file;
};

// A queue in plain memory, laid out as ROCr does. A running device would occupy one of the cores
// and add its time to the measured contention.
class MemoryQueue {
 public:
  MemoryQueue() : ring_(kRing) {
    signal_.kind = AMD_SIGNAL_KIND_DOORBELL;
    signal_.hardware_doorbell_ptr = &doorbell_;
    abi_.hsa_queue.type = HSA_QUEUE_TYPE_MULTI;
    abi_.hsa_queue.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
    abi_.hsa_queue.base_address = ring_.data();
    abi_.hsa_queue.doorbell_signal = {reinterpret_cast<uint64_t>(&signal_)};
    abi_.hsa_queue.size = kRing;
    abi_.read_dispatch_id_field_base_byte_offset = offsetof(amd_queue_t, read_dispatch_id);
    for (aql::Packet64& slot : ring_) slot.word[0] = aql::first_word(aql::kInvalidHeader);
  }

  hsa_queue_t* queue() { return &abi_.hsa_queue; }
  uint64_t write_index() const { return abi_.write_dispatch_id; }
  uint64_t doorbell() const { return doorbell_; }

  // Publishes as a producer with hsa_queue_add_write_index does. The caller knows that there is
  // room. Any thread.
  template <class Emit>
  void add_and_publish(uint64_t count, const Emit& emit) {
    const uint64_t first = std::atomic_ref(const_cast<uint64_t&>(abi_.write_dispatch_id))
                               .fetch_add(count, std::memory_order_acq_rel);
    for (uint64_t i = 0; i < count; ++i) {
      aql::Packet64& slot = ring_[(first + i) % kRing];
      const uint32_t header = emit(i, &slot);
      std::atomic_ref(slot.word[0]).store(header, std::memory_order_release);
    }
    std::atomic_ref(doorbell_).store(first + count - 1, std::memory_order_release);
  }

  // Removes the oldest packet, as a packet processor does. One thread.
  aql::Packet64 take() {
    aql::Packet64& slot = ring_[abi_.read_dispatch_id % kRing];
    const aql::Packet64 packet = slot;
    slot.word[0] = aql::first_word(aql::kInvalidHeader);
    abi_.read_dispatch_id = abi_.read_dispatch_id + 1;
    return packet;
  }

 private:
  std::vector<aql::Packet64> ring_;
  amd_queue_t abi_{};
  amd_signal_t signal_{};
  alignas(128) uint64_t doorbell_ = 0;
};

struct Run {
  double ns_per_packet = 0;  // all threads together, from the common start to the last publication
  double doorbells = 0;      // per batch
};

// Identifies packet `i` of thread `which`. The number is stored as the kernarg address; the other
// fields are a dispatch's.
constexpr uint64_t number_of(uint64_t which, uint64_t i) { return which << 32 | i; }

Run publish(MemoryQueue& queue, Way way, uint32_t threads, uint32_t batch) {
  aql::SharedRing ring(queue.queue());
  auto exclusive = aql::AqlQueueWriter::borrow(queue.queue());
  std::mutex mutex;
  std::atomic<uint32_t> ready{0}, refused{0};
  std::atomic<uint64_t> doorbells{0};
  std::atomic<bool> go{false};
  std::vector<Clock::time_point> ends(threads);
  const uint32_t each = kPackets / threads;

  const auto produce = [&](uint32_t which) {
    auto own = aql::AqlQueueWriter::share(ring);
    aql::Packet64 packet =
        aql::to_packet(aql::KernelDispatch{.grid = {64}, .workgroup = {64}, .kernel_object = 1});
    uint64_t rung = 0;
    ++ready;
    while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
    for (uint32_t done = 0; done < each; done += batch) {
      const auto emit = [&](uint64_t i, void* slot) noexcept {
        packet.set_kernarg_address(reinterpret_cast<const void*>(number_of(which, done + i)));
        return aql::fill(slot, packet);
      };
      if (way == Way::mutex) {
        const std::lock_guard lock(mutex);
        const aql::PublishResult result = exclusive.publish(batch, Deadline::now(), emit);
        rung += result.doorbells;
        refused += !result;
      } else if (way == Way::add_index) {
        queue.add_and_publish(batch, emit);
        ++rung;
      } else {
        const aql::PublishResult result = own.publish(batch, Deadline::now(), emit);
        rung += result.doorbells;
        refused += !result;
      }
    }
    ends[which] = Clock::now();
    doorbells += rung;
  };
  std::vector<std::thread> all;
  for (uint32_t which = 0; which < threads; ++which) all.emplace_back(produce, which);
  while (ready != threads) std::this_thread::yield();
  const Clock::time_point start = Clock::now();
  go.store(true, std::memory_order_release);
  for (std::thread& thread : all) thread.join();
  if (refused != 0)
    throw std::runtime_error(fmt::format("publish() refused {} batches", refused.load()));
  const std::chrono::duration<double, std::nano> time = *std::ranges::max_element(ends) - start;
  return {.ns_per_packet = time.count() / kPackets,
          .doorbells = static_cast<double>(doorbells) / (kPackets / batch)};
}

// Empties the queue and checks it: every packet is there once, each thread's packets are in order,
// and each batch is contiguous.
void verify(MemoryQueue& queue, uint64_t first, Way way, uint32_t threads, uint32_t batch) {
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(
        fmt::format("{}, {} threads, batches of {}: {}", name_of(way), threads, batch, what));
  };
  if (const uint64_t written = queue.write_index() - first; written != kPackets)
    refuse(fmt::format("{} packets were published instead of {}", written, kPackets));
  if (way != Way::add_index && queue.doorbell() + 1 != queue.write_index())
    refuse(fmt::format("the last doorbell was {} and the write index is {}", queue.doorbell(),
                       queue.write_index()));
  std::vector<uint64_t> next(threads);
  uint64_t before = 0;
  for (uint32_t i = 0; i < kPackets; ++i) {
    const aql::Packet64 packet = queue.take();
    const uint64_t number = packet.word[10] | uint64_t{packet.word[11]} << 32, which = number >> 32;
    if (aql::packet_type(packet.header()) != aql::PacketType::kernel_dispatch || which >= threads)
      refuse(fmt::format("packet {} was not published", i));
    if (number != number_of(which, next[which]++))
      refuse(fmt::format("packet {} is out of order or was published twice", i));
    if (i % batch != 0 && number != before + 1)
      refuse(fmt::format("the batch of packet {} is not contiguous", i));
    before = number;
  }
}

// One value per round.
struct Series {
  uint32_t threads = 0, batch = 0;
  std::array<std::vector<double>, kWays.size()> ns, doorbells;

  const std::vector<double>& ns_of(Way way) const { return ns[static_cast<size_t>(way)]; }
  double doorbells_of(Way way) const {
    return support::median(doorbells[static_cast<size_t>(way)]);
  }
};

// Sets `rounds` to the number of finished rounds.
std::vector<Series> measure(const Options& options, uint32_t& rounds) {
  MemoryQueue queue;
  std::vector<Series> all;
  for (const uint32_t batch : options.batches)
    for (const uint32_t threads : options.threads)
      all.push_back({.threads = threads, .batch = batch, .ns = {}, .doorbells = {}});
  struct Turn {
    Series* series;
    Way way;
  };
  std::vector<Turn> turns;
  for (Series& series : all)
    for (const Way way : kWays) turns.push_back({&series, way});
  const auto take = [&](size_t i) {
    const auto& [series, way] = turns[i];
    const uint64_t first = queue.write_index();
    const Run run = publish(queue, way, series->threads, series->batch);
    verify(queue, first, way, series->threads, series->batch);
    return run;
  };
  for (size_t i = 0; i < turns.size(); ++i) take(i);  // untimed: touches the memory
  rounds = support::take_turns(options.rounds, turns.size(), [&](size_t i) {
    const Run run = take(i);
    const auto way = static_cast<size_t>(turns[i].way);
    turns[i].series->ns[way].push_back(run.ns_per_packet);
    turns[i].series->doorbells[way].push_back(run.doorbells);
  });
  return all;
}

std::string table(const std::vector<Series>& all) {
  support::Table table({{"batch x\nthreads"},
                        {"shared\nns"},
                        {"mutex\nns"},
                        {"add_index\nns"},
                        {"shared / mutex\n(95 %)"},
                        {"shared / add_index\n(95 %)"},
                        {"shared,\nbells"}});
  for (const Series& series : all) {
    std::vector<std::string> cells{fmt::format("{} x {}", series.batch, series.threads)};
    for (const Way way : kWays)
      cells.push_back(fmt::format("{:.1f}", support::median(series.ns_of(way))));
    for (const Way other : {Way::mutex, Way::add_index}) {
      const support::MedianInterval times =
          support::median_ratio(series.ns_of(Way::shared), series.ns_of(other));
      cells.push_back(fmt::format("{:.2f} ({:.2f}-{:.2f})", times.median, times.low, times.high));
    }
    cells.push_back(fmt::format("{:.2f}", series.doorbells_of(Way::shared)));
    table.add_row(std::move(cells));
  }
  return table.text();
}

nlohmann::ordered_json json(const std::vector<Series>& all) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array(),
                         ratios = nlohmann::ordered_json::array();
  for (const Series& series : all) {
    for (const Way way : kWays) {
      const support::MedianInterval ns = support::median_interval(series.ns_of(way));
      results.push_back({{"name", name_of(way)},
                         {"threads", series.threads},
                         {"batch", series.batch},
                         {"ns_per_packet", ns.median},
                         {"low", ns.low},
                         {"high", ns.high},
                         {"doorbells_per_batch", series.doorbells_of(way)}});
    }
    for (const Way other : {Way::mutex, Way::add_index}) {
      const support::MedianInterval times =
          support::median_ratio(series.ns_of(Way::shared), series.ns_of(other));
      ratios.push_back({{"name", "shared"},
                        {"to", name_of(other)},
                        {"threads", series.threads},
                        {"batch", series.batch},
                        {"ratio", times.median},
                        {"low", times.low},
                        {"high", times.high}});
    }
  }
  return {{"results", results}, {"ratios", ratios}};
}

support::ExitCode run(const Options& options) {
  const uint32_t cores = support::usable_cores();
  uint32_t rounds = 0;
  const std::vector<Series> all = measure(options, rounds);
  std::string text = fmt::format(
      "{} rounds in random order (seed {}), {} packets per run,\ninto a ring in memory: no "
      "device\n{} core{}",
      rounds, options.rounds.seed, kPackets, cores, cores == 1 ? "" : "s");
  if (*options.threads.rbegin() > cores)
    text += ": with more threads than cores, threads also wait for a core";
  text += "\nns: per packet; bells: doorbells per batch\n\n" + table(all) +
          "\nVerified after every run: each packet was published once, each thread's in order.\n";
  support::print_report(options.json_file, text);
  nlohmann::ordered_json out{{"cores", cores},
                             {"rounds", rounds},
                             {"seed", options.rounds.seed},
                             {"packets_per_run", kPackets},
                             {"verified", true}};
  out.update(json(all));
  support::write_json(options.json_file, out);
  return support::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app("contention_bench",
                           "Host time per packet when several threads publish to one queue.");
  Options options;
  support::add_rounds_options(app, options.rounds, 20);
  app.option("--threads N...", options.threads, "Thread counts (1 2 4 8)").one_of(kThreads);
  app.option("--batch N...", options.batches, "Packets per batch (1 8 120)").one_of(kBatches);
  support::add_json_option(app, options.json_file);
  return support::run_program(app, argc, argv, [&] { return run(options); });
}
