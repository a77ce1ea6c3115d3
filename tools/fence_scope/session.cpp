#include "fence_scope/session.hpp"

#include <dlfcn.h>

#include "fence_scope/sequence_rules.hpp"
#include "vgpu/device_counts.h"

namespace uptempo::fence_scope {
namespace {

using VgpuCounts = uptempo_vgpu_device_counts;

// What the virtual GPU has counted so far; nothing on hardware.
std::optional<VgpuCounts> vgpu_counts() {
  static const auto ask = reinterpret_cast<uptempo_vgpu_device_t>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_device"));
  VgpuCounts counts{};
  if (ask == nullptr || ask(&counts) != 0) return std::nullopt;
  return counts;
}

// What is known of a run beforehand, and what the device counted during one. Fences are those of dispatches: packets that the bench adds have none.
DeviceCounts counts_of(DeviceCounts counts, const VgpuCounts& before, const VgpuCounts& after) {
  counts.signal_updates = after.signal_updates - before.signal_updates;
  counts.interrupts = after.interrupts - before.interrupts;
  if (after.lines_counted == 0) return counts;
  counts.l1_lines_invalidated = after.vector_l1_lines_invalidated - before.vector_l1_lines_invalidated +
                                after.scalar_l1_lines_invalidated - before.scalar_l1_lines_invalidated;
  counts.l2_lines_invalidated = after.l2_lines_invalidated - before.l2_lines_invalidated;
  counts.l2_lines_written_back = after.l2_lines_written_back - before.l2_lines_written_back;
  return counts;
}

Judgement judge(const Sequence& sequence, const Headers& headers) {
  const std::vector<Hazard> hazards = hazards_of(sequence, headers);
  const Hazard* worst = worst_of(hazards);
  Judgement judgement{.verdict = Verdict::correct, .reason = {}};
  if (worst == nullptr) return judgement;
  judgement.verdict = !worst->ordered             ? Verdict::unordered
                      : worst->possible_on_target ? Verdict::stale
                                                  : Verdict::unknown;
  judgement.writer = worst->earlier;
  judgement.reader = worst->later;
  judgement.reason = in_words(*worst, sequence, headers);
  return judgement;
}

}  // namespace

struct Session::Impl {
  struct Watched {
    std::unique_ptr<Bench> bench;
    std::optional<VgpuCounts> before{}, after{};  // of the last run
  };

  const support::Device& device;
  TimingMode timing;
  std::vector<std::unique_ptr<Watched>> benches{};
  std::vector<Cell> cells{};
  std::vector<Watched*> bench_of{};     // each cell
  std::vector<DeviceCounts> counted{};  // of each cell's last gated run
};

Session::Session(const support::Device& device, TimingMode timing)
    : impl_(new Impl{.device = device, .timing = timing}) {}
Session::~Session() = default;

Bench& Session::add(const Sequence& sequence) {
  auto watched = std::make_unique<Impl::Watched>();
  watched->bench = std::make_unique<Bench>(impl_->device.gpu, sequence, impl_->timing);
  if (impl_->device.is_virtual)
    watched->bench->watch([to = watched.get()] { to->before = vgpu_counts(); },
                          [to = watched.get()] { to->after = vgpu_counts(); });
  impl_->benches.push_back(std::move(watched));
  return *impl_->benches.back()->bench;
}

void Session::add_cells(std::vector<Cell> cells) {
  for (Cell& cell : cells) {
    impl_->cells.push_back(std::move(cell));
    impl_->bench_of.push_back(impl_->benches.back().get());
  }
}

std::vector<Cell> Session::carry_out(const Method& method) {
  std::vector<Cell>& cells = impl_->cells;
  impl_->counted.resize(cells.size());
  const Instruments instruments{
      .run =
          [&](size_t i, Release release) {
            Impl::Watched& of = *impl_->bench_of[i];
            const Bench::Run run = of.bench->run(cells[i].headers, release);
            if (release == Release::ungated) {
              impl_->counted[i] = of.bench->counts(cells[i].headers);
              if (of.before && of.after)
                impl_->counted[i] = counts_of(impl_->counted[i], *of.before, *of.after);
            }
            return run;
          },
      .judge = [&](size_t i) { return judge(impl_->bench_of[i]->bench->sequence(), cells[i].headers); },
      .counts = [&](size_t i) { return impl_->counted[i]; },
      .model = [](size_t) { return std::optional<ModelTime>(); }};
  fence_scope::carry_out(cells, instruments, method);
  recommend(cells, impl_->device.is_virtual ? TimeKind::virtual_gpu : TimeKind::hardware);
  return std::move(cells);
}

}  // namespace uptempo::fence_scope
