// Program: reports a hand-written program of packets, copies and host accesses to a fence checker,
// event by event.
//
// It stores what the device would know (packet indices, offsets in SDMA rings, values of signals),
// and the findings as text, in order of arrival, separated by "; ". Example:
//   "stale RAW fill->sum 0x40+4 harmless"
// Class, conflict, writer, reader, first byte relative to its memory, bytes, the target's verdict.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/clock.hpp"
#include "device/fences/checker.hpp"
#include "page_bytes.hpp"

namespace uptempo::test {

using namespace vgpu::fences;
using vgpu::FenceScope;
using vgpu::GpuAddress;
using vgpu::MemoryKind;

inline constexpr FenceScope kNone = FenceScope::none, kAgent = FenceScope::agent,
                            kSystem = FenceScope::system;
inline constexpr uint64_t kDone = 1;    // a signal
inline constexpr uint32_t kPages = 50;  // of a dispatch with many

// Addresses of each kind of memory.
inline constexpr GpuAddress kMemoryBytes = 0x100000;
constexpr GpuAddress memory(MemoryKind kind) {
  return 0x10000000 + static_cast<GpuAddress>(kind) * kMemoryBytes;
}
inline constexpr GpuAddress kFine = memory(MemoryKind::fine_grained);
inline constexpr GpuAddress kCoarse = memory(MemoryKind::coarse_grained);
inline constexpr GpuAddress kLocal = memory(MemoryKind::device_local);
inline constexpr GpuAddress kLocalFine = memory(MemoryKind::device_local_fine);
inline constexpr GpuAddress kLocalExtended = memory(MemoryKind::device_local_extended);
inline constexpr GpuAddress kLocalUncached = memory(MemoryKind::device_local_uncached);

struct Touch {
  bool write;
  GpuAddress address;
  uint64_t bytes;
  Path path;
  uint32_t workgroup;
};
inline Touch reads(GpuAddress address, uint64_t bytes = 4, Path path = Path::vector,
                   uint32_t workgroup = 0) {
  return {false, address, bytes, path, workgroup};
}
inline Touch writes(GpuAddress address, uint64_t bytes = 4, Path path = Path::vector,
                    uint32_t workgroup = 0) {
  return {true, address, bytes, path, workgroup};
}

// The parts of a packet's header that a test selects. `signal` is a handle; 0: none.
struct Header {
  bool barrier = false;
  FenceScope acquire = FenceScope::none;
  FenceScope release = FenceScope::none;
  uint64_t signal = 0;
  uint64_t waves = 0;  // dispatches only
};

class Program {
 public:
  explicit Program(std::string target = "gfx90a", bool specification = true,
                   Journal* journal = nullptr)
      : Program(JudgeOptions{.target = std::move(target), .specification = specification},
                journal) {}
  // With several agents.
  explicit Program(JudgeOptions options, Journal* journal = nullptr,
                   Checker::PlaceOf place_of = nullptr)
      : checker_(
            std::move(options), [this](const Finding& finding) { add(finding); }, journal,
            std::move(place_of)) {}

  Checker& checker() { return checker_; }
  // The L2s of the workgroups of later dispatches.
  void deal(L2Deal l2s) { l2s_ = l2s; }
  const std::string& found() const { return found_; }
  const std::vector<Finding>& findings() const { return findings_; }
  void clear() {
    found_.clear();
    findings_.clear();
  }

  ActorId compute(uint32_t agent = 0) {
    return checker_.add_queue(Checker::QueueKind::compute, ++queues_, agent);
  }
  ActorId sdma(uint32_t agent = 0) {
    return checker_.add_queue(Checker::QueueKind::sdma, ++queues_, agent);
  }
  // The kind of memory at kLocal for the agent of the next tasks.
  void see_local_as(MemoryKind kind) { local_kind_ = kind; }

  // ---- signals: 1 until they are completed, unless the host stores another value
  void host_stores_signal(uint64_t handle, int64_t value) { value_[handle] = value; }
  Checker::SignalValue value(uint64_t handle) {
    return {handle, value_.try_emplace(handle, 1).first->second};
  }

  // ---- the host
  // Publishes the next `packets` packets now. Other packets are published when they start.
  void ring(ActorId queue, uint64_t packets = 1) {
    Position& position = positions_[queue];
    position.published = std::max(position.published, position.next) + packets;
    checker_.doorbell(queue, position.published - 1, vgpu::host_clock_ns());
  }
  void host_reads(GpuAddress address, uint64_t thread = 0) {
    checker_.host_read(address, vgpu::host_clock_ns(), kind_of, 0, thread);
  }
  void host_opens(GpuAddress page, uint64_t thread = 0) {
    checker_.host_opened(page_of(page), vgpu::host_clock_ns(), thread);
  }
  void host_wrote(GpuAddress address, uint32_t bytes = 4) {
    checker_.host_wrote(page_of(address), page_bytes(address, bytes), vgpu::host_clock_ns(),
                        kind_of);
  }
  void host_writes(GpuAddress address, uint32_t bytes = 4, uint64_t thread = 0) {
    host_opens(address, thread);
    host_wrote(address, bytes);
  }

