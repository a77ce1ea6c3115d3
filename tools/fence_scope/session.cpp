#include "tools/fence_scope/session.hpp"

#include "tools/fence_scope/run/profile.hpp"
#include "tools/fence_scope/run/vgpu_process.hpp"
#include "tools/fence_scope/verdict/judge.hpp"
#include "tools/support/interrupt.hpp"
#include "tools/support/program.hpp"

namespace uptempo::fence_scope {
namespace {

using VgpuCounts = uptempo_vgpu_device_counts;

// Combines the counts known before a run with those of the device during it. Fences are those of
// dispatches: packets that the bench adds have none.
DeviceCounts counts_of(DeviceCounts counts, const VgpuCounts& before, const VgpuCounts& after) {
  counts.signal_updates = after.signal_updates - before.signal_updates;
  counts.interrupts = after.interrupts - before.interrupts;
  return counts;
}

// Profile of the emulated device; null if none describes it.
const Profile* own_profile(const std::string& target) {
  if (target == "gfx90a") return &find_profile("mi210");
  return target == "gfx942" ? &find_profile("mi300x") : nullptr;
}

}  // namespace

struct Session::Impl {
  struct Watched {
    std::unique_ptr<Bench> bench;
    std::optional<VgpuCounts> before{}, after{};  // of the last run
  };

  const support::Device& device;
  TimingMode timing;
  const Profile* profile;  // null: no model
  const Method method;
  std::vector<std::unique_ptr<Watched>> benches{};
  std::vector<Cell> cells{};
  std::vector<Watched*> bench_of{};     // per cell
  std::vector<DeviceCounts> counted{};  // of each cell's last gated run
  std::vector<std::string> warnings{};
};

Session::Session(const support::Device& device, TimingMode timing, const std::string& profile,
                 const Method& method)
    : impl_(new Impl{.device = device,
                     .timing = timing,
                     .profile = !device.is_virtual ? nullptr
                                : profile.empty()  ? own_profile(device.gpu.name())
                                                   : &find_profile(profile),
                     .method = method}) {}
Session::~Session() = default;

Bench& Session::add(const Sequence& sequence, double share) {
  const auto require_time = [&] {
    if (support::interrupted() && !impl_->benches.empty())
      throw support::Interrupted("interrupted before another sequence");
    const std::optional<double> left = seconds_left(impl_->method, share, steady_seconds());
    if (left && *left <= 0)
      throw OutOfTime("--seconds left no time for a reference run of the sequence");
  };
  require_time();
  auto watched = std::make_unique<Impl::Watched>();
  Sequence judged = sequence;
  judged.caches =
      litmus::cache_rules_of(impl_->device.gpu.name()).value_or(litmus::CacheRules::gfx9);
  watched->bench =
      std::make_unique<Bench>(impl_->device.gpu, std::move(judged), impl_->timing, require_time);
  if (impl_->device.is_virtual)
    watched->bench->watch([to = watched.get()] { to->before = device_counts(); },
                          [to = watched.get()] { to->after = device_counts(); });
  impl_->benches.push_back(std::move(watched));
  return *impl_->benches.back()->bench;
}

void Session::add_cells(std::vector<Cell> cells) {
  for (Cell& cell : cells) {
    impl_->cells.push_back(std::move(cell));
    impl_->bench_of.push_back(impl_->benches.back().get());
  }
}

const std::vector<std::string>& Session::warnings() const { return impl_->warnings; }

std::vector<Cell> Session::carry_out() {
  const Method& method = impl_->method;
  std::vector<Cell>& cells = impl_->cells;
  impl_->counted.resize(cells.size());
  std::vector<Evidence> evidence(cells.size());
  if (impl_->device.is_virtual) {
    std::vector<Case> cases;
    for (size_t i = 0; i < cells.size(); ++i)
      cases.push_back(
          {.sequence = &impl_->bench_of[i]->bench->sequence(), .headers = cells[i].headers});
    support::Progress progress;
    std::string left_out;
    evidence = gather_evidence(
        cases,
        {.progress = [&](const std::string& what) { progress.show(what); },
         .seconds_left = [&] { return seconds_left(method, kEvidenceShare, steady_seconds()); },
         .left_out =
             [&](const std::string& what) { left_out += (left_out.empty() ? "" : ", ") + what; }});
    if (!left_out.empty())
      impl_->warnings.push_back("--seconds left no time for evidence on the verdicts: " + left_out);
  }
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
      .judge =
          [&](size_t i) {
            return judge(impl_->bench_of[i]->bench->sequence(), cells[i].headers, evidence[i]);
          },
      .counts =
          [&](size_t i) {
            DeviceCounts counts = impl_->counted[i];
            counts.l1_lines_invalidated = evidence[i].l1_lines_invalidated;
            counts.l2_lines_invalidated = evidence[i].l2_lines_invalidated;
            counts.l2_lines_written_back = evidence[i].l2_lines_written_back;
            return counts;
          },
      .model = [&](size_t i) -> std::optional<ModelTime> {
        if (impl_->profile == nullptr) return std::nullopt;
        return model_time(*impl_->profile, impl_->bench_of[i]->bench->sequence(), cells[i].headers);
      }};
  fence_scope::carry_out(cells, instruments, method);
  recommend(cells, impl_->device.is_virtual ? TimeKind::virtual_gpu : TimeKind::hardware);
  return std::move(cells);
}

}  // namespace uptempo::fence_scope
