#include "device/fences/cost.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <unordered_map>
#include <vector>

namespace uptempo::vgpu::fences {
namespace {

using PacketId = std::pair<ActorId, uint64_t>;

class Estimate {
 public:
  Estimate(const Recording& run, const DeviceDescription& device)
      : run_(run),
        device_(device),
        memory_ns_per_byte_(1e3 / (2.0 * device.memory_clock_mhz * device.memory_width_bits / 8)),
        link_ns_per_byte_(1e3 / device.host_link_mb_per_s),
        l1_ns_per_byte_(
            1e3 / (double{kL1FillBytesPerClock} * device.engine_clock_mhz * device.compute_units)) {
  }

  PacketCosts costs() {
    for (const Event& event : run_.events)
      std::visit([&](const auto& what) { process(what, event.pages); }, event.what);
    for (Invalidation& one : invalidations_) settle(one);
    return std::move(costs_);
  }

 private:
  using Pages = std::vector<TouchedPage>;

  // One acquire, and the bytes read again because of it, by the cache that lost them.
  struct Invalidation {
    PacketId packet;
    uint64_t l1_bytes = 0;
    uint64_t l2_local_bytes = 0, l2_host_bytes = 0;
  };
  // `l1`, `l2`: the number of invalidations at the line's last use, + 1; 0: never used. `dirty`:
  // the write-back that it waits for, + 1.
  struct Line {
    uint32_t l1 = 0, l2 = 0, dirty = 0;
  };
  struct Dispatch {
    PacketId packet;
    std::optional<PacketId> barrier;  // the only packet whose barrier bit delayed it
    uint64_t waves_before = 0;        // of the dispatch before it
    double ns_before = 0;
    uint64_t waves = 0;
  };
  struct Queue {
    std::map<uint64_t, Dispatch> running;
    std::optional<PacketId> barrier;  // last packet with the bit since the last dispatch
    bool several = false;             // more than one packet has had the bit since then
    uint64_t waves = 0;               // of the dispatch that ended last
    double ns = 0;
  };

  double transfer_ns(MemoryKind kind, uint64_t bytes) const {
    return static_cast<double>(bytes) *
           (is_device_local(kind) ? memory_ns_per_byte_ : link_ns_per_byte_);
  }

  double l2_bytes() const { return double{1} * device_.l2_bytes * device_.xcds; }

  template <typename What>
  void process(const What&, const Pages&) {}

  void process(const events::Launch& event, const Pages&) {
    const PacketId id{event.queue, event.packet.index};
    Queue& queue = queues_[event.queue];
    hold_back(queue, id, event.packet);
    queue.running[event.packet.index] = {id, queue.several ? std::nullopt : queue.barrier,
                                         queue.waves, queue.ns, event.waves};
    queue.barrier.reset();
    queue.several = false;
    acquire(id, event.packet.acquire);
  }

  void process(const events::End& event, const Pages& pages) {
    Queue& queue = queues_[event.queue];
    const Dispatch dispatch = queue.running.extract(event.packet.index).mapped();
    double ns = 0;
    for (const TouchedPage& page : pages) ns += touch(page);
    if (dispatch.barrier)
      if (const double lost = std::min(ns, dispatch.ns_before) * share_beside(dispatch); lost != 0)
        costs_[*dispatch.barrier].barrier_ns += lost;
    queue.waves = dispatch.waves;
    queue.ns = ns;
    release(dispatch.packet, event.packet.release);
  }

  // Returns the share of its waves that would have fit beside the previous dispatch.
  double share_beside(const Dispatch& dispatch) const {
    const uint64_t slots = uint64_t{device_.compute_units} * device_.simds_per_compute_unit *
                           device_.max_waves_per_simd;
    if (dispatch.waves == 0 || dispatch.waves_before >= slots) return 0;
    return std::min(1.0, static_cast<double>(slots - dispatch.waves_before) /
                             static_cast<double>(dispatch.waves));
  }

  void process(const events::Complete& event, const Pages&) {
    const PacketId id{event.queue, event.packet.index};
    hold_back(queues_[event.queue], id, event.packet);
    acquire(id, event.packet.acquire);
    release(id, event.packet.release);
  }

  static void hold_back(Queue& queue, PacketId id, const Packet& packet) {
    if (!packet.barrier) return;
    queue.several = queue.barrier.has_value();
    queue.barrier = id;
  }