  // ---- packets
  struct Dispatch {
    ActorId queue;
    Header header;
    Checker::Packet packet;
    Running running;
  };
  Dispatch launch(ActorId queue, std::string kernel, Header header,
                  std::initializer_list<Touch> touches = {}) {
    const Checker::Packet packet = next(queue, header);
    Dispatch dispatch{queue, header, packet,
                      checker_.launch(queue, packet, std::move(kernel), nullptr, header.waves, l2s_,
                                      {.runtimes = runtimes})};
    touch(dispatch, touches);
    return dispatch;
  }
  void touch(Dispatch& dispatch, std::initializer_list<Touch> touches) {
    for (const Touch& one : touches) {
      if (one.write) {
        dispatch.running.accesses->add_write(one.address, one.bytes, one.path, one.workgroup);
      } else {
        dispatch.running.accesses->add_read(one.address, one.bytes, one.path, one.workgroup);
      }
    }
  }
  void end(Dispatch& dispatch) {
    dispatch.packet.signal = completion(dispatch.header);
    checker_.end(dispatch.running, dispatch.packet, seen_kind_of());
  }
  void dispatch(ActorId queue, std::string kernel, Header header,
                std::initializer_list<Touch> touches = {}) {
    Dispatch one = launch(queue, std::move(kernel), header, touches);
    end(one);
  }
  bool runtimes = false;  // later dispatches are of kernels of ROCr
  // A barrier packet completes. `satisfied`: the signals that it found satisfied.
  void barrier_packet(ActorId queue, Header header,
                      std::initializer_list<uint64_t> satisfied = {}) {
    Checker::Packet packet = next(queue, header);
    std::vector<Checker::SignalValue> values;
    for (const uint64_t handle : satisfied) values.push_back(value(handle));
    packet.signal = completion(header);
    checker_.complete(queue, packet, values);
  }
  // A vendor's packet.
  void command(ActorId queue, Header header, const vgpu::CacheActions& caches) {
    checker_.complete(queue, next(queue, header), {}, caches);
  }

  // ---- SDMA
  void sdma_waits(ActorId queue, uint64_t handle) {
    checker_.wait(queue, advance(queue), value(handle));
  }
  void copy(ActorId queue, std::string_view name, GpuAddress source, GpuAddress destination,
            uint64_t bytes = 4) {
    checker_.copy(queue, advance(queue), name, Checker::Range{source, bytes}, {destination, bytes},
                  seen_kind_of());
  }
  void fill(ActorId queue, std::string_view name, GpuAddress destination, uint64_t bytes = 4) {
    checker_.copy(queue, advance(queue), name, std::nullopt, {destination, bytes}, seen_kind_of());
  }
  void sdma_signals(ActorId queue, uint64_t handle) {
    const Checker::SignalValue before = value(handle);
    --value_[handle];
    checker_.signal(queue, advance(queue), before);
  }
  // Publishes the next `commands` of an SDMA queue now.
  void ring_sdma(ActorId queue, uint64_t commands) {
    Position& position = positions_[queue];
    position.published = std::max(position.published, position.next) + commands * kCommandBytes;
    checker_.doorbell(queue, position.published, vgpu::host_clock_ns());
  }

  void finish() { checker_.finish(); }
  void forget(GpuAddress begin, GpuAddress end) { checker_.forget(begin, end); }

  static std::optional<MemoryKind> kind_of(GpuAddress page) {
    for (const MemoryKind kind :
         {MemoryKind::fine_grained, MemoryKind::coarse_grained, MemoryKind::uncached,
          MemoryKind::device_local, MemoryKind::device_local_fine,
          MemoryKind::device_local_extended, MemoryKind::device_local_uncached})
      if (page >= memory(kind) && page < memory(kind) + kMemoryBytes) return kind;
    return std::nullopt;
  }

 private:
  Checker::KindOf seen_kind_of() const {
    return [this](GpuAddress page) {
      const std::optional<MemoryKind> kind = kind_of(page);
      return kind == MemoryKind::device_local ? local_kind_ : kind;
    };
  }

  static constexpr uint64_t kCommandBytes = 32;
  struct Position {
    uint64_t next = 0, published = 0;
  };

  Checker::Packet next(ActorId queue, const Header& header) {
    Position& position = positions_[queue];
    if (position.next >= position.published) ring(queue);
    return {position.next++, header.barrier, header.acquire, header.release, std::nullopt};
  }
  std::optional<Checker::SignalValue> completion(const Header& header) {
    if (header.signal == 0) return std::nullopt;
    const Checker::SignalValue before = value(header.signal);
    --value_[header.signal];
    return before;
  }
  uint64_t advance(ActorId queue) {
    Position& position = positions_[queue];
    if (position.next >= position.published) ring_sdma(queue, 1);
    return std::exchange(position.next, position.next + kCommandBytes);
  }

  void add(const Finding& finding) {
    constexpr const char* kClasses[] = {"unordered", "stale", "unreleased"};
    constexpr const char* kConflicts[] = {"RAW", "WAR", "WAW"};
    constexpr const char* kDigits = "0123456789abcdef";
    std::string offset;
    for (GpuAddress rest = finding.address % kMemoryBytes; rest != 0 || offset.empty(); rest /= 16)
      offset.insert(offset.begin(), kDigits[rest % 16]);
    if (!found_.empty()) found_ += "; ";
    found_ += std::string(kClasses[static_cast<int>(finding.what)]) + ' ' +
              kConflicts[static_cast<int>(finding.conflict)] + ' ' + finding.writer->name + "->" +
              finding.reader->name + " 0x" + offset + '+' + std::to_string(finding.bytes) +
              (finding.possible_on_target ? " possible" : " harmless");
    findings_.push_back(finding);
  }

  std::string found_;
  std::vector<Finding> findings_;
  std::map<ActorId, Position> positions_;
  std::map<uint64_t, int64_t> value_;
  uint32_t queues_ = 0;
  MemoryKind local_kind_ = MemoryKind::device_local;
  L2Deal l2s_;
  Checker checker_;
};

}  // namespace uptempo::test
