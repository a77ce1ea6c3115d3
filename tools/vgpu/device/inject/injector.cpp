#include "device/inject/injector.hpp"

#include <algorithm>
#include <utility>

namespace uptempo::vgpu {
namespace {

// The finaliser of MurmurHash3, which mixes all bits.
uint64_t mixed(uint64_t bits) noexcept {
  bits ^= bits >> 33;
  bits *= 0xff51afd7ed558ccd;
  bits ^= bits >> 33;
  bits *= 0xc4ceb9fe1a85ec53;
  return bits ^ bits >> 33;
}

bool is_due(const InjectRule& rule, uint64_t event) noexcept {
  if (rule.chance) {
    constexpr double kAll = 18446744073709551616.0;  // 2^64
    return static_cast<double>(mixed(mixed(rule.seed) + event)) < *rule.chance * kAll;
  }
  if (rule.every != 0) return event % rule.every == 0;
  return event >= rule.nth;
}

bool is_at(const InjectRule& rule, uint32_t gpu, uint32_t queue) noexcept {
  return (!rule.gpu || *rule.gpu == gpu) && (!rule.queue || *rule.queue == queue);
}

// Adds 1 unless the counter has reached `most`.
bool add_below(std::atomic<uint64_t>& counter, uint64_t most) noexcept {
  uint64_t count = counter.load(std::memory_order_relaxed);
  while (count != most)
    if (counter.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
  return false;
}

}  // namespace

Injector::Injector(std::vector<InjectRule> rules)
    : rules_(std::move(rules)), counters_(rules_.size()) {}

bool Injector::concerns_device() const noexcept {
  return std::ranges::any_of(
      rules_, [](const InjectRule& rule) { return rule.place >= InjectRule::Place::packet; });
}

template <typename Matches>
const InjectRule* Injector::apply(InjectRule::Place place, Matches matches) noexcept {
  const InjectRule* applies = nullptr;
  for (size_t i = 0; i < rules_.size(); ++i) {
    const InjectRule& rule = rules_[i];
    if (rule.place != place || !matches(rule)) continue;
    const uint64_t event = counters_[i].matched.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!is_due(rule, event) || !add_below(counters_[i].injected, rule.count)) continue;
    if (applies == nullptr) applies = &rule;
  }
  return applies;
}

int Injector::ioctl(uint32_t number) noexcept {
  const InjectRule* const rule = apply(InjectRule::Place::ioctl, [=](const InjectRule& each) {
    return each.ioctl == InjectRule::kAnyIoctl || each.ioctl == number;
  });
  return rule == nullptr ? 0 : rule->error_number;
}

int Injector::mmap() noexcept {
  const InjectRule* const rule =
      apply(InjectRule::Place::mmap, [](const InjectRule&) { return true; });
  return rule == nullptr ? 0 : rule->error_number;
}

int Injector::open() noexcept {
  const InjectRule* const rule =
      apply(InjectRule::Place::open, [](const InjectRule&) { return true; });
  return rule == nullptr ? 0 : rule->error_number;
}

const InjectRule* Injector::packet(const Packet& packet) noexcept {
  return apply(InjectRule::Place::packet, [&](const InjectRule& rule) {
    return is_at(rule, packet.gpu, packet.queue) && (rule.queue || !packet.runtime_owned) &&
           (!rule.index || *rule.index == packet.index) &&
           (rule.packets == InjectRule::Packets::all || rule.packets == packet.type);
  });
}

const InjectRule* Injector::interrupt(uint32_t gpu, uint32_t queue) noexcept {
  return apply(InjectRule::Place::interrupt,
               [=](const InjectRule& rule) { return is_at(rule, gpu, queue); });
}

bool Injector::hdp() noexcept {
  return apply(InjectRule::Place::hdp, [](const InjectRule&) { return true; }) != nullptr;
}

bool Injector::copy(uint32_t gpu, uint32_t queue) noexcept {
  return apply(InjectRule::Place::copy,
               [=](const InjectRule& rule) { return is_at(rule, gpu, queue); }) != nullptr;
}

Injector::Counts Injector::counts(size_t rule) const noexcept {
  const Counters& counters = counters_[rule];
  return {.matched = counters.matched.load(std::memory_order_relaxed),
          .injected = counters.injected.load(std::memory_order_relaxed)};
}

}  // namespace uptempo::vgpu
