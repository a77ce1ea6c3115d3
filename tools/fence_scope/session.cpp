#include "tools/fence_scope/session.hpp"

#include "tools/fence_scope/run/vgpu_process.hpp"
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

Session::Session(const support::Device& device, TimingMode timing, const std::string& profile,
                 const Method& method)
    : device_(device),
      timing_(timing),
      profile_(!device.is_virtual ? nullptr
               : profile.empty()  ? own_profile(device.gpu.name())
                                  : &find_profile(profile)),
      method_(method) {}

Bench& Session::add(const Sequence& sequence, double share) {
  const auto require_time = [&] {
    if (support::interrupted() && !benches_.empty())
      throw support::Interrupted("interrupted before another sequence");
    const std::optional<double> left = seconds_left(method_, share, steady_seconds());
    if (left && *left <= 0)
      throw OutOfTime("--seconds left no time for a reference run of the sequence");
  };
  require_time();
  auto watched = std::make_unique<Watched>();
  Sequence judged = sequence;
  judged.caches = litmus::cache_rules_of(device_.gpu.name()).value_or(litmus::CacheRules::gfx9);
  watched->bench = std::make_unique<Bench>(device_.gpu, std::move(judged), timing_, require_time);
  if (device_.is_virtual)
    watched->bench->watch([to = watched.get()] { to->before = device_counts(); },
                          [to = watched.get()] { to->after = device_counts(); });
  benches_.push_back(std::move(watched));
  return *benches_.back()->bench;
}

void Session::add_cells(std::vector<Cell> cells) {
  for (Cell& cell : cells) {
    cells_.push_back(std::move(cell));
    bench_of_.push_back(benches_.back().get());
  }
}

std::vector<Evidence> Session::evidence() {
  if (!device_.is_virtual) return std::vector<Evidence>(cells_.size());
  std::vector<Case> cases;
  for (size_t i = 0; i < cells_.size(); ++i)
    cases.push_back({.sequence = &bench_of_[i]->bench->sequence(), .headers = cells_[i].headers});
  support::Progress progress;
  std::string left_out;
  std::vector<Evidence> gathered = gather_evidence(
      cases,
      {.progress = [&](const std::string& what) { progress.show(what); },
       .seconds_left = [&] { return seconds_left(method_, kEvidenceShare, steady_seconds()); },
       .left_out =
           [&](const std::string& what) { left_out += (left_out.empty() ? "" : ", ") + what; }});
  if (!left_out.empty())
    warnings_.push_back("--seconds left no time for evidence on the verdicts: " + left_out);
  return gathered;
}

std::vector<Cell> Session::carry_out() {
  counted_.resize(cells_.size());
  const std::vector<Evidence> evidence = this->evidence();
  const Instruments instruments{
      .run =
          [&](size_t i, Release release) {
            Watched& of = *bench_of_[i];
            const Bench::Run run = of.bench->run(cells_[i].headers, release);
            if (release == Release::ungated) {
              counted_[i] = of.bench->counts(cells_[i].headers);
              if (of.before && of.after)
                counted_[i] = counts_of(counted_[i], *of.before, *of.after);
            }
            return run;
          },
      .judge =
          [&](size_t i) {
            return judge(bench_of_[i]->bench->sequence(), cells_[i].headers, evidence[i]);
          },
      .counts =
          [&](size_t i) {
            DeviceCounts counts = counted_[i];
            counts.l1_lines_invalidated = evidence[i].l1_lines_invalidated;
            counts.l2_lines_invalidated = evidence[i].l2_lines_invalidated;
            counts.l2_lines_written_back = evidence[i].l2_lines_written_back;
            return counts;
          },
      .model = [&](size_t i) -> std::optional<ModelTime> {
        if (profile_ == nullptr) return std::nullopt;
        return model_time(*profile_, bench_of_[i]->bench->sequence(), cells_[i].headers);
      }};
  fence_scope::carry_out(cells_, instruments, method_);
  recommend(cells_, device_.is_virtual ? TimeKind::virtual_gpu : TimeKind::hardware);
  return std::move(cells_);
}

}  // namespace uptempo::fence_scope
