#include "sorter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <uptempo/kernels/bitonic_sort.hpp>
#include <uptempo/kernels/workgroups_of_256.hpp>

namespace uptempo::sort {
namespace {

constexpr uint32_t kNotAResult = 0xdeadbeef;

}  // namespace

aql::HeaderFlags packet_flags(const Switches& switches, size_t index, size_t count) {
  using enum aql::FenceScope;
  if (!switches.fence) return {.barrier = aql::Barrier::on, .acquire = system, .release = system};
  return {.barrier = aql::Barrier::on,
          .acquire = index == 0 ? system : agent,
          .release = index + 1 == count ? system : agent};
}

Sorter::Sorter(const Agent& gpu, Network network, bool descending)
    : gpu_(gpu),
      network_(std::move(network)),
      ascending_(descending ? 0 : 1),
      kernel_(Program{gpu, network_.workgroup() == 256 ? builtin_kernels::workgroups_of_256()
                                                       : builtin_kernels::bitonic_sort()}
                  .kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort")),
      queue_(gpu),
      batch_(queue_),
      copier_(gpu),
      keys_(gpu, network_.length()),
      pageable_input_(network_.length()),
      pageable_output_(network_.length()),
      pinned_input_(gpu, network_.length()),
      pinned_output_(gpu, network_.length()) {}

void Sorter::set_keys(std::span<const uint32_t> keys) {
  if (keys.size() != network_.length())
    throw std::invalid_argument(
        fmt::format("set_keys() needs {} keys, but {} were given", network_.length(), keys.size()));
  std::ranges::copy(keys, pageable_input_.begin());
  std::ranges::copy(keys, pinned_input_.begin());
}

Iteration Sorter::run(const Switches& switches) { return run(switches, std::nullopt); }

Iteration Sorter::run_with_interior(const aql::HeaderFlags& interior) {
  return run(kFullyOptimised, interior);
}

Iteration Sorter::run(const Switches& switches, const std::optional<aql::HeaderFlags>& interior) {
  last_output_ =
      switches.pinned_host ? std::span<const uint32_t>(pinned_output_.span()) : pageable_output_;
  std::ranges::fill(switches.pinned_host ? pinned_output_.span() : std::span(pageable_output_),
                    kNotAResult);
  std::optional<Signal> signal;
  std::vector<KernargBuffer> blocks;
  blocks.reserve(network_.passes().size());

  const Counters before = Counters::now();
  const auto start = std::chrono::steady_clock::now();
  if (switches.pinned_host) {
    copier_.copy(keys_, pinned_input_);
  } else {
    copier_.copy(keys_, pageable_input_);
  }
  if (!switches.prealloc_signal) signal.emplace();
  dispatch_all(switches, interior, signal ? &*signal : nullptr, blocks);
  if (switches.pinned_host) {
    copier_.copy(pinned_output_, keys_);
  } else {
    copier_.copy(pageable_output_, keys_);
  }
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - start;
  return {.us = elapsed.count(), .counts = Counters::now() - before};
}

void Sorter::dispatch_all(const Switches& switches, const std::optional<aql::HeaderFlags>& interior,
                          const Signal* signal, std::vector<KernargBuffer>& blocks) {
  const std::vector<Pass>& passes = network_.passes();
  const Grid grid = Grid{network_.work_items()}.by(network_.workgroup());
  const auto submit = [&] {
    if (signal != nullptr) batch_.complete_with(*signal);
    batch_.submit().wait();
  };

  for (size_t i = 0; i < passes.size(); ++i) {
    const bool inside = i > 0 && i + 1 < passes.size();
    const aql::HeaderFlags flags =
        inside && interior ? *interior : packet_flags(switches, i, passes.size());
    const auto set_flags = [&](CommandRef command) {
      command.fences(flags.acquire, flags.release);
      if (flags.barrier == aql::Barrier::off) command.without_barrier();
    };
    const auto [stage, pass] = passes[i];
    if (switches.prealloc_kernarg) {
      set_flags(batch_.dispatch(kernel_, grid, keys_.data(), stage, pass, ascending_));
    } else {
      // One block serves all kernels if the host waits for each; kernels in flight need one each.
      if (blocks.empty() || switches.avoid_host_sync)
        blocks.emplace_back(gpu_, kernel_.info().arguments.block_bytes());
      set_flags(batch_.dispatch_at(blocks.back().span(), kernel_, grid, keys_.data(), stage, pass,
                                   ascending_));
    }
    if (!switches.avoid_host_sync) submit();
  }
  if (switches.avoid_host_sync) submit();
}

std::vector<uint32_t> random_keys(uint32_t length, uint64_t seed) {
  std::mt19937_64 random(seed);  // the standard defines its numbers, but not those of distributions
  std::vector<uint32_t> keys(length);
  std::ranges::generate(keys, [&] { return static_cast<uint32_t>(random()); });
  return keys;
}

}  // namespace uptempo::sort