  void acquire(PacketId id, FenceScope scope) {
    if (scope == FenceScope::none) return;
    invalidations_.push_back({id});
    l1_.push_back(invalidations_.size() - 1);
    if (scope == FenceScope::system) l2_.push_back(invalidations_.size() - 1);
  }

  void release(PacketId id, FenceScope scope) {
    if (scope == FenceScope::none || (scope == FenceScope::agent && device_.xcds == 1)) return;
    const double all = static_cast<double>(dirty_local_ + dirty_host_);
    const double kept = std::min(all, l2_bytes());
    const auto part =
        device_.xcds == 1 ? &PacketCost::release_system_ns : &PacketCost::release_agent_ns;
    if (all != 0)
      costs_[id].*part += kept / all *
                          (transfer_ns(MemoryKind::device_local, dirty_local_) +
                           transfer_ns(MemoryKind::coarse_grained, dirty_host_));
    dirty_local_ = dirty_host_ = 0;
    ++write_backs_;
  }

  // Counts a dispatch's accesses to one page. Returns the time that memory needs for their bytes.
  double touch(const TouchedPage& page) {
    const PageAccesses& accesses = *page.accesses;
    const uint64_t count = run_.page_count.at(page.page);
    const MemoryType type = memory_type(device_.target, page.kind);
    auto& lines = lines_[page.page];
    uint64_t bytes = 0;
    for (uint32_t number = 0; number < kLinesPerPage; ++number) {
      const uint64_t read = accesses.read[number], written = accesses.written[number];
      if ((read | written) == 0) continue;
      bytes += static_cast<uint64_t>(std::popcount(read | written)) * count;
      Line& line = lines[number];
      const bool cached = ((accesses.vector_lines | accesses.scalar_lines) >> number & 1) != 0;
      const uint64_t line_bytes = kLineBytes * count;
      if (read != 0 && cached && line.l1 != 0 && line.l1 == l1_.size())
        invalidations_[l1_.back()].l1_bytes += line_bytes;
      if (cached) line.l1 = static_cast<uint32_t>(l1_.size()) + 1;
      if (!l2_holds_dirty(type)) continue;
      if (l2_goes_stale(type) && read != 0 && line.l2 != 0 && line.l2 == l2_.size())
        (is_device_local(page.kind) ? invalidations_[l2_.back()].l2_local_bytes
                                    : invalidations_[l2_.back()].l2_host_bytes) += line_bytes;
      line.l2 = static_cast<uint32_t>(l2_.size()) + 1;
      if (written == 0 || line.dirty == write_backs_ + 1) continue;
      line.dirty = write_backs_ + 1;
      (is_device_local(page.kind) ? dirty_local_ : dirty_host_) += line_bytes;
    }
    return transfer_ns(page.kind, bytes);
  }

  void settle(const Invalidation& one) {
    PacketCost cost;
    const uint64_t l1_bytes =
        std::min(one.l1_bytes, uint64_t{device_.l1_bytes} * device_.compute_units);
    cost.acquire_agent_ns = static_cast<double>(l1_bytes) * l1_ns_per_byte_;
    const double all = static_cast<double>(one.l2_local_bytes + one.l2_host_bytes);
    if (all != 0)
      cost.acquire_system_ns = std::min(all, l2_bytes()) / all *
                               (transfer_ns(MemoryKind::device_local, one.l2_local_bytes) +
                                transfer_ns(MemoryKind::coarse_grained, one.l2_host_bytes));
    if (cost.acquire_agent_ns + cost.acquire_system_ns == 0) return;
    PacketCost& total = costs_[one.packet];
    total.acquire_agent_ns += cost.acquire_agent_ns;
    total.acquire_system_ns += cost.acquire_system_ns;
  }

  const Recording& run_;
  const DeviceDescription& device_;
  const double memory_ns_per_byte_, link_ns_per_byte_, l1_ns_per_byte_;

  PacketCosts costs_;
  std::map<ActorId, Queue> queues_;
  std::vector<Invalidation> invalidations_;
  std::vector<size_t> l1_, l2_;  // invalidations of each cache, in order
  std::unordered_map<GpuAddress, std::array<Line, kLinesPerPage>> lines_;
  uint64_t dirty_local_ = 0, dirty_host_ = 0;
  uint32_t write_backs_ = 0;
};

}  // namespace

PacketCosts estimate_costs(const Recording& run, const DeviceDescription& device) {
  return Estimate(run, device).costs();
}

}  // namespace uptempo::vgpu::fences
