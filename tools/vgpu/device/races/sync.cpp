#include "device/races/sync.hpp"

#include <tuple>
#include <utility>

namespace uptempo::vgpu::races {
namespace {

// Most releases that are joined one by one: by an acquire, and for waves of the same workgroup,
// which costs less.
constexpr size_t kFew = 8, kFewOwn = 64;

}  // namespace

void Release::tell_others(FarClock& clock, Meter& meter) const {
  if (!to_agent) return;
  FarClock::Leaf leaf{};
  if (known) {
    clock.join(known->far, meter);
    leaf = known->seen.global;
  }
  leaf[wave()] = agent;
  clock.join(group(), leaf, meter);
}

bool Release::tell_own(Local& seen, FarClock& far, Meter& meter) const {
  Local told;
  bool is_new = false;
  if (known) {
    told = known->seen;
    is_new = far.join(known->far, meter);
  }
  told.global[wave()] = global;
  told.lds[wave()] = lds;
  return seen.join(told) || is_new;
}

void Pending::add(Place place) {
  if (!places.empty() && places.back().address == place.address) {
    places.back().releases = place.releases;
    return;
  }
  if (places.size() >= most_) drop_repetitions();
  places.push_back(place);
}

void Pending::join(const Pending& other, Meter& meter) {
  far.join(other.far, meter);
  for (const Place& place : other.places) add(place);
}

void Pending::drop_repetitions() {
  // A later acquire of a place has read at least as many releases.
  std::sort(places.begin(), places.end(), [](const Place& one, const Place& two) {
    return std::tie(one.address, two.releases) < std::tie(two.address, one.releases);
  });
  const auto same = [](const Place& one, const Place& two) { return one.address == two.address; };
  places.erase(std::unique(places.begin(), places.end(), same), places.end());
  most_ = std::max<size_t>(most_, 2 * places.size());
}

void Sync::release(Ref<const Release> release) {
  is_used_ = true;
  // A later release of the same wave tells of all that the earlier one told of.
  if (releases_.size() > seen_ && releases_.back()->number == release->number &&
      releases_.back()->to_agent <= release->to_agent)
    releases_.back() = std::move(release);
  else
    releases_.push_back(std::move(release));
}

// The number of last releases by the workgroup.
size_t Sync::last_of(uint32_t group) const noexcept {
  size_t count = 0;
  while (count < releases_.size() && count <= kFewOwn &&
         releases_[releases_.size() - 1 - count]->group() == group)
    ++count;
  return count;
}

void Sync::make_hot(Meter& meter) {
  auto hot = std::make_unique<Hot>();
  hot->first = releases_;
  hot_ = std::move(hot);
  add_releases(meter);
  hot_->first_sum = hot_->released;
}

void Sync::add_releases(Meter& meter) {
  for (const Ref<const Release>& release : releases_) {
    release->tell_others(hot_->released, meter);
    if (hot_->group != release->group()) {
      hot_->group = release->group();
      hot_->local = {};
      hot_->far = {};
    }
    release->tell_own(hot_->local, hot_->far, meter);
  }
  releases_.clear();
  seen_ = 0;
}

bool Sync::acquire(GpuAddress address, uint32_t number, Pending& pending, Local& seen,
                   FarClock& far, Meter& meter) {
  is_used_ = true;
  if (hot_ == nullptr) {
    if (releases_.empty()) return false;
    const size_t own = last_of(number >> Stamp::kWaveBits);
    if (own <= kFewOwn) {
      seen_ = static_cast<uint32_t>(releases_.size());
      pending.add({address, seen_});
      bool is_new = false;
      for (size_t i = releases_.size() - own; i < releases_.size(); ++i)
        if (releases_[i]->number != number) is_new |= releases_[i]->tell_own(seen, far, meter);
      return is_new;
    }
    make_hot(meter);
  }
  add_releases(meter);
  pending.far.join(hot_->released, meter);
  if (hot_->group != number >> Stamp::kWaveBits) return false;
  const bool is_new = far.join(hot_->far, meter);
  return seen.join(hot_->local) || is_new;
}

void Sync::tell(uint32_t releases, FarClock& clock, Meter& meter) {
  if (hot_ == nullptr && releases > kFew) make_hot(meter);
  if (hot_ != nullptr && releases == hot_->first.size()) {
    clock.join(hot_->first_sum, meter);
    return;
  }
  const auto& list = hot_ == nullptr ? releases_ : hot_->first;
  // Beyond the budget, places are forgotten, and may be used again.
  const size_t count = std::min<size_t>(releases, list.size());
  for (size_t i = 0; i < count; ++i) list[i]->tell_others(clock, meter);
}

}  // namespace uptempo::vgpu::races
