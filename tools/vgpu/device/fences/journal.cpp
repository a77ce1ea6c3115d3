#include "device/fences/journal.hpp"

#include <algorithm>
#include <utility>

namespace uptempo::vgpu::fences {
namespace {

template <typename... Whats>
bool is_one_of(const Event& event) {
  return (std::holds_alternative<Whats>(event.what) || ...);
}

// Returns the time of a host event, if the host's knowledge at that time matters.
std::optional<uint64_t> host_time(const Event& event) {
  if (const auto* read = std::get_if<events::HostRead>(&event.what)) return read->host_ns;
  if (const auto* opened = std::get_if<events::HostOpened>(&event.what)) return opened->host_ns;
  if (const auto* wrote = std::get_if<events::HostWrote>(&event.what)) return wrote->closed_ns;
  return std::nullopt;
}

uint64_t host_thread(const Event& event) {
  if (const auto* read = std::get_if<events::HostRead>(&event.what)) return read->thread;
  if (const auto* opened = std::get_if<events::HostOpened>(&event.what)) return opened->thread;
  return 0;
}

// Approximate overhead of an entry of a map or set.
constexpr size_t kEntryBytes = 64;

bool is_of_host(const Event& event) {
  return is_one_of<events::HostRead, events::HostOpened, events::HostWrote, events::Unknown>(event);
}

bool may_announce(const Event& event) {
  return is_one_of<events::End, events::Complete, events::Signal>(event);
}

}  // namespace

size_t Journal::Hash::operator()(const PageAccesses& accesses) const noexcept {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  for (const auto& mask : {accesses.read, accesses.written, accesses.synchronising})
    for (const uint64_t word : mask) mix(word);
  for (const uint64_t word : {accesses.vector_lines, accesses.scalar_lines, accesses.shared_lines})
    mix(word);
  return hash;
}

// Returns how many announcements the host may have known at that time.
uint64_t Journal::known_at(uint64_t host_ns) const {
  const auto known = std::upper_bound(announcements_ns_.begin(), announcements_ns_.end(), host_ns);
  return static_cast<uint64_t>(known - announcements_ns_.begin());
}

const PageAccesses* Journal::intern(const PageAccesses* accesses) {
  if (accesses == nullptr) return nullptr;
  const auto [entry, is_new] = contents_.insert(*accesses);
  if (is_new) grow(sizeof(PageAccesses) + kEntryBytes);
  return &*entry;
}

void Journal::touch(GpuAddress page, size_t what, uint64_t known, uint64_t thread, MemoryKind kind,
                    const PageAccesses* accesses) {
  const auto [last, is_first] = pages_.try_emplace(page, kNone);
  if (is_first) grow(kEntryBytes);
  const Key key{last->second, what, known, thread, kind, intern(accesses)};
  const auto [entry, is_new] = present_.try_emplace(key, static_cast<uint32_t>(nodes_.size()));
  if (is_new) {
    nodes_.push_back({key.parent, static_cast<uint32_t>(events_.size() - 1), kind, key.accesses});
    grow(sizeof(Node) + 2 * sizeof(Key));
  }
  last->second = entry->second;
}

void Journal::grow(size_t bytes) { bytes_ += bytes; }

void Journal::add(const Event& event) {
  if (overflowed_) return;
  if (events_.empty() || !is_of_host(event) || !is_of_host(events_.back())) present_.clear();
  events_.push_back({event.now_ns, event.what, {}});
  // They are for texts only, and may take more space than all else.
  if (auto* const end = std::get_if<events::End>(&events_.back().what)) end->instructions.reset();
  grow(sizeof(Event) + 32);
  if (const auto* launch = std::get_if<events::Launch>(&event.what)) grow(launch->kernel.size());

  const auto host_ns = host_time(event);
  if (host_ns) known_ = std::max(known_, known_at(*host_ns));
  for (const TouchedPage& page : event.pages) {
    if (is_of_host(event)) {
      of_host_.emplace_back(static_cast<uint32_t>(events_.size() - 1), page.page);
      grow(sizeof of_host_.back());
    }
    touch(page.page, event.what.index(), host_ns ? known_ : 0, host_thread(event), page.kind,
          page.accesses);
  }
  if (const auto* forget = std::get_if<events::Forget>(&event.what))
    for (auto page = pages_.lower_bound(forget->begin);
         page != pages_.end() && page->first < forget->end; ++page)
      touch(page->first, event.what.index(), 0, 0, {}, nullptr);
  if (may_announce(event)) announcements_ns_.push_back(event.now_ns);

  if (bytes_ <= limit_bytes_) return;
  overflowed_ = true;
  events_ = {};
  nodes_ = {};
  present_.clear();
  pages_.clear();
  of_host_ = {};
  contents_.clear();
}

Recording Journal::recording() {
  Recording result;
  result.events = std::move(events_);
  std::unordered_map<uint32_t, GpuAddress> kept;  // by last node
  for (const auto& [page, last] : pages_)
    ++result.page_count[kept.try_emplace(last, page).first->second];
  // Each page keeps its own host events, in order, because a dispatch that meets the host at one
  // page need not meet it at another.
  std::unordered_map<GpuAddress, std::vector<uint32_t>> of_host;
  for (const auto& [last, page] : kept) of_host[page];
  for (const auto& [event, page] : of_host_)
    if (const auto found = of_host.find(page); found != of_host.end())
      found->second.push_back(event);
  for (const auto& [last, page] : kept) {
    std::vector<uint32_t>& own = of_host[page];
    for (uint32_t node = last; node != kNone; node = nodes_[node].parent) {
      uint32_t event = nodes_[node].event;
      if (is_of_host(result.events[event])) {
        event = own.back();
        own.pop_back();
      }
      result.events[event].pages.push_back({page, nodes_[node].kind, nodes_[node].accesses});
    }
  }
  // A Forget event names its range itself.
  for (Event& event : result.events)
    if (std::holds_alternative<events::Forget>(event.what)) event.pages.clear();
  return result;
}

}  // namespace uptempo::vgpu::fences
