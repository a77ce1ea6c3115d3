#include "gpu_sorter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <uptempo/kernels/merge.hpp>
#include <uptempo/kernels/workgroups_of_256.hpp>

namespace uptempo::sample_sort {
namespace {

constexpr uint32_t kWorkgroup = 256;
constexpr uint32_t kKeysPerItem = 8;                   // OUTPUTS in merge.cl
constexpr uint64_t kLeastSorted = 2 * kWorkgroup;      // one workgroup
constexpr uint64_t kMostMerged = UINT32_MAX - 0xffff;  // the kernel's positions have 32 bits

uint64_t padded(uint64_t keys) { return std::max(std::bit_ceil(keys), kLeastSorted); }

}  // namespace

Interval Work::interval() const {
  return {.begin_ns = static_cast<int64_t>(begin.ns()), .end_ns = static_cast<int64_t>(end.ns())};
}

GpuSorter::GpuSorter(const Agent& gpu, uint64_t chunk_keys, uint64_t expected_keys)
    : streams_(gpu),
      sorting_(streams_),
      merging_(streams_),
      clock_(streams_),
      sort_kernel_(Program{gpu, builtin_kernels::workgroups_of_256()}
                       .kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort")),
      merge_kernel_(Program{gpu, kernels::merge()}
                        .kernel<const uint32_t*, uint32_t, const uint32_t*, uint32_t, uint32_t*>(
                            "merge_runs")),
      chunk_(gpu, padded(chunk_keys)),
      sides_{{gpu, std::max(expected_keys, kLeastSorted)},
             {gpu, std::max(expected_keys, kLeastSorted)}} {}

Work GpuSorter::sort(std::span<uint32_t> chunk) {
  Work work;
  sorting_.record(work.begin);
  if (!chunk.empty()) {
    const uint64_t length = padded(chunk.size());
    const uint64_t bytes = chunk.size_bytes();
    sorting_.copy(CopyTarget::device(chunk_.data(), bytes), CopySource::pinned(chunk.data(), bytes),
                  CopyPath::engine);
    // The network needs a power of two. The padding sorts after all keys, or among equal ones.
    if (length > chunk.size())
      sorting_.fill(CopyTarget::device(chunk_.data() + chunk.size(),
                                       (length - chunk.size()) * sizeof(uint32_t)),
                    UINT32_MAX);
    const Grid grid = Grid{static_cast<uint32_t>(length / 2)}.by(kWorkgroup);
    const uint32_t stages = static_cast<uint32_t>(std::countr_zero(length));
    for (uint32_t stage = 0; stage < stages; ++stage)
      for (uint32_t pass = 0; pass <= stage; ++pass)
        sorting_.launch(sort_kernel_, grid, chunk_.data(), stage, pass, 1u);
    sorting_.copy(CopyTarget::pinned(chunk.data(), bytes), CopySource::device(chunk_.data(), bytes),
                  CopyPath::engine);
  }
  sorting_.record(work.end);
  return work;
}

Work GpuSorter::merge(std::span<const uint32_t> runs, uint64_t first, std::span<const Merge> merges,
                      Event& copied) {
  reserve(first + runs.size());
  Work work;
  merging_.record(work.begin);
  if (!runs.empty())
    merging_.copy(CopyTarget::device(sides_[0].data() + first, runs.size_bytes()),
                  CopySource::pinned(runs.data(), runs.size_bytes()), CopyPath::engine);
  copied = merging_.record();
  for (const Merge& each : merges) launch(each);
  merging_.record(work.end);
  return work;
}

Work GpuSorter::merge_to(std::span<uint32_t> result, uint32_t side, std::span<const Merge> merges) {
  Work work;
  merging_.record(work.begin);
  for (const Merge& each : merges) launch(each);
  if (!result.empty())
    merging_.copy(CopyTarget::pinned(result.data(), result.size_bytes()),
                  CopySource::device(sides_[side].data(), result.size_bytes()), CopyPath::engine);
  merging_.record(work.end);
  used_ = 0;
  return work;
}

Event GpuSorter::fault() {
  merging_.launch(merge_kernel_, Grid{kWorkgroup}.by(kWorkgroup), nullptr, 1u, nullptr, 0u,
                  nullptr);
  return merging_.record();
}

int64_t GpuSorter::now_ns() {
  TimedEvent now;
  clock_.record(now);  // without earlier work the event holds the time of the call
  now.wait();
  return static_cast<int64_t>(now.ns());
}

// Keys on the old sides move to larger ones, in stream order.
void GpuSorter::reserve(uint64_t keys) {
  if (keys > kMostMerged)
    throw std::runtime_error(
        fmt::format("this rank receives {} keys, but merges at most {}: use more ranks or fewer "
                    "--keys",
                    keys, kMostMerged));
  if (keys > sides_[0].size()) {
    for (DeviceBuffer<uint32_t>& side : sides_) {
      DeviceBuffer<uint32_t> larger(merging_.agent(), std::max<uint64_t>(keys, 2 * side.size()));
      if (used_ > 0)
        merging_.copy(CopyTarget::device(larger.data(), used_ * sizeof(uint32_t)),
                      CopySource::device(side.data(), used_ * sizeof(uint32_t)));
      merging_.free_after_work(std::move(side));
      side = std::move(larger);
    }
  }
  used_ = keys;
}

void GpuSorter::launch(const Merge& merge) {
  const uint32_t* const left = sides_[merge.from].data() + merge.first;
  const uint64_t items = (merge.left + merge.right + kKeysPerItem - 1) / kKeysPerItem;
  const uint64_t groups = (items + kWorkgroup - 1) / kWorkgroup;
  merging_.launch(merge_kernel_, Grid{static_cast<uint32_t>(groups * kWorkgroup)}.by(kWorkgroup),
                  left, static_cast<uint32_t>(merge.left), left + merge.left,
                  static_cast<uint32_t>(merge.right), sides_[1 - merge.from].data() + merge.first);
}

}  // namespace uptempo::sample_sort
