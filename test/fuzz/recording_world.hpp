// The environment of a recording without ROCr: a queue that nothing reads, kernels without code,
// and memory.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <uptempo/recording/recording_file.hpp>
#include <uptempo/recording/recording_payload.hpp>
#include "test/engine/double_kernel.hpp"
#include "test/engine/state_access.hpp"
#include "test/support/queue_double.hpp"

namespace uptempo::fuzz {

class RecordingWorld {
 public:
  RecordingWorld() {
    using enum ArgumentKind;
    using test::argument;
    const CodeIdentity code{"gfx90a", 4711, 0x0123456789abcdef};
    const auto add = [&](const char* name, uint32_t bytes,
                         std::vector<ArgumentMetadata> arguments) {
      kernels_.emplace_back(test::info_of({.name = name,
                                           .kernarg_bytes = bytes,
                                           .arguments = std::move(arguments),
                                           .group_segment_bytes = 100,
                                           .code = code,
                                           .max_group_segment_bytes = 65536}));
    };
    add("scale", 40,
        {argument(by_value, 0, 4), argument(global_buffer, 8, 8), argument(global_buffer, 16, 8),
         argument(by_value, 24, 2), argument(hidden_block_count_x, 32, 4)});
    add("reduce", 40,
        {argument(dynamic_shared_pointer, 0, 4), argument(global_buffer, 8, 8),
         argument(dynamic_shared_pointer, 16, 4), argument(by_value, 20, 12)});
    add("empty", 0, {});
    memory_.add("positions", positions_.data(), 4000).add("forces", forces_.data(), 4000);
    for (int i = 0; i < 32; ++i) handles_.push_back(signals_.emplace_back(0).handle());
    state_ = std::make_unique<detail::BatchQueue>(
        detail::BatchQueue::Parts{.queue = queue_.queue(), .kernargs = span_of(queue_kernargs_)},
        handles_,
        QueueOptions{.packets = 64,
                     .publications = 16,
                     .timing_signals = 0,
                     .kernarg_bytes = 64 << 10,
                     .kernarg_slab_bytes = 1024});
  }

  std::unique_ptr<Recording> load(const std::string& file) {
    std::istringstream in(file);
    return detail::load_recording(in, kernels_, memory_, [this] { return empty_recording(); });
  }
  // A recording that uses every feature a file can hold.
  std::unique_ptr<Recording> full_recording() {
    using Scale = Kernel<uint32_t, const float*, float*, uint16_t>;
    using Reduce = Kernel<LocalBytes, float*, LocalBytes, std::array<float, 3>>;
    const auto scale = Scale::of(kernel(0));
    const auto reduce = Reduce::of(kernel(1));
    const auto empty = Kernel<>::of(kernel(2));
    float *x = positions_.data(), *f = forces_.data();
    auto made = empty_recording();
    made->dispatch(scale, Grid{512, 4}.by(64, 2), 42u, x, f, uint16_t{7})
        .reads(x, 100)
        .writes(f, 100);
    made->dispatch(reduce, Grid{64, 2, 3}.by(32, 1, 1).lds(48), LocalBytes{40}, f, LocalBytes{24},
                   std::array<float, 3>{1, 2.5f, -3})
        .observed_by(Observer::agent);
    made->raw(aql::to_packet(aql::BarrierAnd{
        .flags = {aql::Barrier::off, aql::FenceScope::none, aql::FenceScope::agent}}));
    made->dispatch(empty, Grid{1}).touches_nothing();
    made->dispatch(scale, Grid{64}, 44u, nullptr, f + 999, uint16_t{9})
        .fences(aql::FenceScope::none, aql::FenceScope::system)
        .without_barrier();
    made->dispatch(empty, Grid{128}).after_packets({0, 3});
    return made;
  }
  std::string save(const Recording& recording) const {
    std::ostringstream out;
    save_recording(recording, out, memory_);
    return out.str();
  }

 private:
  std::unique_ptr<Recording> empty_recording() {
    return detail::StateAccess::recording(std::make_unique<detail::RecordingState>(
        *state_, span_of(kernargs_), RecordingOptions{.spare_kernarg_bytes = 4 << 10}));
  }
  const std::shared_ptr<const KernelInfo>& kernel(size_t index) const {
    return std::get<std::shared_ptr<const KernelInfo>>(kernels_[index]);
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static std::span<std::byte> span_of(std::vector<Line>& lines) {
    return {lines.front().bytes, lines.size() * sizeof(Line)};
  }

  std::vector<float> positions_ = std::vector<float>(1000), forces_ = std::vector<float>(1000);
  std::vector<KernelSource> kernels_;
  Bindings memory_;
  test::QueueDouble queue_;
  std::deque<test::SignalDouble> signals_;
  std::vector<hsa_signal_t> handles_;
  std::vector<Line> queue_kernargs_ = std::vector<Line>(1024), kernargs_ = std::vector<Line>(4096);
  std::unique_ptr<detail::BatchQueue> state_;
};

}  // namespace uptempo::fuzz
