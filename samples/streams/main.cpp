// Copies beside kernels: the same work on one stream and on several, with the device's timeline.
//
//   streams [--device D] [--json FILE]
//
// Eight batches are uploaded, processed by kernels, and downloaded. On one stream each step follows
// the previous one. On four streams the upload of one batch overlaps the kernels of another and the
// download of a third. The timeline is the device's own (TimedEvent).
//
// Exit code: 0 all results are right, 1 they are not or the device failed, 2 wrong command line, 77
// no such device.
#include <fmt/format.h>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>

#include "tools/support/command_line.hpp"
#include "tools/support/device.hpp"
#include "tools/support/program.hpp"

namespace {

using namespace uptempo;

constexpr uint32_t kElements = 1 << 16, kBatches = 8, kKernelsPerBatch = 4;
constexpr std::array<const char*, 3> kStepNames{"upload", "kernels", "download"};
constexpr size_t kColumns = 58;

struct Batch {
  explicit Batch(const Agent& gpu)
      : in(gpu, kElements), out(gpu, kElements), values(gpu, kElements) {}
  PinnedBuffer<uint32_t> in, out;
  DeviceBuffer<uint32_t> values;
  std::array<TimedEvent, 4> times;  // before and after each step
  uint32_t stream = 0;
};

struct Timeline {
  uint32_t streams;
  bool right = true;
  uint64_t begin_ns = UINT64_MAX, end_ns = 0;
  std::deque<Batch> batches{};
};

Timeline run_on(const Agent& gpu, const Kernel<uint32_t*, uint32_t>& chain,
                uint32_t number_of_streams) {
  Timeline line{.streams = number_of_streams};
  Streams streams(gpu);
  std::deque<Stream> all;
  for (uint32_t i = 0; i < number_of_streams; ++i) all.emplace_back(streams);
  for (uint32_t b = 0; b < kBatches; ++b) {
    Batch& batch = line.batches.emplace_back(gpu);
    batch.stream = b % number_of_streams;
    std::ranges::fill(batch.in.span(), b);
  }
  for (Batch& batch : line.batches) {
    Stream& stream = all[batch.stream];
    stream.record(batch.times[0]);
    stream.copy(batch.values, batch.in, CopyPath::engine);
    stream.record(batch.times[1]);
    for (uint32_t k = 0; k < kKernelsPerBatch; ++k)
      stream.launch(chain, Grid{kElements}.by(256), batch.values.data(), k);
    stream.record(batch.times[2]);
    stream.copy(batch.out, batch.values, CopyPath::engine);
    stream.record(batch.times[3]);
  }
  streams.synchronize();
  for (uint32_t b = 0; b < kBatches; ++b) {
    const Batch& batch = line.batches[b];
    uint32_t expected = b;
    for (uint32_t k = 0; k < kKernelsPerBatch; ++k) expected = expected * 3 + k;
    line.right = line.right && std::ranges::count(batch.out.span(), expected) == kElements;
    line.begin_ns = std::min(line.begin_ns, batch.times.front().ns());
    line.end_ns = std::max(line.end_ns, batch.times.back().ns());
  }
  return line;
}

// A row per batch: u, k and d where the device executed that step.
std::string text_of(const Timeline& line) {
  const double span = static_cast<double>(std::max<uint64_t>(line.end_ns - line.begin_ns, 1));
  std::string text = fmt::format("{} stream{}: {:.0f} us\n", line.streams,
                                 line.streams == 1 ? "" : "s", span / 1000);
  for (uint32_t b = 0; b < kBatches; ++b) {
    const Batch& batch = line.batches[b];
    std::string row(kColumns, '.');
    for (size_t step = 0; step < kStepNames.size(); ++step) {
      const auto column = [&](const TimedEvent& time) {
        return static_cast<size_t>(static_cast<double>(time.ns() - line.begin_ns) / span *
                                   (kColumns - 1));
      };
      const size_t first = column(batch.times[step]), last = column(batch.times[step + 1]);
      std::fill(row.begin() + static_cast<ptrdiff_t>(first),
                row.begin() + static_cast<ptrdiff_t>(last) + 1, kStepNames[step][0]);
    }
    text += fmt::format("  batch {}, stream {} |{}|\n", b, batch.stream, row);
  }
  return text + '\n';
}

nlohmann::ordered_json json_of(const Timeline& line) {
  nlohmann::ordered_json json{{"streams", line.streams},
                              {"total_ns", line.end_ns - line.begin_ns},
                              {"timeline", nlohmann::ordered_json::array()}};
  for (uint32_t b = 0; b < kBatches; ++b)
    for (size_t step = 0; step < kStepNames.size(); ++step)
      json["timeline"].push_back(
          {{"batch", b},
           {"stream", line.batches[b].stream},
           {"step", kStepNames[step]},
           {"begin_ns", line.batches[b].times[step].ns() - line.begin_ns},
           {"end_ns", line.batches[b].times[step + 1].ns() - line.begin_ns}});
  return json;
}

support::ExitCode run(const std::string& choice, const std::string& json_file, int argc,
                      char** argv) {
  const support::Device device = support::open_device(choice, argc, argv);
  support::print_report(json_file, device.line());
  const Program program(device.gpu, builtin_kernels::workgroups_of_256());
  const auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");
  nlohmann::ordered_json json{
      {"device", device.name()}, {"virtual_gpu", device.is_virtual}, {"verified", true}};
  bool right = true;
  support::print_report(
      json_file, fmt::format("{} batches of {} KiB: u upload, k {} kernels, d download; {}\n\n",
                             kBatches, kElements * 4 / 1024, kKernelsPerBatch, device.time_name()));
  for (const uint32_t streams : {1u, 4u}) {
    const Timeline line = run_on(device.gpu, chain, streams);
    right = right && line.right;
    support::print_report(json_file, text_of(line));
    json["rows"].push_back(json_of(line));
  }
  json["verified"] = right;
  support::print_report(
      json_file, right ? "Verified: every batch equals the host's result.\n" : "WRONG RESULTS.\n");
  if (!json_file.empty()) support::write_json(json_file, json);
  return right ? support::exit_ok : support::exit_measured_failure;
}

}  // namespace

int main(int argc, char** argv) {
  support::CommandLine app(
      "streams", "Runs copies and kernels on one stream and on four, and prints the timeline.");
  std::string device = "auto", json_file;
  support::add_device_option(app, device);
  support::add_json_option(app, json_file);
  return support::run_program(app, argc, argv, [&] { return run(device, json_file, argc, argv); });
}
