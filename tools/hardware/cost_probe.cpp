#include "tools/hardware/cost_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include <uptempo/kernels/basics.hpp>
#include <uptempo/memory/buffer.hpp>
#include <uptempo/program/program.hpp>
#include <uptempo/runtime/signal.hpp>
#include <uptempo/stream/stream.hpp>
#include "tools/support/packet_queue.hpp"
#include "tools/support/packets.hpp"
#include "tools/support/rounds.hpp"
#include "tools/support/statistics.hpp"

namespace uptempo::hardware {
namespace {

using aql::Barrier;
using aql::FenceScope;

constexpr uint32_t kPackets = 1024;
constexpr uint32_t kRounds = 25;

// Every packet of a row has these flags.
struct Row {
  std::string_view name;
  aql::HeaderFlags flags;
  bool signals = false;    // each packet completes a signal
  bool doorbells = false;  // each packet has a doorbell
  // The row that this one must not cost more than; itself if there is none.
  size_t wider;
};

constexpr aql::HeaderFlags flags(Barrier barrier, FenceScope acquire, FenceScope release) {
  return {barrier, acquire, release};
}

constexpr std::array<Row, kCostRows> kRows{{
    Row{.name = "alone",
        .flags = flags(Barrier::off, FenceScope::none, FenceScope::none),
        .wider = 1},
    Row{.name = "barrier bit",
        .flags = flags(Barrier::on, FenceScope::none, FenceScope::none),
        .wider = 1},
    Row{.name = "acquire agent",
        .flags = flags(Barrier::on, FenceScope::agent, FenceScope::none),
        .wider = 3},
    Row{.name = "acquire system",
        .flags = flags(Barrier::on, FenceScope::system, FenceScope::none),
        .wider = 3},
    Row{.name = "release agent",
        .flags = flags(Barrier::on, FenceScope::none, FenceScope::agent),
        .wider = 5},
    Row{.name = "release system",
        .flags = flags(Barrier::on, FenceScope::none, FenceScope::system),
        .wider = 5},
    Row{.name = "signal",
        .flags = flags(Barrier::on, FenceScope::none, FenceScope::none),
        .signals = true,
        .wider = 6},
    Row{.name = "doorbell",
        .flags = flags(Barrier::on, FenceScope::none, FenceScope::none),
        .doorbells = true,
        .wider = 7},
}};
constexpr size_t kBarrierRow = 1;

// The cost of a narrower fence that is called dearer: so far above that of the wider one.
constexpr double kDearer = 1.2;

const Grid kOne = Grid{1}.by(1);

}  // namespace

Answer probe_costs(const support::Device& device) {
  const Agent& gpu = device.gpu;
  support::PacketQueue queue(gpu, 2 * kPackets, std::chrono::seconds(10));
  const Program program(gpu, builtin_kernels::basics());
  const auto count = program.kernel<uint32_t*>("count_work_items");
  const DeviceBuffer<uint32_t> counter(gpu, 1);
  const PinnedBuffer<uint32_t> found(gpu, 1);
  Copier copier(gpu);
  copier.fill(counter, 0);
  const KernargBuffer block(gpu, support::kBlockBytes);
  support::write_arguments(count, block.data(), kOne, queue.facts(), counter.data());
  const Signal done(SignalKind::interrupt, 0);
  queue.flush();

  CostTimes ns;
  const auto run = [&](size_t number) {
    const Row& row = kRows.at(number);
    aql::KernelDispatch dispatch =
        support::dispatch_of(count.info(), kOne, block.data(), row.flags, done.handle());
    const aql::Packet64 last = aql::to_packet(dispatch);
    if (!row.signals) dispatch.completion_signal = {0};
    std::vector<aql::Packet64> packets(kPackets, aql::to_packet(dispatch));
    packets.back() = last;
    hsa_signal_store_relaxed(done.handle(), row.signals ? kPackets : 1);
    const auto begin = std::chrono::steady_clock::now();
    const size_t at_once = row.doorbells ? 1 : kPackets;
    for (size_t i = 0; i < kPackets; i += at_once) queue.publish({packets.data() + i, at_once});
    queue.wait(done.handle(), row.name, std::chrono::milliseconds(100));
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    ns.at(number).push_back(time.count() / kPackets);
    queue.flush();
  };
  support::take_turns(1, kRows.size(), run, [](uint32_t rounds) { return rounds >= kRounds; });

  copier.copy(found, counter);
  const uint64_t expected = uint64_t{kPackets} * kRounds * kRows.size();
  if (found[0] != expected)
    return {Verdict::differs, fmt::format("{} of {} packets ran", found[0], expected)};

  return answer_of_costs(ns);
}

Answer answer_of_costs(const CostTimes& ns) {
  const double barrier = support::median(ns.at(kBarrierRow));
  nlohmann::ordered_json measured;
  std::string text = "ns per packet: ", dearer;
  for (size_t i = 0; i < kRows.size(); ++i) {
    const Row& row = kRows.at(i);
    const support::MedianInterval interval = support::median_interval(ns.at(i));
    measured[std::string(row.name)] = {
        {"ns_per_packet", interval.median}, {"ns_low", interval.low}, {"ns_high", interval.high}};
    text += i <= kBarrierRow ? fmt::format("{} {:.0f}, ", row.name, interval.median)
                             : fmt::format("{} {:+.0f}{}", row.name, interval.median - barrier,
                                           i + 1 < kRows.size() ? ", " : "");
    if (support::median_ratio(ns.at(i), ns.at(row.wider)).low > kDearer)
      dearer += fmt::format("{}{} costs more than {}", dearer.empty() ? "" : ", ", row.name,
                            kRows.at(row.wider).name);
  }
  if (!dearer.empty()) return {Verdict::differs, dearer + ". " + text, measured};
  return {Verdict::as_assumed, text, measured};
}

}  // namespace uptempo::hardware
