// Copies beside kernels: the same work on one stream and on four, with the device's timeline.
//
// Eight batches are uploaded, processed by kernels, and downloaded. On one stream each step follows
// the previous one. On four streams the upload of one batch overlaps the kernels of another and the
// download of a third. The timeline is the device's own (TimedEvent).
#include <dlfcn.h>
#include <uptempo/kernels/workgroups_of_256.hpp>
#include <uptempo/uptempo.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <string>

using namespace uptempo;

namespace {

constexpr uint32_t kElements = 1 << 16, kBatches = 8, kKernelsPerBatch = 4;
constexpr std::array<char, 3> kSteps{'u', 'k', 'd'};
constexpr size_t kColumns = 58;

struct Batch {
  explicit Batch(const Agent& gpu)
      : in(gpu, kElements), out(gpu, kElements), values(gpu, kElements) {}
  PinnedBuffer<uint32_t> in, out;
  DeviceBuffer<uint32_t> values;
  std::array<TimedEvent, 4> times;  // before and after each step
  uint32_t stream = 0;
};

// A row per batch: u, k and d where the device executed that step.
void print(const std::deque<Batch>& batches, uint32_t number_of_streams) {
  uint64_t begin_ns = UINT64_MAX, end_ns = 0;
  for (const Batch& batch : batches) {
    begin_ns = std::min(begin_ns, batch.times.front().ns());
    end_ns = std::max(end_ns, batch.times.back().ns());
  }
  const double span = static_cast<double>(std::max<uint64_t>(end_ns - begin_ns, 1));
  std::printf("%u stream%s: %.0f us\n", number_of_streams, number_of_streams == 1 ? "" : "s",
              span / 1000);
  for (size_t b = 0; b < batches.size(); ++b) {
    std::string row(kColumns, '.');
    for (size_t step = 0; step < kSteps.size(); ++step) {
      const auto column = [&](const TimedEvent& time) {
        return static_cast<size_t>(static_cast<double>(time.ns() - begin_ns) / span *
                                   (kColumns - 1));
      };
      const size_t first = column(batches[b].times[step]),
                   last = column(batches[b].times[step + 1]);
      row.replace(first, last + 1 - first, last + 1 - first, kSteps[step]);
    }
    std::printf("  batch %zu, stream %u |%s|\n", b, batches[b].stream, row.c_str());
  }
  std::printf("\n");
}

// Returns whether all results are right.
bool run_on(const Agent& gpu, const Kernel<uint32_t*, uint32_t>& chain,
            uint32_t number_of_streams) {
  Streams streams(gpu);
  std::deque<Stream> all;
  for (uint32_t i = 0; i < number_of_streams; ++i) all.emplace_back(streams);
  std::deque<Batch> batches;
  for (uint32_t b = 0; b < kBatches; ++b) {
    batches.emplace_back(gpu).stream = b % number_of_streams;
    std::ranges::fill(batches.back().in.span(), b);
  }
  for (Batch& batch : batches) {
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
  print(batches, number_of_streams);
  bool right = true;
  for (uint32_t b = 0; b < kBatches; ++b) {
    uint32_t expected = b;
    for (uint32_t k = 0; k < kKernelsPerBatch; ++k) expected = expected * 3 + k;
    right = right && std::ranges::count(batches[b].out.span(), expected) == kElements;
  }
  return right;
}

}  // namespace

int main() try {
  Runtime runtime;
  Agent gpu = runtime.gpu();
  Program program{gpu, builtin_kernels::workgroups_of_256()};
  auto chain = program.kernel<uint32_t*, uint32_t>("chain_increment");  // x = 3 x + b
  const bool is_virtual = dlsym(RTLD_DEFAULT, "uptempo_vgpu_device") != nullptr;
  std::printf("%s: %u batches of %u KiB: u upload, k %u kernels, d download%s\n\n",
              gpu.name().c_str(), kBatches, kElements * 4 / 1024, kKernelsPerBatch,
              is_virtual ? "; virtual GPU time" : "");
  bool right = true;
  for (const uint32_t streams : {1u, 4u}) right = run_on(gpu, chain, streams) && right;
  std::puts(right ? "Verified: every batch equals the host's result." : "WRONG RESULTS.");
  return right ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "streams: %s\n", error.what());
  return 1;
}
